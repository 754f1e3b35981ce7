"""Whatever a person typed into a journal is counted before it leaves, by kind of entry; what a machine said is not."""

from __future__ import annotations

from typing import Any

import pytest

from labctl.core.event_bodies import FORMS
from labctl.core.events import Event, Kind
from labctl.publishing.typed_texts import OUTCOMES, TYPED, free_texts

MACHINES = {  # kinds in whose bodies a text stands under such a key that no person typed
    *(Kind.RUN_STOPPED, Kind.START_WITHHELD, Kind.CELL_FAULTED, Kind.FAULT_ACKNOWLEDGED, Kind.GAP),
    *(Kind.EPISODE_ENDED, Kind.EPISODE_VOIDED, Kind.HOLD_RAISED),  # ends, words of the protocol, why a hold stands
}


def told(kind: Kind, **body: Any) -> Event:
    return Event(1, kind, 1, "boot", "2026-01-01T00:00:00Z", "ann", None, None, body)


def outcome(**more: Any) -> dict[str, Any]:
    return {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1, "end_reason": "timeout", **more}


TEXTS: dict[str, tuple[Event, int]] = {
    "an assessor's note and tag": (
        told(Kind.OUTCOME_RECORDED, outcome=outcome(notes="Anna Schmidt bumped the table", tags=["Anna"])),
        2,
    ),
    "a second assessor's note": (told(Kind.OUTCOME_JUDGED, outcome=outcome(notes="Schmidt")), 1),
    "what a correction adds, and why": (
        told(Kind.OUTCOME_CORRECTED, old=outcome(notes="as before"), new=outcome(notes="Anna"), why="miscounted"),
        2,
    ),
    "a correction that keeps the note": (
        told(Kind.OUTCOME_CORRECTED, old=outcome(notes="Anna"), new=outcome(notes="Anna"), why="miscounted"),
        1,
    ),
    "a handover": (told(Kind.SESSION_CLOSED, session="s-1", handover="Schmidt"), 1),
    "answers of the opening checks": (told(Kind.SESSION_OPENED, checks={"stop": True, "visitor": "Schmidt"}), 1),
    "why somebody asked for a hold": (
        told(Kind.HOLD_RAISED, code="after_trial:t-1", text="ann asked to hold after this trial: Schmidt comes"),
        1,
    ),
    "a hold of the run's own": (told(Kind.HOLD_RAISED, code="arm_lost", text="the arm: is lost"), 0),
    "missing samples": (told(Kind.GAP, stream="camera/x", why="the camera sent nothing"), 0),
    "a trial that closing left out": (told(Kind.TRIAL_SKIPPED, reason="campaign_closed"), 0),
    "a trial that a person left out": (told(Kind.TRIAL_SKIPPED, reason="Schmidt"), 1),
    "nothing": (told(Kind.OUTCOME_RECORDED, outcome=outcome(notes=" ", tags=[])), 0),
    "no text": (told(Kind.CAMPAIGN_UNBLINDED, reason=None), 0),
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_people_typed_is_counted_by_kind_of_entry(what: str) -> None:
    event, number = TEXTS[what]
    assert free_texts([event, event]) == ({str(event.kind): 2 * number} if number else {})


def test_no_kind_of_entry_with_a_text_is_forgotten() -> None:
    keys = {"note", "notes", "reason", "why", "text", "comment", "handover"}
    texts = {kind for kind, form in FORMS.items() if keys & set(form.__annotations__)}
    assert texts == {*TYPED, *MACHINES}
    outcomes = {kind for kind, form in FORMS.items() if {"outcome", "new"} & set(form.__annotations__)}
    assert outcomes == set(OUTCOMES)
