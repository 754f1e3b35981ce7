"""Journals of other versions: one without a note at a session's end, one with a kind of entry that is not known yet."""

from __future__ import annotations

from typing import Any

import pytest

from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.run_facts import RunFacts
from labctl.errors import StateError


def entry(seq: int, kind: str, **body: Any) -> Event:
    return Event(seq, kind, seq, "boot", "2026-11-26T00:00:00+00:00", "p-1", body=body)


def test_a_session_that_was_closed_without_a_note_hands_over_an_empty_one() -> None:
    facts = RunFacts()
    facts.note(entry(1, Kind.SESSION_CLOSED, session="s-1"))
    assert facts.handover == {"text": "", "who": "p-1", "wall": "2026-11-26T00:00:00+00:00"}


def test_an_entry_of_a_later_version_is_refused_by_name() -> None:
    opened = entry(1, Kind.CAMPAIGN_OPENED, schedule=[], max_voids=1, void_reasons=[])
    with pytest.raises(StateError, match="an entry ScentRecorded cannot be written"):
        record_of([opened, entry(2, "ScentRecorded")])


def test_a_hold_that_is_back_after_two_acknowledgements_with_no_episode_between_was_acknowledged_in_vain() -> None:
    facts, seq = RunFacts(), iter(range(1, 99))
    raised = [(Kind.HOLD_RAISED, {"code": "arm_lost", "text": "lost"}), (Kind.HOLD_CLEARED, {"code": "arm_lost"})]
    faulted = [(Kind.CELL_FAULTED, {"reason": "arm ended"}), (Kind.FAULT_ACKNOWLEDGED, {"reason": "arm ended"})]
    for (stands, body), (cleared, by) in (raised, faulted):
        for _ in range(2):
            facts.note(entry(next(seq), stands, **body))
            facts.note(entry(next(seq), cleared, **by))
        assert not facts.again
        facts.note(entry(next(seq), Kind.EPISODE_ENDED, reason="budget"))
        for _ in range(3):
            assert not facts.again
            facts.note(entry(next(seq), stands, **body))
            facts.note(entry(next(seq), cleared, **by))
        assert facts.again in ("lost", "arm ended")
        facts.note(entry(next(seq), Kind.RUN_STARTED, recovered=[]))
        assert not facts.again, "somebody has looked"


def test_two_faults_that_were_each_acknowledged_are_not_one_that_comes_again_and_again() -> None:
    """A third fault of any kind ended a run without a person."""
    facts, seq = RunFacts(), iter(range(1, 99))

    def faulted(reason: str) -> str:
        facts.note(entry(next(seq), Kind.CELL_FAULTED, reason=reason))
        again = facts.again
        facts.note(entry(next(seq), Kind.FAULT_ACKNOWLEDGED, reason=reason))
        return again

    arm, recorder = "arm: a reflex of joint 3 at {} s", "recorder: the disk is full, {} MB are free"
    assert not any([faulted(arm.format(1.25)), faulted(recorder.format(12)), faulted(arm.format(3))])
    assert not faulted("perception ended 3 times in a row; its log: logs/perception-2.log")
    assert faulted(arm.format(0.5)) == arm.format(0.5), "by what it says, not by the numbers in it"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("camera-1 lost", "camera-2 lost"), ("camera:2 ended {} times", "camera:3 ended {} times")),
        ("arm: 192.168.1.10 is silent for {} s", "arm: 192.168.1.11 is silent for {} s"),
    ],
)
def test_faults_of_two_devices_are_two_whatever_number_is_in_the_names(one: str, other: str) -> None:
    """Each "camera-N lost" counted as the same text, and the third ended a run without a person."""
    facts, seq = RunFacts(), iter(range(1, 99))
    for number, text in enumerate((one, other, one, other, one)):
        assert not facts.again
        reason = text.format(f"{number}.5e-{number}")
        facts.note(entry(next(seq), Kind.CELL_FAULTED, reason=reason))
        if number < 4:
            facts.note(entry(next(seq), Kind.FAULT_ACKNOWLEDGED, reason=reason))
    assert facts.again == one.format("4.5e-4"), "the same device, with other numbers"
