"""Pictures in half blocks and curves of joints: what is drawn is what was measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.run_bench import Bench
from support.screens.console_bench import NARROW, WIDE, Desk, at_console
from support.screens.painted import Painted
from textual.app import App, ComposeResult

from labctl.bus import Message
from labctl.ui.console import acts
from labctl.ui.console.picture import STEP, Picture, cells
from labctl.ui.console.screens import Now
from labctl.ui.console.tiles import BARS, Joints, sparks

RED, BLUE = (255, 0, 0), (0, 0, 255)
LONGEST = 3000  # rounds of mail: the library paints some sixty times a second


def test_a_cell_is_two_pixels_and_its_colours_are_near_the_truth() -> None:
    image = np.zeros((4, 3, 3), np.uint8)
    image[0], image[1:] = RED, BLUE
    drawn = cells(image, 3, 2)
    assert drawn.shape == (2, 3, 2)
    colours = np.stack([drawn >> 16, drawn >> 8 & 255, drawn & 255], axis=-1)
    wanted = np.array([[[RED, BLUE]] * 3, [[BLUE, BLUE]] * 3])
    assert np.abs(colours - wanted).max() < STEP


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=120), st.integers(1, 80))
def test_a_curve_has_its_width_and_ends_with_its_last_value(values: list[float], width: int) -> None:
    drawn = sparks(values, width)
    assert len(drawn) == width and set(drawn) <= set(BARS)
    if width > 1:
        level = (values[-1] - min(values)) / max(max(values) - min(values), 1e-9)
        assert drawn[-1] == BARS[round(level * (len(BARS) - 1))]


@given(st.lists(st.floats(-1e3, 1e3) | st.sampled_from([np.nan, np.inf, -np.inf]), min_size=1), st.integers(1, 80))
def test_what_is_no_number_is_a_blank_in_a_curve_and_ends_no_screen(values: list[float], width: int) -> None:
    drawn = sparks(values, width)
    assert len(drawn) == width and set(drawn) <= {*BARS, " "}
    if width > 1:
        assert (drawn[-1] == " ") == (not np.isfinite(values[-1]))


class Screen(App[None]):
    CSS = "Picture { width: 1fr; height: auto; } Joints { height: auto; }"

    def compose(self) -> ComposeResult:
        yield Picture()
        yield Joints()


def test_a_picture_keeps_its_shape_and_only_rows_that_changed_are_drawn_again() -> None:
    async def look() -> None:
        async with Screen().run_test(size=(40, 24)) as pilot:
            picture = pilot.app.query_one(Picture)
            image = np.zeros((48, 80, 3), np.uint8)
            picture.put(image)
            await pilot.pause()
            assert (picture.size.width, picture.size.height) == (40, 12), "48 x 80 pixels"
            asked: list[int] = []
            drawn = picture.render_line
            picture.render_line = lambda y: asked.append(y) or drawn(y)  # type: ignore[method-assign]
            picture.put(image.copy())
            await pilot.pause()
            assert asked == [], "the same picture again"
            changed = image.copy()
            changed[20:24] = RED
            picture.put(changed)
            await pilot.pause()
            assert asked == [5]
            assert {segment.style.color.triplet.red for segment in drawn(5) if segment.style} == {252}
            assert len(list(drawn(5))) == 1, "equal neighbours are one segment"

    asyncio.run(look())


def test_the_row_of_a_joint_says_its_name_its_curve_and_its_value() -> None:
    async def look() -> None:
        async with Screen().run_test(size=(60, 24)) as pilot:
            joints = pilot.app.query_one(Joints)
            for k in range(5):
                joints.put({"q": np.array([0.1 * k, -1.0]), "gripper": np.array([0.04])}, 10**9 * k)
            await pilot.pause()
            rows = [joints.render_line(y).text for y in range(joints.size.height)]
            assert [row[:9].strip() for row in rows] == ["joint 1", "joint 2", "gripper"]
            assert [row[-13:].strip() for row in rows] == ["+0.400 rad", "-1.000 rad", "+40.0 mm"]
            assert rows[0][9] == BARS[0] and rows[0][-14] == BARS[-1] and set(rows[1][9:-13]) == {BARS[0]}
            assert all(len(row) == 60 for row in rows)
            axes = [["rail", "m"], ["fr3_joint1", "rad"], ["hand.thumb", "rad"], ["vacuum", "1"]]
            seen = {"q": np.array([0.25, -1.0]), "gripper": np.array([1.4, 0.5])}
            joints.put(seen, 10**10, axes)
            await pilot.pause()
            rows = [joints.render_line(y).text for y in range(joints.size.height)]
            assert [row[:9].strip() for row in rows] == ["rail", "fr3 1", "thumb", "vacuum"]
            assert [row[-13:].strip() for row in rows] == ["+0.250 m", "-1.000 rad", "+1.400 rad", "+0.500 1"]
            driving = [["fr3_joint1", "rad"], ["base.vx", "m/s"], ["base.wz", "rad/s"], ["gripper", "m"]]
            joints.put({"q": np.array([0.5, 9.0, 8.0]), "gripper": np.array([0.02])}, 2 * 10**10, driving)
            await pilot.pause()
            rows = [joints.render_line(y).text for y in range(joints.size.height)]
            assert [row[:9].strip() for row in rows] == ["fr3 1", "gripper"], "in a base's speeds an arm stands out"

    asyncio.run(look())


@pytest.mark.parametrize(("size", "anew"), [(NARROW, False), (WIDE, True)], ids=["narrow", "wide"])
def test_what_the_screen_has_no_room_for_is_not_drawn_anew(bench: Bench, size: tuple[int, int], anew: bool) -> None:
    """Textual would measure the whole screen again each time, at whatever moment a widget's place is asked for next."""

    async def play(desk: Desk) -> None:
        joints, asked = desk.app.screen.query_one(Joints), list[object]()
        refresh = joints.refresh
        for n in range(10):
            arrays = {"q": np.full(7, 0.1 * n), "gripper": np.array([0.04])}
            bench.sent.append(Message("@obs", "obs", {"t_ns": bench.now_ns}, arrays))
            await desk.wait(0.3)
            joints.refresh = lambda *_, **given: (asked.append(given), refresh(**given))[1]  # type: ignore[method-assign]
        assert bool(asked) is anew

    at_console(bench, play, size=size)


def on_screen(desk: Desk) -> list[str]:
    return [row.rstrip() for row in desk.text().split("\n")][: NARROW[1]]


@pytest.mark.parametrize("idle", [False, True], ids=["laid out first", "idle first"])
def test_no_row_of_before_stays_on_the_terminal(idle: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a terminal has it, which is only told what the library holds for changed. A screen may be idle, and do what
    was to be done after its next drawing, before it hears that a widget wants another place (*seen:* once, in a run
    of all tests, a blank row where the block stands).
    """
    painted, draw, against = (
        Painted(monkeypatch),
        Now.draw,
        [("the robot says 'fault': look at it\nand again", "repair it")],
    )

    def asked_in_between(now: Now, *args: object, **given: object) -> None:
        later = list[Callable[[], object]]()
        if idle:
            monkeypatch.setattr(now, "call_after_refresh", later.append)
        draw(now, *args, **given)  # type: ignore[arg-type]
        for callback in later:
            callback()
        if idle:
            now._on_timer_update()
        now._compositor._full_map_invalidated = True
        now.find_widget(now.query_one("#left"))

    async def play(desk: Desk) -> None:
        for wrong in (against, []):
            monkeypatch.setattr(acts, "fixes", lambda state, wrong=wrong: wrong)
            await desk.draw()
            await desk.still()
            for _ in range(LONGEST):  # the library paints by a timer of its own
                if painted.rows() == on_screen(desk):
                    break
                await desk.pilot.pause(0)
            assert painted.rows() == on_screen(desk)

    monkeypatch.setattr(Now, "draw", asked_in_between)
    at_console(bench, play, size=NARROW)
