"""What else is read and typed of an evening, by key presses: pages, the review, a person's trial, the report."""

from __future__ import annotations

import asyncio
import errno
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from support.runs.run_bench import Bench
from support.screens.console_bench import NARROW, WIDE, Desk, at_console, both_sizes, evening, flat
from support.screens.console_pictures import PICTURES, shots
from support.screens.unhurried import Unhurried
from textual.events import Key

from labctl.bus import Message
from labctl.cli.console import in_words
from labctl.core.events import Kind
from labctl.core.reviewed import queue
from labctl.errors import StateError
from labctl.store.campaign import Campaign
from labctl.ui.console.campaigns import Campaigns, Entry
from labctl.ui.review.review import Review

DRAWN = {
    "run": "you counted 1 of 2 items moved",
    "score": "so 1 remains in the source tote",
    "staging": "match 78 of 100, scene differs",
    "review": "the detector saw 1 moved, the assessor 2",
    "hold": "Acknowledge: ann stopped the robot",
    "hand": "bring the leader to the robot",
}


@both_sizes
def test_what_was_scored_is_reviewed_and_corrected_without_an_arm_on_any_screen(tmp_path, size):
    """The operator counts one too few; the assessor reads the episode again and corrects the outcome."""
    seen: list[str] = []

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.event("success", episode)
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s")

    async def judge(bench: Bench) -> None:
        def load() -> list[Any]:
            with Campaign.open(bench.campaign.folder) as opened:
                return queue(opened.record())

        def tell(verb: str, trial: str, **args: Any) -> None:
            reply = bench.command(verb, role="assessor", trial=trial, **args)
            if not reply["ok"]:
                raise StateError(reply["error"])

        app = Review(
            load,
            lambda trial, operations, seen: tell("review", trial, operations=operations, seen=seen),
            lambda trial, outcome, why, seen: tell("correct", trial, why=why, seen=seen, **outcome),
            lambda episode: None,
            hands=Unhurried(),
        )
        async with app.run_test(size=size) as pilot:

            def text() -> str:
                seen.append(
                    "\n".join("".join(s.text for s in strip) for strip in app.screen._compositor.render_strips())
                )
                return flat(seen[-1])

            await pilot.pause()
            assert "1 in dispute, 1 of 1 not reviewed" in text()
            assert "✖ the detector saw 1 moved" in text() and "assessor 0" in text()
            await pilot.press("enter")
            await pilot.pause()
            assert not bench.events(Kind.OPERATIONS_REVIEWED), "witnesses that differ cannot be confirmed"
            await pilot.press("w")
            await pilot.pause()
            assert "Correct the outcome" in text()
            await pilot.press("backspace", "1", "tab", "tab", "tab", *"misread", "ctrl+s")
            await pilot.pause()
            assert "all witnesses agree" in text()
            await pilot.press("enter")
            await pilot.pause()
            assert "0 in dispute, 0 of 1 not reviewed" in text()

    with evening(tmp_path) as bench:
        at_console(bench, play, size=size)
        asyncio.run(judge(bench))
        change = bench.events(Kind.OUTCOME_CORRECTED)[-1].body
        assert (change["old"]["moved"], change["new"]["moved"], change["why"]) == (0, 1, "misread")
        assert len(bench.events(Kind.OPERATIONS_REVIEWED)[-1].body["operations"]) == 1
    assert not any(secret in text for text in seen for secret in ("zebra", "sim://", "human"))


@both_sizes
def test_a_persons_trial_shows_the_device_the_clutch_the_alignment_and_the_ramp(tmp_path, size):
    async def play(desk: Desk) -> None:
        await desk.press("d")
        assert "nobody drives by hand now" in desk.text()
        await desk.press("escape")
        episode = await desk.armed()
        far = [0.1, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0]
        why = "bring the leader to the robot: joint 4 is 0.80 rad away"
        await desk.hand(episode, waits=why, gap_rad=far)
        assert f"by hand (gello): {why}" in flat(desk.text()) and "ARMED" in desk.text()
        await desk.press("d")
        text = desk.text()
        assert "device   gello" in text and "clutch   held" in text and "at most 0.6 rad before go" in text
        assert next(line for line in text.splitlines() if "too far" in line).strip().startswith("joint 4")
        await desk.hand(episode, gap_rad=[0.1] * 7)
        assert "too far" not in desk.text() and "the hand is ready; keep holding" in desk.text()
        await desk.press("escape", "enter")
        await desk.wait(4.0)
        await desk.go(episode)
        await desk.hand(episode, ramp=0.5, gap_rad=[0.1] * 7)
        assert "the hand has the robot" in flat(desk.text())
        await desk.press("d")
        assert "50 % of the wish gets through" in desk.text()
        await desk.hand(episode, waits="hold the clutch", engaged=False)
        assert "not held: the robot rests" in desk.text()
        await desk.press("space")
        assert desk.bench.events(Kind.EPISODE_ENDED)[-1].body["reason"] == "safety_stop", "from any page"
        assert "nobody drives by hand now" in desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play, size=size)


@both_sizes
def test_the_way_to_the_report_and_the_session_are_pages(tmp_path, size):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("s")
        assert "ann: operator, setter, assessor" in desk.text()
        await desk.press("escape", "p")
        text = desk.text()
        assert "▶ trials" in text and "0 of 2 finished, block 1 of 1" in text
        assert all(f"labctl {verb} trial-run" in text for verb in ("close", "review", "freeze", "unblind", "report"))
        await desk.press("escape", "e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s", "p")
        assert "1 of 2 finished" in desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play, size=size)


def test_digits_typed_while_the_screen_is_busy_are_taken_in_their_order(tmp_path):
    """A wrong digit is taken back and the right one typed before the screen has looked at either."""

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter")
        for key, char in (("2", "2"), ("backspace", None), ("1", "1")):
            desk.app.post_message(Key(key, char))
        await desk.settle()
        assert "so 1 remains in the source tote" in desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play)


@pytest.mark.parametrize(
    ("correction", "left"),
    [(("ctrl+u",), "p08"), (("ctrl+a", "ctrl+k"), "p08"), (("left", "left"), "pp0807"), (("home",), "p08p07")],
)
def test_what_moves_or_deletes_in_a_line_comes_in_the_order_in_which_it_was_typed(tmp_path, correction, left):
    """Ctrl-U and a new id in one go left an empty line: the id was typed first and deleted then."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "n")
        for char in "p07":
            desk.app.post_message(Key(char, char))
        await desk.settle()
        for key in correction:
            desk.app.post_message(Key(key, None))
        for char in "p08":
            desk.app.post_message(Key(char, char))
        await desk.settle()
        assert desk.app.focused.value == left

    with evening(tmp_path) as bench:
        at_console(bench, play)


def test_words_of_people_are_shown_as_they_were_written(tmp_path):
    """What looks like markup is none: it would hide words, or end the console."""
    note = "the [red] lamp [/] flickers [/bold"

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        assert desk.bench.command("session_close", handover=note)["ok"]
        await desk.wait(0.2)
        assert note in flat(desk.text())
        await desk.press("s")
        assert note in flat(desk.text())
        await desk.press("escape", "enter", "enter")
        assert desk.bench.command("wait", after="trial", why=note)["ok"]
        await desk.wait(0.2)
        await desk.running()
        await desk.press("e", "e")
        await desk.press("w")
        assert desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play, size=WIDE)


def test_a_report_is_made_from_the_list_of_campaigns_step_by_step_to_its_path(tmp_path):
    entries = [Entry("first", "unblinded", 4, 4, False, ""), Entry("second", "unblinded", 4, 4, False, "")]
    asked: list[str] = []

    def make(name: str, say: Any) -> Path:
        asked.append(name)
        say("1/4 verifying the record")
        if name == "second":
            raise StateError("the chain is broken at 17")
        say("3/4 working out the statistics")
        return Path("/lab/reports/first/report.html")

    async def session() -> list[str]:
        app, seen = Campaigns(entries, make), []
        async with app.run_test(size=NARROW) as pilot:
            for keys in (("enter",), ("escape", "enter"), ("escape", "down", "enter"), ("escape", "enter")):
                await pilot.press(*keys)
                await app.workers.wait_for_complete()
                await pilot.pause()
                seen.append(str(app.screen.query_one("#lines").content))  # type: ignore[attr-defined]
        return seen

    made, _, refused, again = asyncio.run(session())
    assert again == refused
    assert asked == ["first", "second", "second"], "what failed is tried anew, and what is there is not"
    assert "3/4 working out the statistics" in made and made.endswith("/lab/reports/first/report.html")
    assert refused.endswith("✖ no report: the chain is broken at 17")


def test_a_report_that_is_being_made_is_looked_at_again_and_not_begun_a_second_time(tmp_path):
    """Two would write into one folder at once."""
    asked: list[str] = []
    go_on = threading.Event()

    def make(name: str, say: Any) -> Path:
        asked.append(name)
        say("1/4 verifying the record")
        assert go_on.wait(240.0)
        return Path("/lab/reports/first/report.html")

    async def session() -> str:
        app = Campaigns([Entry("first", "unblinded", 4, 4, False, "")], make)
        async with app.run_test(size=NARROW) as pilot:
            await pilot.press("enter", "escape", "enter")
            await pilot.pause()
            go_on.set()
            await app.workers.wait_for_complete()
            await pilot.pause()
            return str(app.screen.query_one("#lines").content)  # type: ignore[attr-defined]

    assert asyncio.run(session()).endswith("/lab/reports/first/report.html")
    assert asked == ["first"]


@both_sizes
def test_a_switch_of_the_instruction_is_announced_counted_down_and_then_stands(tmp_path, size):
    async def play(desk: Desk) -> None:
        episode = await desk.armed()
        assert "switch at 6 s: Move the small items." in flat(desk.text()), "nobody is surprised by it"
        await desk.press("enter")
        await desk.wait(4.0)
        await desk.go(episode)
        assert "instruction now: Move the items." in flat(desk.text())
        assert "switch at 6 s (in 6 s): Move the small items." in flat(desk.text())
        await desk.wait(6.0)
        assert "switch at 6 s (due, not yet taken): Move the small items." in flat(desk.text())
        assert "instruction now: Move the items." in flat(desk.text())
        took = {"episode": episode, "number": 0, "t_ns": desk.bench.now_ns}
        desk.hear(Message("run", "switched", took, sender="controller"))
        await desk.draw()
        assert "instruction now: Move the small items." in flat(desk.text())
        assert "switch at" not in desk.text()

    tables = '[[switch]]\nname = "small"\nat_s = 6.0\ninstruction = "Move the small items."\n'
    with evening(tmp_path, link=tables) as bench:
        at_console(bench, play, size=size)


def test_a_report_that_this_machine_refuses_is_said_in_its_words_and_the_screen_stays():
    """It was a traceback, and the end of the screen."""

    def refused() -> Path:
        raise PermissionError(errno.EACCES, "Permission denied", "reports/first")

    async def session() -> str:
        app = Campaigns([Entry("first", "unblinded", 4, 4, False, "")], lambda name, say: in_words(refused))
        async with app.run_test(size=NARROW) as pilot:
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            return str(app.screen.query_one("#lines").content)  # type: ignore[attr-defined]

    said = "✖ no report: reports/first: not allowed (Permission denied); check its owner and permissions"
    assert asyncio.run(session()) == said


def test_a_campaign_that_does_not_hold_is_verified_before_all_else():
    entries = [Entry(phase, phase, 1, 2, False, "", broken=True) for phase in ("unblinded", "open")]

    async def session() -> list[str]:
        app, said = Campaigns(entries, lambda name, say: Path(name)), []
        async with app.run_test(size=NARROW) as pilot:
            for keys in (("enter",), ("down", "enter")):
                await pilot.press(*keys)
                said.append(str(app.query_one("#said").render()))
        return said

    assert asyncio.run(session()) == [
        f"{phase} is {phase}, does not hold; next: labctl verify {phase}" for phase in ("unblinded", "open")
    ]


@pytest.mark.thorough
def test_every_picture_of_the_guide_is_drawn_from_a_simulated_trial_and_fetches_nothing(tmp_path: Path):
    found = {}
    for name, svg in shots(tmp_path):
        words = re.sub(r"<[^>]+>", " ", svg).replace("&#160;", " ")
        assert DRAWN[name] in " ".join(words.split()), name
        assert "url(" not in re.sub(r"url\(#[^)]*\)", "", svg) and "@font-face" not in svg
        found[name] = svg
    assert set(found) == set(DRAWN) == {path.stem.removeprefix("console_") for path in PICTURES.glob("console_*.png")}
