"""Evenings that go wrong, by key presses, in a small terminal and in a large one: what is said, and what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.run_bench import Bench
from support.screens.console_bench import NARROW, WIDE, BenchLink, Desk, at_console, both_sizes, evening, flat

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.startup_recovery import recover
from labctl.store.campaign import Campaign
from labctl.store.traces import TraceStore
from labctl.ui.console import stops_and_voids
from labctl.ui.console.form import Line


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
        text = flat(desk.text())
        assert "camera wrist: 20 frames missing, marked as a gap in this episode, which counts all the same" in text
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
        concluded = recover(CampaignWriter(campaign, old.clock.anchor, old.lines.append, "run"), traces)
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
        assert "no word from the run process" in text and "the stop key still reaches the robot" in text
        await desk.wait(0.2)
        assert "no word from the run process" not in flat(desk.text())

    with evening(tmp_path) as bench:
        at_console(bench, play)


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
        assert "so 1 remains in the source tote; a device ended this episode as all done" in words(desk)
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


def test_a_link_that_is_cut_is_not_asked_for_more_than_once_a_second(tmp_path):
    tried: list[int] = []

    async def play(desk: Desk) -> None:
        # type: ignore[method-assign, func-returns-value]
        desk.link.renew = lambda: tried.append(desk.bench.now_ns) or False
        for _ in range(50):
            desk.bench.clock.sleep_until(desk.bench.now_ns + SECOND // 10)
            await desk.draw()

    with evening(tmp_path) as bench:
        assert isinstance(at_console(bench, play), BenchLink)
    assert tried == [104.5 * SECOND, 105.5 * SECOND, 106.5 * SECOND], (
        "heard last at 101.5 s, silent for 3 s, then tried"
    )


# -- what was typed in a form that had to be put aside


async def silent(desk: Desk) -> None:
    """The run process says nothing for so long that the open form is put aside, and is heard again."""
    desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
    await desk.draw()
    assert not desk.asked() and "what you wrote is kept for later" in flat(desk.text())
    await desk.wait(1.0)


def lines(desk: Desk) -> dict[str, str]:
    return {line.id or "": line.value for line in desk.app.screen.query(Line)}


async def ended(desk: Desk) -> None:
    episode = await desk.running()
    await desk.press("e", "e")
    await desk.sealed(episode)


def test_a_score_that_was_begun_comes_back_for_its_own_episode_alone(tmp_path):
    """Numbers of the episode before were recorded: the form for the next one has the same title."""

    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("enter", "backspace")
        await desk.type("2")
        await silent(desk)
        await desk.press("enter")
        assert lines(desk) == {"moved": "2", "lost": "0", "notes": ""}
        await desk.press("tab", "backspace")
        await desk.type("1")
        await silent(desk)
        assert desk.bench.command("score", role="assessor", items_staged=2, moved=1, lost=1, remaining=0, notes="")[
            "ok"
        ]
        await desk.draw()
        await ended(desk)
        await desk.press("enter")
        assert lines(desk) == {"moved": "0", "lost": "0", "notes": ""}

    with evening(tmp_path) as bench:
        at_console(bench, play)


def test_a_form_that_asks_less_than_the_one_that_was_put_aside_opens(tmp_path):
    """A machine's event stands behind the void meanwhile, or it is the next trial's before go: nobody confirms."""

    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("v", "tab")
        await desk.type("p09")
        await silent(desk)
        assert desk.app._state is not None
        form = stops_and_voids.AskVoid({**desk.app._state, "evidence": 7, "needs_second": False})
        desk.app._open(form, lambda answer: None)
        await desk.settle()
        assert desk.app.screen is form and not lines(desk)
        await desk.press("escape", "enter", "ctrl+s")
        await desk.armed()
        await desk.press("v")
        assert desk.asked() and not lines(desk)

    with evening(tmp_path) as bench:
        at_console(bench, play)


def test_people_who_came_meanwhile_are_not_put_back_by_what_was_typed_before(tmp_path):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "j")
        await desk.type("ann, cal")
        await silent(desk)
        await desk.press("j")
        assert lines(desk)["role-operator"] == "ann, cal"
        await desk.type("ann, cay")
        await silent(desk)
        people = [{"id": "ann", "roles": ["operator", "setter", "assessor"]}, {"id": "bob", "roles": ["operator"]}]
        assert desk.bench.command("people", people=people)["ok"]
        await desk.draw()
        await desk.press("j")
        assert lines(desk)["role-operator"] == "ann, bob"

    with evening(tmp_path) as bench:
        at_console(bench, play)


def test_why_one_stop_was_made_is_not_the_reason_of_the_next(tmp_path):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("space")
        await desk.sealed(episode)
        await desk.press("a", "1", "tab")
        await desk.type("it went for the lamp")
        await silent(desk)
        await desk.press("a")
        assert lines(desk)["why"] == "it went for the lamp"
        await desk.press("tab")
        await desk.type(" again")
        await silent(desk)
        assert desk.bench.command("acknowledge", code="operator_stop", cause="danger", why="the lamp")["ok"]
        await desk.draw()
        desk.bench.command("stop")
        await desk.draw()
        await desk.press("a")
        assert desk.asked() and lines(desk)["why"] == ""

    with evening(tmp_path) as bench:
        at_console(bench, play)
