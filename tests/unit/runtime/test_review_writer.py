"""A review: three witnesses compared, both streams of labels kept, and nothing that contradicts the outcome."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.reviewed_now import correct, review
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.recordings import copied

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.reviewed import Item, matched, queue, seen, unsettled
from labctl.errors import InputError, StateError
from labctl.reporting.operations_table import operations
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.review_writer import finish, register
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of two scored trials of two items each, run in simulated time."""
    lab = tmp_path_factory.mktemp("lab")
    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], items=2, budget=40.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    register(folder, "bea")
    return folder


@pytest.fixture
def folder(scored: Path, tmp_path: Path) -> Path:
    return copied(scored, tmp_path / scored.name)


def items(folder: Path) -> list[Item]:
    with Campaign.open(folder) as campaign:
        return queue(campaign.record())


def test_a_confirmed_episode_is_reviewed_and_goes_to_the_end_of_the_queue(folder):
    first, second = items(folder)
    review(folder, first.trial.id, first.operations, who="bea")
    assert [item.trial.id for item in items(folder)] == [second.trial.id, first.trial.id]
    assert items(folder)[1].reviewed is not None
    assert events_of(folder)[-1].who == "bea"


def test_a_correction_that_changes_nothing_is_refused_and_not_written(folder):
    """A key of the review's form did nothing, and the same outcome was journalled as its own correction."""
    first = items(folder)[0].trial
    stands = {**first.outcome.body(), "tags": list(first.outcome.tags)}
    before = len(events_of(folder))
    with pytest.raises(InputError, match="nothing is corrected"):
        correct(folder, first.id, {k: v for k, v in stands.items() if k != "end_reason"}, who="bea", why="miscounted")
    assert len(events_of(folder)) == before


def test_a_shifted_operation_changes_the_table_but_not_the_device_stream(folder):
    first = items(folder)[0]
    shifted = [
        {**op, "t_ns": op["t_ns"] + SECOND // 10 if i == 0 else op["t_ns"]} for i, op in enumerate(first.operations)
    ]
    before = operations(record_of(events_of(folder)), labels="device")
    review(folder, first.trial.id, shifted, who="bea")
    assert operations(record_of(events_of(folder)), labels="device") == before
    times = [row["time_s"] for row in operations(record_of(events_of(folder))) if row["episode"] == first.trial.episode]
    was = [row["time_s"] for row in before if row["episode"] == first.trial.episode]
    assert times[0] == pytest.approx(was[0] + 0.1)


def test_what_contradicts_the_outcome_is_refused_and_nothing_is_written(folder):
    first, before = items(folder)[0], len(events_of(folder))
    with pytest.raises(InputError, match="the outcome says moved 2"):
        review(folder, first.trial.id, first.operations[1:], who="bea")
    late = [{**op, "t_ns": op["t_ns"] + 900 * SECOND} for op in first.operations]
    with pytest.raises(InputError, match="lies outside the episode"):
        review(folder, first.trial.id, late, who="bea")
    with pytest.raises(InputError, match="unknown result 'fell'"):
        review(folder, first.trial.id, [{**first.operations[0], "result": "fell"}], who="bea")
    assert len(events_of(folder)) == before


def test_a_corrected_outcome_makes_a_difference_until_the_events_follow(folder):
    first = items(folder)[0]
    outcome = {"items_staged": 2, "moved": 1, "lost": 1, "remaining": 0}
    correct(folder, first.trial.id, outcome, who="bea", why="one fell behind the tote")
    again = items(folder)[0]
    assert again.trial.id == first.trial.id, "differences come first"
    assert again.differences == ["the detector saw 2 moved, the assessor 1"]
    turned = [first.operations[0], {**first.operations[1], "result": "lost", "cause": "reviewed"}]
    review(folder, first.trial.id, turned, who="bea")
    assert next(item for item in items(folder) if item.trial.id == first.trial.id).differences == []


def test_a_campaign_is_reviewed_once_it_is_closed_and_every_episode_was_seen(folder):
    for item in items(folder):
        review(folder, item.trial.id, item.operations, who="bea")
    close_campaign(folder, who="bea")
    assert "freeze" in finish(folder, who="bea")
    assert freeze_campaign(folder, who="bea")[0] == "frozen, reviewed: 2 of 2 episodes looked at"
    assert events_of(folder)[-1].body["reviewed"] is True


def miscounted(folder: Path, number: int) -> Item:
    """One of its episodes, brought into dispute: the assessor corrects the count and not the events."""
    item = items(folder)[number]
    outcome = {"items_staged": 2, "moved": 1, "lost": 1, "remaining": 0}
    correct(folder, item.trial.id, outcome, who="bea", why="one fell")
    return next(one for one in items(folder) if one.trial.id == item.trial.id)


def test_a_review_is_finished_once_every_episode_in_dispute_was_seen(folder):
    miscounted(folder, 1)
    close_campaign(folder, who="bea")
    with pytest.raises(StateError, match="in dispute and not reviewed yet: 1 episode"):
        finish(folder, who="bea")
    disputed, alike = items(folder)
    review(folder, disputed.trial.id, disputed.operations[:1], who="bea")
    assert "freeze" in finish(folder, who="bea")
    assert next(one for one in items(folder) if one.trial.id == alike.trial.id).reviewed is None
    assert freeze_campaign(folder, who="bea")[0] == "frozen, reviewed: 1 of 2 episodes looked at"


def test_a_candidate_that_the_detector_could_not_tell_is_in_dispute(folder):
    item = items(folder)[0]
    doubt = {**item.candidates[0], "result": "unknown"}
    asked = replace(item, candidates=[doubt])
    assert not item.disputed and asked.disputed and unsettled([item, asked]) == [asked]
    assert "the traces cannot tell what came of 1 candidate" in asked.differences
    assert (asked.untold, asked.disagreements) == (1, []), "nobody disagrees"
    assert not replace(asked, reviewed=item.operations).disputed, "somebody looked"


def test_every_candidate_has_its_zone_its_hold_and_its_verdict_also_what_is_no_operation(folder):
    item = items(folder)[0]
    first = item.candidates[0]
    assert seen(first).startswith("release over ") and f"held {first['held_s']:.1f} s: placed" in seen(first)
    back = {**first, "t_ns": first["t_ns"] + 5 * SECOND, "result": "neutral", "zone": "outside"}
    words, others = matched(replace(item, candidates=[first, back]), item.operations)
    assert words[0] == seen(first) and set(words[1:]) == {""} and others == [back]
    assert seen(back).endswith("outside both totes, held {:.1f} s: put back, or handled again".format(first["held_s"]))


def test_freezing_before_the_review_says_how_many_are_left_and_what_to_type(folder):
    disputed = miscounted(folder, 0)
    close_campaign(folder, who="bea")
    name = folder.name
    with pytest.raises(StateError, match=r"1 of 2 episodes of campaign .* in dispute") as refused:
        freeze_campaign(folder, who="bea")
    typed = (f"labctl review {name}", f"labctl review {name} --finish", f"labctl freeze {name} --unreviewed")
    assert all(command in str(refused.value) for command in typed)
    review(folder, disputed.trial.id, disputed.operations[:1], who="bea")
    with pytest.raises(StateError, match=f"not finished: labctl review {name} --finish"):
        freeze_campaign(folder, who="bea")
    assert freeze_campaign(folder, who="bea", unreviewed=True)[0] == "frozen without a review"


def test_a_reviewer_sees_the_operators_tally_beside_the_outcome(folder):
    item = items(folder)[0]
    assert item.counted is None
    assert Item(item.trial, item.device, 1).differences == ["the operator counted 1 moved, the assessor 2"]
    assert not any(event.kind == Kind.ITEM_COUNTED for event in events_of(folder))
