"""Evenings that go wrong, by key presses, in a small terminal and in a large one: what is said, and what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from labctl.ui.console.campaigns import Campaigns, Entry
from labctl.ui.console.review import Review
from support.bench import Bench
from support.campaigns import HUMAN, make_campaign, policy
from support.console import NARROW, WIDE, BenchLink, Desk, at_console
from textual.events import Key

from labctl.boot import recover
from labctl.bus import Message
from labctl.campaign import Campaign
from labctl.clock import SECOND
from labctl.desk import Desk as WritersDesk
from labctl.errors import StateError
from labctl.events import Kind
from labctl.reviewed import queue
from labctl.traces import TraceStore

both_sizes = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])


@contextmanager
def evening(tmp_path: Path, **given: Any) -> Iterator[Bench]:
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    folder = make_campaign(tmp_path, arms, items=2, budget=20.0, **given).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def flat(text: str) -> str:
    """Without line breaks and what stands beside the card: a long line may be wrapped anywhere."""
    return " ".join(text.split())


@both_sizes
def test_a_lost_item_is_proposed_scored_and_kept(tmp_path, size):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.event("success", episode)
        await desk.press("m")
        await desk.event("lost", episode, cause="it fell beside the tote")
        await desk.wait(0.2)
        await desk.sealed(episode)
        assert "the detector proposes: moved 1, lost 1, remaining 0" in flat(desk.text())
        assert "the two differ" not in desk.text()
        await desk.press("enter")
        assert "moved 1, lost 1" in desk.text() and "so 0 remain in the source tote" in desk.text()
        await desk.press("ctrl+s")
        assert "1/2 trials" in desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play, size=size)
        outcome = bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]
    assert (outcome["moved"], outcome["lost"], outcome["remaining"]) == (1, 1, 0)


@both_sizes
def test_a_lost_camera_is_a_hold_before_an_episode_and_a_marked_gap_in_it(tmp_path, size):
    wrist = "camera:wrist"

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "enter")
        await desk.home()
        desk.bench.camera(wrist, "the cable is out")
        await desk.draw()
        text = flat(desk.text())
        assert "something stands against going on" in text and "the cable is out" in text
        assert "to go on: camera wrist delivers pictures again; labctl goes on trying" in text
        await desk.press("enter")
        assert not desk.bench.events(Kind.SCENE_COMMITTED)
        await desk.press("w")
        assert "it goes with its cause" in desk.text()
        await desk.press("escape", "c")
        assert "no pictures: the cable is out" in desk.text()
        desk.bench.camera(wrist, "")
        await desk.draw()
        assert "no pictures" not in desk.text(), "a page follows what happens"
        await desk.press("escape", "enter")
        episode = await desk.ready()
        await desk.press("enter")
        await desk.wait(4.0)
        await desk.go(episode)
        desk.bench.camera(wrist, "the cable is out")
        await desk.draw()
        text = flat(desk.text())
        assert "RUNNING" in text and "the episode goes on, the gap is marked" in text
        assert "before the next trial" in text and "something stands against going on" not in text
        gap = {"stream": "camera/wrist", "from_ns": 1, "to_ns": 2, "lost": 20, "why": "the cable is out", "holes": 1}
        desk.bench.camera(wrist, "")
        desk.hear(Message("run", "gap", {"episode": episode, **gap}, sender=wrist))
        await desk.press("e", "e")
        assert "camera wrist: 20 frames missing, marked as a gap in this episode" in flat(desk.text())
        await desk.sealed(episode)
        assert "frames missing, marked as a gap in this episode" in flat(desk.text()), "with what came after it"
        await desk.press("enter", "ctrl+s")

    with evening(tmp_path, cameras=True) as bench:
        at_console(bench, play, size=size)
        assert bench.events(Kind.GAP)[0].body["lost"] == 20
        assert len(bench.events(Kind.OUTCOME_RECORDED)) == 1


def resume(old: Bench, folder: Path) -> Bench:
    """The run process was killed; another one reads the journal, concludes, and begins."""
    with Campaign.open(folder, writer=True) as campaign:
        traces = TraceStore.open(campaign.traces_url, campaign.opened["campaign"], durable=False)
        concluded = recover(WritersDesk(campaign, old.clock.anchor, old.lines.append, "run"), traces)
        traces.close()
    campaign = Campaign.open(folder, writer=True).__enter__()
    bench = Bench(campaign, clock=old.clock, recovered=concluded)
    bench.hear(*(Message("run", "hello", sender=name) for name in ("arm", "recorder")))
    return bench


@pytest.mark.parametrize(("size", "rule"), [(NARROW, "void"), (WIDE, "score")], ids=["80x24-void", "200x60-score"])
def test_a_killed_run_is_said_and_the_same_console_goes_on_with_the_next_one(tmp_path, size, rule):
    ends: list[Bench] = []

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        desk.link.there = False  # killed: nothing is journalled, nobody answers
        desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
        await desk.draw()
        text = flat(desk.text())
        assert "the run process is gone" in text and "whatever moved has stopped" in text
        assert "start it again: labctl run trial-run; this console attaches to it by itself" in text
        await desk.press("enter", "m", "e", "e", "v")
        new = resume(desk.bench, desk.link.folder)
        ends.append(new)
        desk.link.next = desk.bench = new
        await desk.wait(2.0)
        text = flat(desk.text())
        assert "the run process is gone" not in text
        assert "the run was interrupted; what it found" in text and f"episode {episode} ended" in text
        if rule == "void":
            assert "NEXT" in text and "stage its scene anew" in text
            assert await desk.running() != episode
            assert "the run was interrupted" not in desk.text()
        else:
            assert "SCORING" in text
            await desk.press("enter", "ctrl+s")
            assert "1/2 trials" in desk.text()

    with evening(tmp_path, process_lost=rule) as bench:
        at_console(bench, play, size=size)
        assert ends[0].events(Kind.EPISODE_ENDED)[0].body["reason"] == "process_lost"
        assert len(ends[0].events(Kind.EPISODE_VOIDED)) == (rule == "void")
        ends[0].campaign.__exit__(None, None, None)


def test_a_run_that_hangs_is_told_apart_from_one_that_is_gone(tmp_path):
    async def play(desk: Desk) -> None:
        desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
        await desk.draw()
        text = flat(desk.text())
        assert "no word from the run process" in text and "the stop key still reaches the arm" in text
        await desk.wait(0.2)
        assert "no word from the run process" not in flat(desk.text())

    with evening(tmp_path) as bench:
        at_console(bench, play)


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
                return queue(opened.state, opened.events())

        def tell(verb: str, trial: str, **args: Any) -> None:
            reply = bench.command(verb, role="assessor", trial=trial, **args)
            if not reply["ok"]:
                raise StateError(reply["error"])

        app = Review(
            load,
            lambda trial, operations: tell("review", trial, operations=operations),
            lambda trial, outcome, why: tell("correct", trial, why=why, **outcome),
            lambda episode: None,
        )
        async with app.run_test(size=size) as pilot:

            def text() -> str:
                seen.append(
                    "\n".join("".join(s.text for s in strip) for strip in app.screen._compositor.render_strips())
                )
                return flat(seen[-1])

            await pilot.pause()
            assert "1 of 1 episodes left" in text() and "the assessor 0" in text()
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
            assert "0 of 1 episodes left" in text()

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
        why = "bring the leader to the arm: joint 4 is 0.80 rad away"
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
        assert "the hand has the arm" in flat(desk.text())
        await desk.press("d")
        assert "50 % of the wish gets through" in desk.text()
        await desk.hand(episode, waits="hold the clutch", engaged=False)
        assert "not held: the arm rests" in desk.text()
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


@both_sizes
def test_an_end_that_a_device_got_wrong_is_said_before_it_is_recorded(tmp_path, size):
    """Two placements were reported and the episode ended; one item lies in the source tote again. It is undone."""

    def words(desk: Desk) -> str:
        return flat(desk.text().replace("▊", " ").replace("▎", " "))

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.event("success", episode)
        await desk.press("m")
        await desk.event("success", episode)
        await desk.wait(0.2)
        await desk.sealed(episode)
        await desk.press("enter")
        assert "so 1 remain in the source tote; a device ended this episode as all done" in words(desk)
        assert "censored at that end" in words(desk)
        await desk.press("ctrl+s")
        assert "1/2 trials" in desk.text()
        await desk.press("u")
        assert "a device ended this episode as all done" in words(desk), "also once the next trial is shown"
        await desk.press("backspace", "2")
        assert "a device ended" not in desk.text() and "so 0 remain" in desk.text()
        await desk.press("ctrl+s")

    with evening(tmp_path) as bench:
        at_console(bench, play, size=size)
        scored = bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]
        (change,) = [event.body for event in bench.events(Kind.OUTCOME_CORRECTED)]
    assert (scored["moved"], scored["remaining"], scored["end_reason"]) == (1, 1, "all_done") and scored["wrong_end"]
    assert change["new"]["moved"] == 2 and "wrong_end" not in change["new"]


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
        assert "so 1 remain in the source tote" in desk.text()

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
        say("1/4 the record is verified")
        if name == "second":
            raise StateError("the chain is broken at 17")
        say("3/4 the statistics are worked out")
        return Path("/lab/reports/first/report.html")

    async def session() -> list[str]:
        app, seen = Campaigns(entries, make), []
        async with app.run_test(size=NARROW) as pilot:
            for keys in (("enter",), ("escape", "down", "enter")):
                await pilot.press(*keys)
                await app.workers.wait_for_complete()
                await pilot.pause()
                seen.append(str(app.screen.query_one("#lines").content))  # type: ignore[attr-defined]
        return seen

    made, refused = asyncio.run(session())
    assert asked == ["first", "second"]
    assert "3/4 the statistics are worked out" in made and made.endswith("/lab/reports/first/report.html")
    assert refused.endswith("✖ no report: the chain is broken at 17")


def test_a_link_that_is_cut_is_not_asked_for_more_than_once_a_second(tmp_path):
    tried: list[int] = []

    async def play(desk: Desk) -> None:
        desk.link.renew = lambda: tried.append(desk.bench.now_ns) or False  # type: ignore[method-assign, func-returns-value]
        for _ in range(50):
            desk.bench.clock.sleep_until(desk.bench.now_ns + SECOND // 10)
            await desk.draw()

    with evening(tmp_path) as bench:
        assert isinstance(at_console(bench, play), BenchLink)
    assert tried == [104.5 * SECOND, 105.5 * SECOND, 106.5 * SECOND], (
        "heard last at 101.5 s, silent for 3 s, then tried"
    )


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
