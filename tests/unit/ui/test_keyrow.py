"""The row of keys at the foot shows what can be done; ctrl+p offers every key by its name, and each obeys the rule and
the state of its key.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.screens.console_bench import NARROW, WIDE, Desk, at_console, flat
from support.screens.unhurried import READ_NS
from textual.app import App
from textual.command import CommandList, CommandPalette
from textual.content import Content
from textual.fuzzy import Matcher

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.ui.console import refusals
from labctl.ui.console.keyrow import KeyRow
from labctl.ui.console.keys import KEYS
from labctl.ui.console.named import KeysByName, Named, highlighted, literal
from labctl.ui.console.screens import same_rows

WORDS = st.text(st.sampled_from("ab \n界"), max_size=30)


def test_it_follows_the_trial_and_leaves_out_what_cannot_be_done(bench):
    def row(desk: Desk) -> str:
        return str(desk.app.screen.query_one(KeyRow).content)

    async def play(desk: Desk) -> None:
        assert "STOP" in row(desk) and "item or stage" not in row(desk)
        await desk.running()
        assert "item or stage" in row(desk)

    at_console(bench, play, size=WIDE)


def test_no_key_is_cut_in_two_where_not_all_have_room(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("i", "n", "e", "e")
        await desk.sealed(episode)
        row = desk.app.screen.query_one(KeyRow)
        assert len(str(row.content)) <= row.size.width and "keys" in str(row.content)
        shown = str(row.content).split("  ")
        assert set(shown) <= {f"{key} {does}" for key, does in offered(desk)} and len(shown) > 3

    at_console(bench, play, size=NARROW)


def offered(desk: Desk) -> list[tuple[str, str]]:
    """Every key of the screen, and what it does."""
    bindings = [entry.binding for entry in desk.app.screen.active_bindings.values()]
    return [(desk.app.get_key_display(binding), binding.description) for binding in bindings]


def test_a_click_on_a_key_is_the_key(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        row = desk.app.screen.query_one(KeyRow)
        await desk.pilot.click(row, offset=(1 + str(row.content).index("cell"), 0))
        await desk.draw()
        assert "the cell" in desk.text()
        row = desk.app.screen.query_one(KeyRow)
        await desk.pilot.click(row, offset=(1 + str(row.content).index("back"), 0))
        await desk.draw()
        assert desk.app.screen is desk.app.now
        await desk.pilot.click(desk.app.now.query_one(KeyRow), offset=(2, 0))
        await desk.draw()

    assert at_console(bench, play, size=WIDE).stops >= 1, "the first key is the stop"


def test_a_click_on_a_key_is_refused_as_the_key_is(bench):
    async def play(desk: Desk) -> None:
        async def click(words: str) -> None:
            row = desk.app.screen.query_one(KeyRow)
            await desk.pilot.click(row, offset=(1 + str(row.content).index(words), 0))
            await desk.settle()
            await desk.draw()

        await desk.running()
        desk.let(SECOND)
        for _ in range(2):  # one press that bounced
            await click("e end")
            desk.let(120 * MILLISECOND)
        assert "twice within 300 ms" in desk.text() and not bench.events(Kind.EPISODE_ENDED)
        await desk.press("c")
        desk.let(SECOND)
        await click("e end")
        assert "that is done on the first screen; ESC goes back to it" in desk.text()
        assert not bench.events(Kind.EPISODE_ENDED)
        await desk.press("escape")
        desk.let(SECOND)
        await click("e end")
        assert bench.events(Kind.EPISODE_ENDED), "the second that was meant"

    at_console(bench, play, size=WIDE)


@given(WORDS, WORDS, st.integers(1, 12))
def test_texts_said_to_take_the_same_room_do_so_when_textual_lays_them_out(before: str, after: str, width: int):
    if same_rows(before, after, width):
        assert Content(before).get_height({}, width) == Content(after).get_height({}, width)


def test_a_count_that_changes_takes_the_same_room_and_one_more_line_does_not():
    assert same_rows("counted 9 of 10", "counted 10 of 10", 40)
    assert not same_rows("counted 9 of 10", "counted 10 of 10", 15), "the second is wrapped"
    assert not same_rows("one", "one\ntwo", 40) and not same_rows("", "one", 40)


# -- every key by its name


async def by_name(desk: Desk, words: str, *, after_ns: int = READ_NS) -> None:
    """ctrl+p, these words, which name one key, and ENTER so long after the last of them."""
    await desk.press("ctrl+p")
    palette = desk.app.screen
    assert isinstance(palette, CommandPalette)
    await desk.type(words)
    while palette.query_one(CommandList).option_count != 1:  # they are gathered beside the screen
        await desk.pilot.pause(0.01)
    await desk.press("enter", after_ns=after_ns)
    while isinstance(desk.app.screen, CommandPalette):
        await desk.pilot.pause(0.01)
    await desk.settle()
    await desk.draw()


def test_every_key_has_a_name_and_an_enter_that_nobody_meant_lists_the_keys(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        offered = desk.app.named()
        assert [(one.does, one.key) for one in offered[:2]] == [
            ("list the keys", "?"),
            ("stop the robot now", "space, f12"),
        ]
        stages = [key for key in KEYS if key.action.startswith("reach")]
        assert len(offered) == len(KEYS) - len(stages), "this task has no stages"
        assert all(one.does for one in offered)
        now = [one.does for one in offered if not one.why_not]
        assert "Stage towels, layout-1" in now and "note something" in now, "ENTER is named after what it does now"
        against = {one.does: one.why_not for one in offered if one.why_not}
        assert against["void this episode"] == "there is no episode to void: nothing has begun"
        assert [bool(one.why_not) for one in offered] == sorted(bool(one.why_not) for one in offered)

    at_console(bench, play)


def test_a_name_does_what_its_key_does(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await by_name(desk, "hold after this trial")
        assert desk.asked() and "Hold after this trial: why?" in desk.text()
        await desk.press("escape")
        await by_name(desk, "void this episode")
        assert "there is no episode to void: nothing has begun" in desk.text()
        await by_name(desk, "stop the robot now")
        assert desk.link.stops == 1
        assert bench.events(Kind.HOLD_RAISED)[-1].body["code"] == "operator_stop"

    at_console(bench, play)


def test_what_moves_the_robot_does_so_by_name_and_only_as_it_was_offered(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        stages = next(one for one in desk.app.named() if one.does == "Stage towels, layout-1")
        await desk.press("space")
        await stages.do()
        await desk.draw()
        assert flat(refusals.CHANGED) in flat(desk.text()) and not bench.events(Kind.TRIAL_STAGING)
        await desk.press("enter", "3", "tab")
        await desk.type("tried")
        await desk.press("ctrl+s")
        await by_name(desk, "Stage towels")
        desk.let(50 * MILLISECOND)
        await desk.draw()
        assert len(bench.events(Kind.TRIAL_STAGING)) == 1

    at_console(bench, play)


def test_a_name_and_its_enter_that_come_all_at_once_order_nothing(bench):
    """As pasted text: what is chosen by its name asks when ENTER was pressed, as ENTER itself does."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await by_name(desk, "Stage towels", after_ns=0)
        desk.let(SECOND)
        await desk.draw()
        assert not bench.events(Kind.TRIAL_STAGING) and "pasted text never acts" in desk.text()

    at_console(bench, play)


def test_nothing_of_textuals_own_is_offered(bench):
    """Its Quit leaves at once, its Screenshot writes a file where the run was started."""

    async def play(desk: Desk) -> None:
        assert {one.__name__ for one in desk.app.COMMANDS} == {"KeysByName"}

    at_console(bench, play)


@pytest.mark.parametrize("words", ["[left] door", "camera 'a': [Errno 19] gone [/half]", "held [/bold", "a\\[b]"])
def test_a_name_and_what_stands_against_it_are_shown_as_they_were_written(words: str):
    """What looks like markup was left out, or ended the console."""

    class Offering(App[None]):
        COMMANDS = {KeysByName}  # noqa: RUF012  (as Textual has it)

        def named(self) -> list[Named]:
            async def nothing() -> None: ...

            return [Named(f"acknowledge: {words}", "a", f"not: {words}", nothing)]

    async def play() -> None:
        app = Offering()
        async with app.run_test(size=(100, 30)) as pilot:
            for typed in ("", "acknow"):
                app.push_screen(CommandPalette())
                await pilot.pause()
                await pilot.press(*typed)
                offered = app.screen.query_one(CommandList)
                while offered.option_count != 1:
                    await pilot.pause(0.01)
                shown = str(offered.get_option_at_index(0).prompt)
                assert shown == f"acknowledge: {words}\na · not now: not: {words}"
                await pilot.press("escape", "escape")

    asyncio.run(play())


def test_what_matches_a_name_stands_out_behind_brackets_too():
    matcher = Matcher("gone")
    found = highlighted(matcher, "[red] gone")
    assert found.plain == "[red] gone" and [(one.start, one.end) for one in found.spans] == [
        (6, 7),
        (7, 8),
        (8, 9),
        (9, 10),
    ]


@given(st.text(st.sampled_from("[]/\\ab #@$=\"' .")))
def test_any_text_is_shown_as_it_is(text: str):
    assert Content.from_markup(literal(text)).plain == text
