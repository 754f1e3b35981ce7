"""The order of the queue: what waits for the rig, in which order, paused or going on.

May not: start, open or end anything; a person does that, by the verbs of a campaign.
"""

from __future__ import annotations

from pathlib import Path

from labctl.clock import Clock
from labctl.core.trial import Phase
from labctl.errors import InputError, StateError
from labctl.plain import Json
from labctl.queue import book
from labctl.queue.acts import Done
from labctl.queue.entries import CAMPAIGN, FIRST, LAST, PROTOCOL, SUBMISSION, USUAL, Did
from labctl.store.lab_folder import campaign_folder, read_plan
from labctl.store.verifying.verified import JOURNAL_ALONE, verified


def add(
    lab: Path, what: str, clock: Clock, who: str, *, priority: int | None = None, instead_of: str | None = None
) -> Done:
    """Have a campaign of the lab, or a protocol that is not opened yet (a file in the lab), wait for the rig.
    instead_of: the entry whose place it takes, as a protocol's that was opened: paused if that is, and with its
    priority unless one is given. Raises InputError, StateError.
    """
    body = {**_entry(lab, what), "instead_of": instead_of}
    with book.writing(lab, "add", clock, who) as writer:
        old = None if instead_of is None else writer.queue.entry(instead_of)
        if old is not None and old.kind == SUBMISSION:
            raise StateError(f"{old.name} is a submission, an arm to be: labctl queue arm {old.name} PROTOCOL.toml")
        usual = USUAL if old is None else old.priority
        body["priority"] = usual if priority is None else checked(priority)
        if old is not None and old.paused:
            body["paused"] = old.paused
        return Done(str(body["name"]), writer.log(Did.ADDED, body))


def move(lab: Path, name: str, before: str, clock: Clock, who: str) -> Done:
    """Put an entry before another one of its priority. Raises StateError."""
    with book.writing(lab, "move", clock, who) as writer:
        return Done(name, writer.log(Did.MOVED, {"name": name, "before": before}))


def give_priority(lab: Path, name: str, priority: int, clock: Clock, who: str) -> Done:
    """1 is first; an entry comes behind those that have its priority already. Raises InputError, StateError."""
    with book.writing(lab, "priority", clock, who) as writer:
        return Done(name, writer.log(Did.PRIORITY, {"name": name, "priority": checked(priority)}))


def pause(lab: Path, name: str, reason: str, clock: Clock, who: str) -> Done:
    """Let an entry keep its place and get no time; everybody reads the reason. Raises StateError."""
    with book.writing(lab, "pause", clock, who) as writer:
        if writer.queue.entry(name).paused:
            raise StateError(f"{name} is paused already: {writer.queue.entry(name).paused}")
        return Done(name, writer.log(Did.PAUSED, {"name": name, "reason": reason}))


def resume(lab: Path, name: str, clock: Clock, who: str) -> Done:
    """Raises StateError for what is not paused."""
    with book.writing(lab, "resume", clock, who) as writer:
        if not writer.queue.entry(name).paused:
            raise StateError(f"{name} is not paused")
        return Done(name, writer.log(Did.RESUMED, {"name": name}))


def checked(priority: int) -> int:
    """Raises InputError for a priority that there is not."""
    if not FIRST <= priority <= LAST:
        raise InputError(f"priority {priority}; allowed are {FIRST}, the first, to {LAST}")
    return priority


def _entry(lab: Path, what: str) -> dict[str, Json]:
    if what.endswith(".toml"):
        path = Path(what).resolve()
        if path.is_file() and not path.is_relative_to(lab):
            raise InputError(f"{what} lies outside of the lab {lab}; put the protocol into the lab's folder first")
        return {"name": read_plan(path).protocol.protocol.name, "kind": PROTOCOL, "path": str(path.relative_to(lab))}
    folder = campaign_folder(what, lab)
    with verified(folder, JOURNAL_ALONE) as shown:
        if shown.campaign.state.phase != Phase.OPEN:
            raise StateError(f"campaign {folder.name} is {shown.campaign.state.phase}; nothing of it waits for the rig")
    return {"name": folder.name, "kind": CAMPAIGN}
