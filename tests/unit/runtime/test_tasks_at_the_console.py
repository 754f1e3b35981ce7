"""A task in stages, by success or by a rubric: what a person says of it is taken when it fits, and refused in one line
at every door when it does not; what is journalled of it outlives the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.reviewed_now import correct
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.reviewed import queue
from labctl.errors import InputError
from labctl.store.campaign import Campaign


def bench_of(folder: Path, condition: str, **protocol: str) -> Iterator[Bench]:
    opened = open_tasks(folder, conditions=[condition], protocol=protocol)
    with Campaign.open(opened.folder, writer=True) as campaign:
        yield Bench(campaign)


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Bench]:
    yield from bench_of(tmp_path, "stages")


@pytest.fixture
def score(tmp_path: Path) -> Iterator[Bench]:
    yield from bench_of(tmp_path, "score")


@pytest.fixture
def success(tmp_path: Path) -> Iterator[Bench]:
    yield from bench_of(tmp_path, "over-base")


def ended(bench: Bench) -> None:
    """The episode at hand runs to its budget and is sealed."""
    episode = bench.running()
    bench.wait(31 * SECOND)
    bench.seal(episode)


def test_a_stage_counts_at_the_moment_it_is_reached_after_those_before_and_is_taken_back(stages: Bench) -> None:
    stages.running()
    go_ns = stages.now_ns
    assert stages.command("reach", stage=1)["ok"] and stages.shown()["reached"] == 1
    assert "no stage 3; the task has 1 first over, 2 second over" in stages.command("reach", stage=3)["error"]
    assert "stage 1 is reached already; the next is 2" in stages.command("reach", stage=1)["error"]
    stages.wait(SECOND)
    assert stages.command("reach", stage=2)["ok"] and stages.command("reach")["ok"]
    stages.wait(SECOND)
    assert stages.command("reach", stage=2)["ok"]
    stages.campaign.close()
    with Campaign.open(stages.campaign.folder) as campaign:
        (episode,) = campaign.record().episodes.values()
    assert episode.reached_ns == (go_ns, go_ns + 2 * SECOND), "of a stage taken back the later time counts"


def test_a_later_stage_does_not_count_before_the_one_before_it(stages: Bench) -> None:
    stages.begin()
    assert "no episode is running" in stages.command("reach", stage=1)["error"]
    stages.go(stages.start())
    refused = stages.command("reach", stage=2)["error"]
    assert "a stage counts after those before; the next is 1" in refused
    assert "no stage is reached" in stages.command("reach")["error"] and not stages.events(Kind.STAGE_REACHED)


def test_where_early_ends_are_forbidden_a_task_that_is_done_may_be_ended(stages: Bench) -> None:
    stages.running()
    assert "forbids" in stages.command("end")["error"]
    for number in (1, 2):
        assert stages.command("reach", stage=number)["ok"]
    assert stages.command("end")["ok"]


def test_what_was_seen_is_proposed_and_scored_with_its_times(stages: Bench) -> None:
    episode = stages.running()
    stages.wait(2 * SECOND)
    assert stages.command("reach", stage=1)["ok"]
    stages.wait(29 * SECOND)
    stages.seal(episode)
    shown = stages.shown()
    assert shown["measured"] == {"reached_s": [2.0], "score": None} and shown["proposal"] is None
    assert [step["name"] for step in shown["rules"]["steps"]] == ["first over", "second over"]
    assert stages.command("score", role="assessor", reached_s=[2.0], tags=["dropped"])["ok"]
    (event,) = stages.events(Kind.OUTCOME_RECORDED)
    assert event.body["outcome"]["reached_s"] == [2.0] and event.body["outcome"]["moved"] == 0


def by_score(bench: Bench, good: dict[str, Any], outcome: dict[str, Any]) -> str:
    return str(bench.command("score", role="assessor", **outcome).get("error", ""))


def by_correction(bench: Bench, good: dict[str, Any], outcome: dict[str, Any]) -> str:
    assert not by_score(bench, {}, good)
    trial = bench.events(Kind.OUTCOME_RECORDED)[-1].trial
    return str(bench.command("correct", role="assessor", trial=trial, why="x", **outcome).get("error", ""))


def by_correction_without_a_run(bench: Bench, good: dict[str, Any], outcome: dict[str, Any]) -> str:
    assert not by_score(bench, {}, good)
    trial = bench.events(Kind.OUTCOME_RECORDED)[-1].trial
    bench.campaign.close()
    try:
        correct(bench.campaign.folder, trial, outcome, who="ann", why="x")
    except InputError as error:
        return str(error)
    return ""


Door = Callable[[Bench, dict[str, Any], dict[str, Any]], str]
DOORS = pytest.mark.parametrize("door", [by_score, by_correction, by_correction_without_a_run])
ITEMS = {"items_staged": 2, "moved": 2, "lost": 0, "remaining": 0}


@DOORS
@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (ITEMS, "task 'in order' is measured by stages and the outcome has items_staged; it needs reached_s"),
        ({}, "has no reached_s"),
        ({"reached_s": [1.0], "score": 0.5}, "the outcome has score"),
        ({"reached_s": [1.0, 2.0, 3.0]}, "at most 2: first over, second over"),
        ({"reached_s": [2.0, 1.0]}, "not before the stage before it"),
        ({"reached_s": [-1.0]}, "seconds after go"),
        ({"reached_s": [30.5]}, "the episode was over 30 s after go"),
        ({"reached_s": [1.0], "stage_reached": "first over"}, "is not in the protocol"),
        ({"reached_s": [], "tags": ["wrong object"]}, "tag 'wrong object' is not in the protocol; there: dropped"),
    ],
)
def test_what_is_no_outcome_in_stages_is_refused(stages: Bench, door: Door, outcome: dict[str, Any], why: str) -> None:
    ended(stages)
    assert why in door(stages, {"reached_s": [1.0, None]}, outcome)


@DOORS
@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ({"score": 1.01}, "score is 1.01; it must be a number from 0 to 1"),
        ({"score": -0.1}, "score is -0.1"),
        ({"reached_s": [1.0]}, "task 'neatly' is measured by score and the outcome has reached_s"),
        ({"moved": 1}, "the outcome has moved; it needs score"),
    ],
)
def test_what_is_outside_the_rubric_is_refused(score: Bench, door: Door, outcome: dict[str, Any], why: str) -> None:
    ended(score)
    assert why in door(score, {"score": 0.35}, outcome)


@DOORS
def test_a_success_is_one_time_or_none_and_a_task_has_tags_of_its_own(success: Bench, door: Door) -> None:
    ended(success)
    assert not door(success, {"reached_s": []}, {"reached_s": [3.5], "tags": ["dropped", "wrong object"]})


def test_a_score_is_not_taken_where_items_are_counted(tmp_path: Path) -> None:
    for bench in bench_of(tmp_path, "items"):
        ended(bench)
        refused = bench.command("score", role="assessor", **ITEMS, score=1.0)["error"]
        assert "measured in items and the outcome has score; leave it out" in refused
        assert bench.command("score", role="assessor", **ITEMS)["ok"]


def test_a_controller_is_told_the_instruction_of_its_condition_and_has_the_budget_of_its_task(tmp_path: Path) -> None:
    for bench in bench_of(
        tmp_path, "stages", **{'name = "stages"\n': 'name = "stages"\ninstruction = "Both, please."\n'}
    ):
        bench.running()
        told = [message.body for message in bench.sent if message.kind == "prepare"]
        assert [body["instruction"] for body in told] == ["Both, please."]
        assert bench.shown()["rules"]["budget_s"] == 30.0
        staged = [message.body["condition"] for message in bench.sent if message.kind == "stage"]
        assert staged[-1]["items"] == 2


def test_of_an_episode_without_operations_the_review_confirms_the_outcome(stages: Bench) -> None:
    ended(stages)
    assert stages.command("score", role="assessor", reached_s=[1.0, 2.0])["ok"]
    (item,) = queue(record_of(stages.events()))
    assert item.reviewed is None and item.task is not None and item.task.name == "in order" and not item.differences
    operation = {"t_ns": 0, "result": "success"}
    refused = stages.command("review", role="assessor", trial=item.trial.id, operations=[operation])["error"]
    assert "is not counted in items; it has no operations" in refused
    assert stages.command("review", role="assessor", trial=item.trial.id, operations=[])["ok"]
    (item,) = queue(record_of(stages.events()))
    assert item.reviewed == ()
    said = {"trial": item.trial.id, "why": "a miscount", "reached_s": [1.0]}
    assert stages.command("correct", role="assessor", **said)["ok"]
    (item,) = queue(record_of(stages.events()))
    assert item.reviewed is None, "what was corrected since is confirmed anew"
    about = {"trial": item.trial.id, "role": "assessor", "seen": item.seen - 1}
    late = [stages.command("review", **about, operations=[]), stages.command("correct", **about, why="x", reached_s=[])]
    for refused in late:
        assert "was shown, its outcome was corrected; its outcome is now 1 of 2 stages: look again" in refused["error"]
    assert stages.command("review", **{**about, "seen": item.seen}, operations=[])["ok"]
