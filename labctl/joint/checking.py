"""Does the record of a joint campaign hold: the seal host's chain, each cell's chain, and that the two agree?

May not: print an arm, or write anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labctl.core.event_bodies import ArmRevealed, CampaignOpened, body_of
from labctl.core.events import Event, Kind
from labctl.errors import BrokenRecord, InputError, LabctlError, in_words
from labctl.joint.seal_host import part_nonce
from labctl.joint.state import (
    ArmGiven,
    CellHead,
    HeadBody,
    JointKind,
    JointState,
    Part,
    advance_joint,
    check_clock,
    may_give,
)
from labctl.messages.body_parts import SlotWithArm
from labctl.store.chain_heads import chain_and_head_problems, head_text
from labctl.store.journal import events_of
from labctl.store.lab_folder import campaigns
from labctl.store.ledger import commitment_of, part_commitment
from labctl.store.problem import Problem
from labctl.store.verifying.verify import verify_campaign

BROKEN = "broken journal of the seal host"
NOTHING = ("", "", 0)  # what a campaign by itself says of a joint one
UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)  # of an entry whose form was tampered with


@dataclass(slots=True)
class JointVerification:
    """What was found. problems: nothing may be built on; notes: what they do not break; cells: those that were read;
    absent: the parts that were not; given: trials whose arm was given.
    """

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
    cells: list[str] = field(default_factory=list[str])
    absent: list[str] = field(default_factory=list[str])
    entries: int = 0
    given: int = 0
    head: str = ""


def verify_joint(folder: Path, cells: Sequence[Path]) -> JointVerification:
    """Verify the seal host's folder, and against it each campaign folder of a cell that is here. Raises InputError for
    a folder that holds no seal host's journal, and for a campaign that holds and is a part of none.
    """
    if not (folder / "journal.db").is_file():
        raise InputError(f"{folder} holds no journal of a joint campaign")
    found = JointVerification()
    try:
        events = events_of(folder)
        found.problems += chain_and_head_problems(folder, events)
    except LabctlError as error:
        found.problems.append(Problem(BROKEN, str(folder), str(error)))
        return found
    return verify_entries(events, map(_looked, cells), found)


def parts_here(folder: Path, given: Sequence[Path]) -> list[Path]:
    """The campaigns in the seal host's lab that are parts of its joint campaign, but those that are among `given`, or
    whose part another folder of them is: by what their first entry says, by its hash, which the seal host noted, and by
    the name of one that cannot be read.
    """
    try:
        joined = {body_of(one, CellHead)["head"]["hash"] for one in events_of(folder) if one.kind == JointKind.JOINED}
    except (LabctlError, *UNREADABLE):  # which verifying says
        joined = set()
    there = {key for _, key in map(_says, given)}
    found: list[Path] = []
    for one in campaigns(folder.parents[1]):
        own, key = _says(one)
        named = key[0] == folder.name if own else one.name.startswith(f"{folder.name}-")
        if (named or own in joined) and key not in there - {NOTHING} and one.resolve() not in given:
            found.append(one)
    return found


def _says(campaign: Path) -> tuple[str, tuple[str, str, int]]:
    """The hash of a campaign's first entry, "" where it cannot be read, and of which joint campaign, cell and number it
    says that it is the part.
    """
    try:
        first = events_of(campaign, most=1)[0]
        entry = body_of(first, CampaignOpened).get("joint")
        key = NOTHING if entry is None else (str(entry["name"]), str(entry["cell"]), int(entry["part"]))
    except (LabctlError, *UNREADABLE):
        return "", NOTHING
    return first.hash, key


def _looked(campaign: Path) -> tuple[str, list[Event], Sequence[Problem]]:
    own = verify_campaign(campaign)
    if own.events and not own.problems and "joint" not in own.events[0].body:
        text = f"{campaign.name} is no part of a joint campaign; verify it by itself: labctl verify {campaign.name}"
        raise InputError(text)
    return campaign.name, own.events, own.problems


def verify_entries(
    events: Sequence[Event],
    cells: Iterable[tuple[str, list[Event], Sequence[Problem]]],
    found: JointVerification,
) -> JointVerification:
    """`found` with what the seal host's entries say, whose chain was looked at, and with each cell's: its folder's
    name, its entries (none of a journal that cannot be read) and what is wrong with them.
    """
    try:
        state = _history(events, found)
    except LabctlError as error:
        found.problems.append(Problem(BROKEN, "seal host's journal", str(error)))
        return found
    found.entries, found.head = len(events), head_text(events[-1].seq, events[-1].hash)
    found.given = len({event.trial for event in events if event.kind == JointKind.GIVEN})
    _check_opened(events, state, found)
    try:
        _check_balance(state, found)
    except UNREADABLE as error:
        found.problems.append(Problem("unreadable entry", "seal host's journal seq 1", in_words(error)))
    seen: dict[tuple[str, int], list[Event]] = {}
    for name, own, problems in cells:
        found.problems += [Problem(p.what, f"{name}: {p.where}", p.detail) for p in problems]
        try:
            _check_cell(name, own, state, events, found, seen)
        except UNREADABLE as error:
            text = f"an entry lacks what its kind must say: {in_words(error)}"
            found.problems.append(Problem("unreadable entry", name, text))
    for part in state.parts.values():
        if (part.cell, part.number) not in seen:
            found.absent.append(part.name)
            found.notes.append(f"cell {part.name}: its campaign is not here; only the seal host's side was checked")
    check_once(seen, found)
    return found


def _history(events: Sequence[Event], found: JointVerification) -> JointState:
    """Each entry is held to the rule by which the seal host answers."""
    state: JointState | None = None
    for event in events:
        try:
            if state is not None and event.kind == JointKind.GIVEN:
                _check_given(state, event, found)
            state = advance_joint(state, event)
        except UNREADABLE as error:
            raise BrokenRecord(f"entry {event.seq} lacks what its kind must say: {in_words(error)}") from error
    if state is None:
        raise BrokenRecord("the journal is empty")
    return state


def _check_given(state: JointState, event: Event, found: JointVerification) -> None:
    body = body_of(event, ArmGiven)
    try:
        part = state.part(body["cell"], body["part"])
        again = may_give(state, part, str(event.trial), body["head"], body["skipped"])
        check_clock(body["clock"], state.opened["clock_limit_s"])
        if again != body["again"]:
            raise BrokenRecord("whether the arm was given before is not as the entries before it have it")
    except LabctlError as error:
        where = f"seal host's journal seq {event.seq}"
        found.problems.append(Problem("given against the rule", where, str(error)))


def _check_opened(events: Sequence[Event], state: JointState, found: JointVerification) -> None:
    opened = next((event for event in events if event.kind == JointKind.UNBLINDED), None)
    if opened is None:
        found.notes.append("not unblinded: the commitments can be checked after that")
        return
    try:
        slots: Sequence[SlotWithArm] = opened.body["schedule"]
        secret = bytes.fromhex(opened.body["secret_hex"])
        if commitment_of(slots, secret) != state.opened["commitment"]:
            what = "the schedule that was opened is not the one that was sealed"
            found.problems.append(Problem("broken commitment", f"seal host's journal seq {opened.seq}", what))
        arms = {slot["trial"]: slot["arm"] for slot in slots}
        for part in state.parts.values():
            own = [SlotWithArm(**slot, arm=arms[slot["trial"]]) for slot in state.slots(part)]
            if part_commitment(own, part_nonce(secret, part.cell, part.number)) != part.commitment:
                what = "what binds its arms is not made of the sealed schedule"
                found.problems.append(Problem("broken commitment", f"cell {part.name}", what))
        for number, block in state.blocks.items():
            if len({arms[trial] for trial in block["trials"]}) != len(block["trials"]):
                found.problems.append(Problem("unbalanced block", f"block {number}", "an arm appears twice in it"))
    except UNREADABLE as error:
        where = f"seal host's journal seq {opened.seq}"
        found.problems.append(Problem("broken commitment", where, f"it cannot be read: {in_words(error)}"))


def _check_balance(state: JointState, found: JointVerification) -> None:
    """Cells as they were dealt differ by one set of conditions at most, in all and in each (`cell_allocation`)."""
    held: dict[tuple[str, ...], Counter[str]] = {}
    units: dict[int, list[str]] = {}
    where: dict[int, str] = {}
    for block in state.blocks.values():
        units.setdefault(block["together"], []).append(block["condition"])
        where[block["together"]] = block["drawn_for"]
    for unit, conditions in units.items():
        for kind in ((), tuple(sorted(conditions))):
            held.setdefault(kind, Counter(dict.fromkeys(state.opened["cells"], 0)))[where[unit]] += 1
    for kind, counts in held.items():
        if max(counts.values()) - min(counts.values()) > 1 or set(counts) != set(state.opened["cells"]):
            each = ", ".join(f"{cell} {number}" for cell, number in counts.items())
            what = f"sets of conditions{' of ' + ', '.join(kind) if kind else ''} dealt to each cell: {each}"
            found.problems.append(Problem("unbalanced over cells", "seal host's journal seq 1", what))


def _check_cell(
    name: str,
    events: list[Event],
    state: JointState,
    joint: Sequence[Event],
    found: JointVerification,
    seen: dict[tuple[str, int], list[Event]],
) -> None:
    if not events:
        return
    opened = body_of(events[0], CampaignOpened)
    entry = opened.get("joint")
    if entry is None:
        found.problems.append(Problem("another campaign", name, "it is no part of a joint campaign"))
        return
    key = (entry["cell"], entry["part"])
    part = state.parts.get(key)
    if part is None or entry["commitment"] != state.opened["commitment"]:
        found.problems.append(Problem("another campaign", name, "it is not a part of this joint campaign"))
        return
    if key in seen:
        found.problems.append(Problem("twice", name, f"cell {part.name} is there in two folders"))
        return
    seen[key] = events
    found.cells.append(part.name)
    if opened["commitment"] != part.commitment or list(opened["schedule"]) != state.slots(part):
        what = "its schedule or what binds its arms is not what the seal host dealt"
        found.problems.append(Problem("another part", name, what))
    _check_heads(name, part, events, joint, found)
    _check_reveals(name, part, events, joint, found)


def _check_heads(
    name: str, part: Part, events: Sequence[Event], joint: Sequence[Event], found: JointVerification
) -> None:
    """Every head that the seal host noted stands in the cell's chain."""
    hashes = {event.seq: event.hash for event in events}
    for event in joint:
        heads: list[HeadBody] = []
        if event.kind in (JointKind.GIVEN, JointKind.JOINED, JointKind.CLOSED):
            body = body_of(event, CellHead)
            heads = [body["head"]] if (body["cell"], body["part"]) == (part.cell, part.number) else []
        elif event.kind == JointKind.HEADS:
            mine = [one for one in event.body["heads"] if (one["cell"], one["part"]) == (part.cell, part.number)]
            heads = [one["head"] for one in mine]
        for head in heads:
            if hashes.get(head["seq"]) != head["hash"]:
                what = f"the seal host noted entry {head['seq']} as {head['hash'][:16]}… (its entry {event.seq})"
                found.problems.append(Problem("chains disagree", f"{name}: journal seq {head['seq']}", what))


def _check_reveals(
    name: str, part: Part, events: Sequence[Event], joint: Sequence[Event], found: JointVerification
) -> None:
    """Every arm that a cell used was given to it, for that trial, after the head that it had then."""
    given = {(event.seq, event.hash): event for event in joint if event.kind == JointKind.GIVEN}
    for event in events:
        if event.kind != Kind.ARM_REVEALED:
            continue
        beside = body_of(event, ArmRevealed).get("joint")
        mine = None if beside is None else given.get((beside["seq"], beside["hash"]))
        where = f"{name}: journal seq {event.seq}"
        if mine is None or mine.trial != event.trial:
            what = "the seal host's journal has no such answer for this trial"
            found.problems.append(Problem("not given", where, what))
            continue
        body = body_of(mine, ArmGiven)
        if (body["cell"], body["part"]) != (part.cell, part.number) or body["head"]["seq"] >= event.seq:
            what = "the arm was given to another cell, or at another time"
            found.problems.append(Problem("not given", where, what))


def check_once(seen: Mapping[tuple[str, int], Sequence[Event]], found: JointVerification) -> None:
    """No trial begins in two cells, and none is scored twice."""
    begun: dict[str, tuple[str, int]] = {}
    scored: dict[str, int] = {}
    for key, events in seen.items():
        for event in events:
            trial = event.trial or ""
            if event.kind == Kind.ARM_REVEALED and begun.setdefault(trial, key) != key:
                what = f"it began in cell {begun[trial][0]} and in cell {key[0]}"
                found.problems.append(Problem("run twice", f"trial {trial}", what))
            if event.kind == Kind.OUTCOME_RECORDED:
                scored[trial] = scored.get(trial, 0) + 1
    for trial, times in scored.items():
        if times > 1:
            found.problems.append(Problem("run twice", f"trial {trial}", f"it was scored {times} times"))
