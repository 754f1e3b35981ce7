"""A person's touch is an interval of an episode with a kind, and what it means for the numbers of an arm."""

from __future__ import annotations

from labctl.clock import SECOND
from labctl.core import timeline
from labctl.core.events import Event, Kind
from labctl.core.interventions import Intervention, spans, unaided
from labctl.core.record import Episode
from labctl.core.record_fold import record_of
from labctl.core.trial import CampaignState


def event(seq: int, kind_: Kind, /, **body) -> Event:
    return Event(seq, kind_, seq, "b", "w", "ann", "t", "e", body)


def began(seq: int, number: int, at_s: float, kind: str = "other", by: str = "console") -> Event:
    return event(seq, Kind.INTERVENTION_BEGAN, number=number, kind=kind, by=by, t_ns=round(at_s * SECOND))


def over(seq: int, number: int, at_s: float, kind: str) -> Event:
    return event(seq, Kind.INTERVENTION_ENDED, number=number, kind=kind, t_ns=round(at_s * SECOND), note="")


ENDED = event(9, Kind.EPISODE_ENDED, reason="budget", end_ns=60 * SECOND)


def episode(*events: Event) -> Episode:
    return record_of(events, CampaignState()).episodes["e"]


def touches(*events: Event) -> tuple[Intervention, ...]:
    return episode(*events).interventions


def test_an_interval_has_the_kind_it_turned_out_to_be():
    found = touches(began(1, 0, 10), over(2, 0, 14, "reset"), ENDED)
    assert found == (Intervention(0, "reset", "console", 10 * SECOND, 14 * SECOND),)


def test_a_touch_that_nobody_ended_lasts_until_the_motion_does_even_when_its_kind_is_told_later():
    assert touches(began(1, 0, 50), ENDED)[0].to_ns == 60 * SECOND
    late = over(10, 0, 60, "hand_in_scene")
    found = touches(began(1, 0, 50), ENDED, late)[0]
    assert (found.to_ns, found.kind) == (60 * SECOND, "hand_in_scene")


def test_spans_are_joined_and_cut_to_the_timed_part():
    touches = [
        Intervention(0, "other", "console", 5 * SECOND, 12 * SECOND),
        Intervention(1, "take_over", "device", 11 * SECOND, 20 * SECOND),
        Intervention(2, "reset", "console", 58 * SECOND, None),
    ]
    assert spans(touches, 10 * SECOND, 60 * SECOND) == [(10 * SECOND, 20 * SECOND), (58 * SECOND, 60 * SECOND)]
    assert spans(touches, 30 * SECOND, 40 * SECOND) == []


def test_an_item_is_unaided_when_nobody_touched_the_time_it_took():
    # items at 10, 20, 30, 40 s after go; a hand from 21 to 22 s falls in the third
    moved = [10, 20, 30, 40]
    assert unaided(moved, [(21, 22)], 0) == 3
    assert unaided(moved, [(18, 22)], 0) == 2, "it reaches into two"
    assert unaided(moved, [], 0) == 4


def test_an_episode_that_somebody_took_over_is_named_and_one_that_was_touched_otherwise_is_not():
    assert episode(began(1, 0, 10, "take_over", "device"), ENDED).taken_over
    assert episode(began(1, 0, 10), over(2, 0, 12, "take_over"), ENDED).taken_over, "as it turned out"
    assert not episode(began(1, 0, 10, "take_over"), over(2, 0, 12, "reset"), ENDED).taken_over


def test_what_a_person_says_of_a_hand_devices_intervention_changes_nothing_of_what_it_was():
    """A run that was started again asked for it, with "a hand in the scene" as the answer that was there already."""
    found = episode(began(1, 0, 10, "take_over", "device"), ENDED, over(10, 0, 60, "hand_in_scene"))
    assert found.taken_over
    assert found.interventions[0] == Intervention(0, "take_over", "device", 10 * SECOND, 60 * SECOND)


def test_the_lane_shows_what_the_hand_did_and_then_nothing():
    told = [began(1, 0, 10), over(2, 0, 14, "reset"), ENDED]
    marks = timeline.intervention_timeline(touches(*told))
    assert [(mark.t_ns // SECOND, mark.label) for mark in marks] == [
        (10, "reset"),
        (14, ""),
    ]
    said = [text for _, level, text in timeline.event_lines(told[:2])]
    assert said == ["intervention begins: other", "intervention over: reset"]
