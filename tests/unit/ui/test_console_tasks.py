"""A task in stages, by success or by a rubric at the console: by key presses, with what stands on the screen."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from support.runs.run_bench import Bench
from support.runs.task_campaign import PICTURED, open_tasks, striped
from support.screens.console_bench import NARROW, WIDE, Desk, at_console, both_sizes, flat

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.store.campaign import Campaign
from labctl.store.pictures import load_photo

PREFERENCE = {"[analysis]": "[preference]\n[analysis]"}


def outcome_of(folder: Path, condition: str, play) -> dict:
    """What is journalled after an evening at one condition."""
    with Campaign.open(open_tasks(folder, conditions=[condition]).folder, writer=True) as campaign:
        bench = Bench(campaign)
        at_console(bench, play, size=WIDE)
        return bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]


def test_stages_are_reached_by_their_keys_taken_back_and_scored_with_their_times(tmp_path: Path) -> None:
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        assert "press 1: first over: one towel lies in the target tote" in flat(desk.text())
        desk.bench.wait(2 * SECOND)
        await desk.press("1")
        assert "reached: first over" in flat(desk.text()) and "press 2: second over" in flat(desk.text())
        desk.bench.wait(SECOND)
        await desk.press("2", "backspace")
        assert "press 2: second over" in flat(desk.text())
        await desk.wait(30)
        await desk.sealed(episode)
        await desk.press("enter")
        assert "first over (1 point): one towel lies in the target tote" in flat(desk.text())
        assert "seen at" in desk.text()
        await desk.press("ctrl+s")

    told = outcome_of(tmp_path, "stages", play)
    assert [round(seconds) for seconds in told["reached_s"]] == [2] and told["moved"] == 0


def test_a_score_is_given_by_its_rubric_whose_anchors_are_on_the_screen(tmp_path: Path) -> None:
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        assert "it is scored by its rubric when it is over" in flat(desk.text())
        await desk.wait(31)
        await desk.sealed(episode)
        await desk.press("enter")
        text = flat(desk.text())
        for anchor in ("0: nothing moved", "0.5: one over, or both crumpled", "1: both over and folded"):
            assert anchor in text
        await desk.type("1.5")
        await desk.press("ctrl+s")
        assert "the score is 1.5; it must be from 0 to 1" in flat(desk.text())
        await desk.press("backspace", "backspace", "backspace")
        await desk.type("0.7")
        await desk.press("ctrl+s")

    assert outcome_of(tmp_path, "score", play)["score"] == 0.7


@both_sizes
def test_the_pictures_of_a_rubric_stand_in_its_form_and_one_that_was_changed_is_named_instead(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    opened = open_tasks(tmp_path, conditions=["score"], protocol=PICTURED, files={"half.png": striped()})
    seen: list[bool] = []

    async def play(desk: Desk) -> None:
        for changed in (False, True):
            episode = await desk.running()
            await desk.wait(31)
            await desk.sealed(episode)
            if changed:
                (opened.folder / "photos/rubric/03-02.png").write_bytes(striped(16, 12))
            await desk.press("enter")
            text = flat(desk.text())
            assert "1: both over and folded" in text and "score, from 0 to 1" in text
            seen.append("▀▀▀▀▀▀▀▀" in text)
            line, fields = (desk.app.screen.query_one(name).region for name in ("#score", "#fields"))
            assert line.bottom <= fields.bottom, "the score is typed where it is seen"
            assert ("0.5: photo" in text) == changed
            await desk.type("0.5")
            await desk.press("ctrl+s")

    with Campaign.open(opened.folder, writer=True) as campaign:
        at_console(Bench(campaign), play, size=size, photos=partial(load_photo, opened.folder))
    assert seen == [True, False]


def test_a_success_is_one_key_and_the_episode_may_be_ended_then(tmp_path: Path) -> None:
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        assert "press 1 when it is done" in flat(desk.text())
        await desk.press("m")
        assert "seen done" in flat(desk.text())
        await desk.press("backspace", "1", "e", "e")
        assert desk.bench.events(Kind.EPISODE_ENDED)
        await desk.sealed(episode)
        await desk.press("enter")
        assert "was the task done?" in desk.text()
        await desk.press("ctrl+s")

    assert len(outcome_of(tmp_path, "over-base", play)["reached_s"]) == 1


def test_which_of_two_was_better_is_asked_before_the_next_trial_and_answered_by_keys(tmp_path: Path) -> None:
    opened = open_tasks(tmp_path, conditions=["score"], protocol={**PREFERENCE, "condition = 1": "condition = 2"})

    async def play(desk: Desk) -> None:
        for _ in range(2):
            episode = await desk.running()
            await desk.wait(31)
            await desk.sealed(episode)
            await desk.press("enter")
            await desk.type("0.5")
            assert "which of two" not in flat(desk.text())
            await desk.press("ctrl+s")
        assert "Say which of two episodes was better" in flat(desk.text())
        await desk.press("enter")
        text = flat(desk.text())
        assert "Block 1: Which of the two episodes did the task better?" in text
        assert "episode 1 of the block" in text and "the earlier one: trial 1 of" in text and "neither" in text
        await desk.press("2", "ctrl+s")
        assert "the reason why is empty" in flat(desk.text())
        await desk.type("it lay flat")
        await desk.press("ctrl+s")
        assert "Stage" in flat(desk.text()) and "Say which" not in flat(desk.text())
        await desk.press("b")
        assert "no pair of episodes waits for a word on which was better" in flat(desk.text())

    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        at_console(bench, play, size=NARROW)
        (said,) = bench.events(Kind.PREFERENCE_STATED)
    assert said.body["preferred"] == "second" and said.body["why"] == "it lay flat" and said.who == "ann"
