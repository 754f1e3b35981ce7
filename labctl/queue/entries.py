"""What the queue's own journal makes of it: submissions on their way, and the entries that wait for the rig. Pure.

May not: read a file or a clock, or know who submitted, what is submitted or under which name it becomes an arm: the
journal has none of it, so whoever reads this stays blind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from labctl.core.events import Event
from labctl.errors import BrokenRecord, StateError

FIRST, USUAL, LAST = 1, 5, 9  # priorities


class Did(StrEnum):
    """Every kind of entry of the queue's journal."""

    QUEUE_OPENED = "QueueOpened"
    RECEIVED = "SubmissionReceived"
    READ = "SubmissionRead"
    DRY_RUN = "SubmissionDryRun"
    APPROVED = "SubmissionApproved"
    REFUSED = "SubmissionRefused"
    ARM_WRITTEN = "SubmissionEntered"
    ADDED = "EntryAdded"
    MOVED = "EntryMoved"
    PRIORITY = "EntryPriority"
    PAUSED = "EntryPaused"
    RESUMED = "EntryResumed"
    WITHDRAWN = "EntryWithdrawn"


class Step(StrEnum):
    """Where a submission is on its way."""

    RECEIVED = "received"
    PASSED = "passed its dry run"
    FAILED = "failed its dry run"
    APPROVED = "approved"
    REFUSED = "refused"
    ENTERED = "entered"
    WITHDRAWN = "withdrawn"


OVER = frozenset({Step.REFUSED, Step.ENTERED, Step.WITHDRAWN})
CAMPAIGN, PROTOCOL, SUBMISSION = "campaign", "protocol", "submission"


@dataclass(frozen=True, slots=True)
class Submission:
    """A request that was taken in. wished: the campaign or protocol that it asks for; sealed: files of the seal, newest
    last, under their digests; read_by: who has seen whose it is; entered: the protocol that has it as an arm, or had it
    until it was withdrawn; path: that one's file, in the lab or wherever it is.
    """

    id: str
    wished: str
    expires: str
    step: Step = Step.RECEIVED
    sealed: Mapping[str, str] = field(default_factory=dict[str, str])
    read_by: tuple[str, ...] = ()
    entered: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that waits for the rig. name: of a campaign or a protocol, or a submission's id; path: a protocol's
    file in the lab; paused: why, "" for one that is not.
    """

    name: str
    kind: str
    priority: int = USUAL
    path: str | None = None
    paused: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """submissions: by id; entries: in the order of their turn."""

    submissions: Mapping[str, Submission] = field(default_factory=dict[str, Submission])
    entries: tuple[Entry, ...] = ()

    def submission(self, id: str) -> Submission:
        """Raises StateError that lists what there is."""
        if id not in self.submissions:
            there = ", ".join(self.submissions) or "none yet"
            raise StateError(f"no submission {id!r} here; there: {there}")
        return self.submissions[id]

    def entry(self, name: str) -> Entry:
        """Raises StateError that lists what waits."""
        found = next((one for one in self.entries if one.name == name), None)
        if found is None:
            there = ", ".join(one.name for one in self.entries) or "nothing"
            raise StateError(f"{name!r} does not wait in the queue; there waits: {there}")
        return found


def fold(events: Iterable[Event]) -> Queue:
    """The queue that a journal tells of. Raises BrokenRecord for an entry that cannot follow."""
    queue = Queue()
    for event in events:
        try:
            queue = after(queue, event)
        except (KeyError, TypeError, ValueError, StateError) as error:
            raise BrokenRecord(f"the queue's entry {event.seq} cannot follow: {error}") from error
    return queue


def after(queue: Queue, event: Event) -> Queue:
    """The queue after one entry more. Raises StateError for one that may not follow, KeyError, ValueError."""
    body = event.body
    match Did(event.kind):
        case Did.QUEUE_OPENED:
            return queue
        case Did.ADDED:
            paused = body.get("paused", "")
            new = Entry(body["name"], body["kind"], body["priority"], body.get("path"), paused)
            return _added(queue, new, body.get("instead_of"))
        case Did.MOVED:
            return _moved(queue, queue.entry(body["name"]), body["before"])
        case Did.PRIORITY:
            return _changed(queue, replace(queue.entry(body["name"]), priority=body["priority"]))
        case Did.PAUSED:
            return _changed(queue, replace(queue.entry(body["name"]), paused=body["reason"]))
        case Did.RESUMED:
            return _changed(queue, replace(queue.entry(body["name"]), paused=""))
        case Did.WITHDRAWN:
            return _withdrawn(queue, body["name"], body.get("sealed", {}))
        case Did.RECEIVED:
            if body["id"] in queue.submissions:
                raise StateError(f"submission {body['id']} is there already")
            one = Submission(body["id"], body["wished"], body["expires"], sealed=body["sealed"])
            return replace(queue, submissions={**queue.submissions, one.id: one})
        case step:
            return _stepped(queue, queue.submission(body["id"]), step, event)


def may(submission: Submission, step: Did) -> None:
    """Raises StateError, with what to do, where a submission may not take a step now."""
    if step == Did.WITHDRAWN and submission.step in OVER - {Step.ENTERED}:
        raise StateError(f"submission {submission.id}: {submission.step}; there is nothing to withdraw from the queue")
    needs = {
        Did.APPROVED: (Step.PASSED,),
        Did.DRY_RUN: (Step.RECEIVED, Step.PASSED, Step.FAILED),
        Did.REFUSED: (Step.RECEIVED, Step.PASSED, Step.FAILED),
        Did.ARM_WRITTEN: (Step.APPROVED,),
    }
    if step in needs and submission.step not in needs[step]:
        raise StateError(f"submission {submission.id}: {submission.step}; {_instead(submission, step)}")


def _instead(submission: Submission, step: Did) -> str:
    """What to do, or to know, where a submission may not take a step now."""
    id = submission.id
    match submission.step, step:
        case Step.ENTERED, _:
            out = f"labctl queue withdraw {id} --reason TEXT"
            return f"it is an arm of {submission.entered}; until a campaign is opened from that, take it out: {out}"
        case ((Step.REFUSED | Step.WITHDRAWN), _):
            return "nothing more is done with it; its sender may sign another request"
        case Step.APPROVED, Did.REFUSED:
            return f"take it out of the queue instead: labctl queue withdraw {id} --reason TEXT"
        case Step.APPROVED, _:
            return f"it waits for the rig already; next: labctl queue arm {id} PROTOCOL.toml"
        case Step.PASSED, _:
            return f"first: labctl queue approve {id} --reason TEXT"
        case _:
            return f"first: labctl queue dry-run {id} CAMPAIGN|DIR"


def _stepped(queue: Queue, was: Submission, step: Did, event: Event) -> Queue:
    body = event.body
    may(was, step)
    seen = (*was.read_by, *((event.who,) if event.who not in was.read_by and body.get("read", False) else ()))
    now = replace(was, read_by=seen, sealed={**was.sealed, **body.get("sealed", {})})
    if step == Did.DRY_RUN:
        now = replace(now, step=Step.PASSED if body["passed"] else Step.FAILED)
    elif step in (Did.APPROVED, Did.REFUSED):
        now = replace(now, step=Step.APPROVED if step == Did.APPROVED else Step.REFUSED)
    elif step == Did.ARM_WRITTEN:
        now = replace(now, step=Step.ENTERED, entered=body["protocol"], path=body.get("path"))
    queue = replace(queue, submissions={**queue.submissions, now.id: now})
    if step == Did.APPROVED:
        return _added(queue, Entry(now.id, SUBMISSION, body["priority"]), None)
    if step == Did.ARM_WRITTEN:
        return replace(queue, entries=tuple(one for one in queue.entries if one.name != now.id))
    return queue


def _added(queue: Queue, entry: Entry, instead_of: str | None) -> Queue:
    if any(one.name == entry.name and one.name != instead_of for one in queue.entries):
        raise StateError(f"{entry.name} waits in the queue already")
    if instead_of is not None:
        old = queue.entry(instead_of)
        return _in_order(queue, tuple(entry if one is old else one for one in queue.entries))
    return _in_order(queue, (*queue.entries, entry))


def _moved(queue: Queue, entry: Entry, before: str) -> Queue:
    place = queue.entry(before)
    if place.priority != entry.priority:
        raise StateError(
            f"{before} has priority {place.priority} and {entry.name} {entry.priority}; the order within a priority is "
            "free: give it that priority first"
        )
    rest = [one for one in queue.entries if one is not entry]
    at = rest.index(place) if place is not entry else list(queue.entries).index(entry)
    return _in_order(queue, (*rest[:at], entry, *rest[at:]))


def _changed(queue: Queue, entry: Entry) -> Queue:
    """A new priority puts an entry behind those that have it already."""
    was = queue.entry(entry.name)
    if was.priority != entry.priority:
        return _in_order(queue, (*(one for one in queue.entries if one is not was), entry))
    return replace(queue, entries=tuple(entry if one is was else one for one in queue.entries))


def _withdrawn(queue: Queue, name: str, sealed: Mapping[str, str]) -> Queue:
    rest = tuple(one for one in queue.entries if one.name != name)
    submission = queue.submissions.get(name)
    if submission is None:
        queue.entry(name)
        return replace(queue, entries=rest)
    may(submission, Did.WITHDRAWN)
    gone = replace(submission, step=Step.WITHDRAWN, sealed={**submission.sealed, **sealed})
    return Queue({**queue.submissions, name: gone}, rest)


def _in_order(queue: Queue, entries: tuple[Entry, ...]) -> Queue:
    return replace(queue, entries=tuple(sorted(entries, key=lambda one: one.priority)))
