"""A second assessor: who may be one, what they say beside the outcome, and how far the two agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.reviewed_now import correct, review
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks

from labctl.clock import SECOND
from labctl.core.events import EndReason, Kind
from labctl.core.outcome import Outcome
from labctl.core.record_fold import record_of
from labctl.core.reviewed import apart, queue, to_judge
from labctl.core.task import SCORE, STAGES, SUCCESS, Task
from labctl.errors import InputError, StateError
from labctl.reporting.judgements import judgements, second_assessor
from labctl.runtime.review_writer import judge, register
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, unblind_campaign

SAID: Mapping[str, Mapping[str, Any]] = {"score": {"score": 0.5}, "stages": {"reached_s": [1.0]}}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Two conditions of one block each, two episodes a block, scored by ann, who was there with bob; tim reviews."""
    opened = open_tasks(tmp_path, conditions=["score", "stages"])
    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        bench.begin_session(bob=["assessor"])
        while bench.shown()["trial"]:
            bench.stage()
            episode = bench.start()
            bench.go(episode)
            bench.wait(31 * SECOND)
            bench.seal(episode)
            assert bench.command("score", role="assessor", **SAID[bench.shown()["condition"]])["ok"]
        assert bench.command("session_close", handover="")["ok"]
    for person in ("tim", "eva"):
        register(opened.folder, person)
    yield opened.folder


def trials(folder: Path, condition: str) -> list[str]:
    with Campaign.open(folder) as campaign:
        return [trial.id for trial, _ in campaign.record().scored if trial.condition == condition]


def test_who_was_there_or_knows_what_was_said_is_no_second_assessor(folder: Path) -> None:
    (one, *_), (other, *_) = trials(folder, "score"), trials(folder, "stages")
    with pytest.raises(StateError, match=r"bob was in the session of .* judges by the video alone"):
        judge(folder, one, {"score": 0.5}, who="bob")
    review(folder, one, [], who="tim")
    with pytest.raises(StateError, match="tim knows what was said of"):
        judge(folder, one, {"score": 0.5}, who="tim")
    judge(folder, other, {"reached_s": [None]}, who="tim")
    with pytest.raises(StateError, match=r"tim has judged e-.* already"):
        judge(folder, other, {"reached_s": []}, who="tim")
    with pytest.raises(StateError, match=r"labctl review .* --who zoe --register"):
        judge(folder, other, {"reached_s": []}, who="zoe")
    with Campaign.open(folder) as campaign:
        record = campaign.record()
        assert len(to_judge(record, "tim")) == 2 and len(to_judge(record, "eva")) == 4 and not to_judge(record, "ann")


@pytest.mark.parametrize(
    ("condition", "outcome", "why"),
    [
        ("score", {"score": 1.5}, "score is 1.5; it must be a number from 0 to 1"),
        ("score", {"reached_s": [None]}, "the outcome has reached_s; it needs score"),
        ("stages", {"reached_s": [None] * 3}, "at most 2: first over, second over"),
    ],
)
def test_what_is_outside_its_measure_is_refused_of_a_second_assessor_too(
    folder: Path, condition: str, outcome: dict[str, Any], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        judge(folder, trials(folder, condition)[0], outcome, who="eva")


def test_a_disagreement_comes_first_in_the_review_and_is_settled_by_who_goes_over_it(folder: Path) -> None:
    alike, differs = trials(folder, "score")
    judge(folder, alike, {"score": 0.45}, who="eva")
    judge(folder, differs, {"score": 0.8}, who="eva")
    with Campaign.open(folder) as campaign:
        first, *others = queue(campaign.record())
    assert first.trial.id == differs
    assert first.differences == ["a second assessor says score 0.8, the first score 0.5"]
    assert not any(item.differences for item in others)
    correct(folder, differs, {"score": 0.75}, who="tim", why="nearly folded, by the video")
    review(folder, differs, [], who="tim")
    with Campaign.open(folder) as campaign:
        record = campaign.record()
    assert not any(item.differences for item in queue(record))
    (found,) = second_assessor([record])
    assert (found["n"], found["same"], found["disagreements"], found["adjudicated"]) == (2, 0.5, 1, 1)
    assert record.state.trials[differs].outcome.score == 0.75 and found["statistic"] == "icc"


def test_a_review_from_before_the_second_one_judged_settled_nothing(folder: Path) -> None:
    one, _ = trials(folder, "score")
    review(folder, one, [], who="tim")
    judge(folder, one, {"score": 0.1}, who="eva")
    for over in (0, 1):
        with Campaign.open(folder) as campaign:
            (found,) = second_assessor([campaign.record()])
            (open_,) = [item.differences for item in queue(campaign.record()) if item.trial.id == one]
        assert (found["disagreements"], found["adjudicated"], len(open_)) == (1, over, 1 - over)
        review(folder, one, [], who="tim")


def test_agreement_is_by_task_against_what_stood_when_the_second_one_judged(folder: Path) -> None:
    """Stages 1 and 1 against 1 and 2: one same of two; kappa is 0, as the first always says the same (Cohen 1968)."""
    one, two = trials(folder, "stages")
    judge(folder, one, {"reached_s": [None]}, who="eva")
    judge(folder, two, {"reached_s": [None, None]}, who="eva")
    correct(folder, two, {"reached_s": [1.0, None]}, who="tim", why="the second lies there too")
    with Campaign.open(folder) as campaign:
        (found,) = second_assessor([campaign.record()])
    assert (found["task"], found["measure"], found["statistic"]) == ("in order", "stages", "weighted_kappa")
    assert found["agreement"] == pytest.approx(0.0) and found["same"] == 0.5


def test_what_a_second_assessor_said_changes_no_outcome_and_is_in_the_journal(folder: Path) -> None:
    (trial, _) = trials(folder, "score")
    judge(folder, trial, {"score": 0.9}, who="eva")
    with Campaign.open(folder) as campaign:
        events = campaign.events()
    assert events[-2 if events[-1].kind != Kind.OUTCOME_JUDGED else -1].body["outcome"]["score"] == 0.9
    assert record_of(events).state.trials[trial].outcome.score == 0.5


@pytest.mark.parametrize(
    ("task", "one", "other", "differ"),
    [
        (SCORE, {"score": 0.5}, {"score": 0.59}, False),
        (SCORE, {"score": 0.5}, {"score": 0.6}, True),
        (SUCCESS, {"reached_s": (1.0,), "moved": 1, "remaining": 0}, {"reached_s": (None,)}, False),
        (STAGES, {"reached_s": (1.0,)}, {"reached_s": ()}, True),
        (None, {"moved": 1, "remaining": 0}, {"moved": 0}, True),
    ],
)
def test_two_scores_disagree_from_a_tenth_on_and_of_other_measures_any_difference_counts(
    task: str | None, one: dict[str, Any], other: dict[str, Any], differ: bool
) -> None:
    whole = {"items_staged": 1, "moved": 0, "lost": 0, "remaining": 1, "end_reason": EndReason.BUDGET}
    of = None if task is None else Task("t", task, 1, 30.0, "")
    assert apart(of, Outcome(**{**whole, **one}), Outcome(**{**whole, **other})) == differ


def test_no_count_of_items_is_held_against_a_task_that_is_not_counted_in_items(folder: Path) -> None:
    """`moved` of such an outcome is whether the whole task was done."""
    close_campaign(folder, who="tim")
    freeze_campaign(folder, who="tim", unreviewed=True)
    unblind_campaign(folder, who="tim")
    with Campaign.open(folder) as campaign:
        record = campaign.record()
    tallied = {name: replace(episode, counts=((2, 1),)) for name, episode in record.episodes.items()}
    record = replace(record, episodes=tallied)
    assert judgements([record], sorted(set(record.arms.values())))["witnesses"] == []
