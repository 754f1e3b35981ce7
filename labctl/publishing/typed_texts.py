"""Which texts of a journal people typed: they go along with a publication, and whoever publishes looks at them first.

May not: take a machine's words for a person's where an entry tells, or a text of a person's for none because it is
short. Ids of people, and words that a protocol offers, are none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from labctl.core.campaign_state import AFTER_BLOCK, AFTER_TRIAL
from labctl.core.events import EndReason, Event, Kind
from labctl.plain import Json

TYPED: Mapping[str, str] = {  # the one key of each kind under which a person's words stand
    Kind.SESSION_CLOSED: "handover",
    Kind.TRIAL_RELEASED: "reason",
    Kind.TRIAL_SKIPPED: "reason",
    Kind.REFERENCE_SET: "reason",
    Kind.INTERVENTION_ENDED: "note",
    Kind.OUTCOME_CORRECTED: "why",
    Kind.OPERATIONS_REVIEWED: "note",
    Kind.OUTCOME_CONFIRMED: "note",
    Kind.PREFERENCE_STATED: "why",
    Kind.HOLD_CLEARED: "why",
    Kind.DEVIATION: "text",
    Kind.NOTE: "text",
    Kind.CAMPAIGN_CLOSED: "reason",
    Kind.CAMPAIGN_UNBLINDED: "reason",
}
OUTCOMES: Mapping[str, str] = {
    Kind.OUTCOME_RECORDED: "outcome",
    Kind.OUTCOME_CORRECTED: "new",
    Kind.OUTCOME_JUDGED: "outcome",
}
BY_ITSELF = (*EndReason, "campaign_closed", "another cell has this block", "every trial is finished")


def free_texts(events: Sequence[Event]) -> dict[str, int]:
    """How many texts that people typed are in the entries of each kind: notes, reasons, handovers, tags."""
    found = Counter[str]()
    for event in events:
        found[str(event.kind)] += sum(1 for text in _texts(event) if text.strip() and text not in BY_ITSELF)
    return {kind: number for kind, number in found.items() if number}


def _texts(event: Event) -> Iterator[str]:
    body = event.body
    yield from _of(body.get(TYPED.get(event.kind, "")))
    if event.kind in OUTCOMES:
        known = list(_of_outcome(body.get("old")))  # of a correction, which were typed before
        yield from (text for text in _of_outcome(body.get(OUTCOMES[event.kind])) if text not in known)
    elif event.kind == Kind.SESSION_OPENED and isinstance(checks := body.get("checks"), Mapping):
        for answer in checks.values():
            yield from _of(answer)
    elif event.kind == Kind.HOLD_RAISED and str(body.get("code")).startswith((AFTER_TRIAL, AFTER_BLOCK)):
        yield from _of(str(body.get("text")).partition(": ")[2])  # why somebody asked for it


def _of_outcome(outcome: Json) -> Iterator[str]:
    if isinstance(outcome, Mapping):
        yield from _of(outcome.get("notes"))
        yield from _of(outcome.get("tags"))


def _of(value: Json) -> Iterator[str]:
    """A text, or each of several; nothing of anything else."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence):
        yield from (one for one in value if isinstance(one, str))
