"""`labctl verify A B …` of the published parts of one joint campaign: each by itself, then whether they are one
campaign under one seal, by the seal host's published record where that is among them.

May not: write, take parts of two joint campaigns together, or call whole what is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from labctl.core.event_bodies import ArmRevealed, CampaignOpened, CampaignUnblinded, body_of
from labctl.core.events import Event, Kind
from labctl.errors import BrokenRecord, InputError, in_words
from labctl.joint.checking import UNREADABLE, JointVerification, check_once, verify_entries
from labctl.joint.state import JointKind, JointOpened
from labctl.messages.joint import JointPart
from labctl.plain import Json
from labctl.publishing.cells.seal_record import SealRecord, is_seal_record, read_seal_record
from labctl.publishing.check import Checked, check_published
from labctl.publishing.manifest import PLAIN_NAME
from labctl.store.chain_heads import NOT_CHECKED, Noted, head_text
from labctl.store.journal import chain_problems, events_of
from labctl.store.problem import Problem
from labctl.store.verifying.verify import NOTHING

SEAL = "seal host's record"
MOST_BLOCKS = 100_000  # of a joint campaign
SHOWN = 20  # numbers of blocks in a line
WITHOUT = (
    "the seal over all cells, and that each arm was given once: the seal host's record is not here (it is published "
    "by: labctl joint publish)"
)


Name = Annotated[str, Field(pattern=f"^(?:{PLAIN_NAME.pattern})$", strict=True)]
Text = Annotated[str, Field(strict=True)]


@dataclass(frozen=True, slots=True)
class _Head:
    """An entry of the seal host's chain, as somebody says it."""

    seq: Annotated[int, Field(ge=0, lt=2**62, strict=True)]
    hash: Text


@dataclass(frozen=True, slots=True)
class _Said:
    """The form of a `JointPart`, as somebody says it."""

    name: Name
    cell: Name
    part: Annotated[int, Field(ge=0, le=MOST_BLOCKS, strict=True)]
    cells: list[Name]
    blocks: list[Annotated[int, Field(ge=0, strict=True)]]
    of: Annotated[int, Field(ge=1, le=MOST_BLOCKS, strict=True)]
    commitment: Text
    head: _Head


_SAID: TypeAdapter[_Said] = TypeAdapter(_Said)


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """A published part, verified by itself, with what its first entry says of the joint campaign."""

    folder: Path
    checked: Checked
    events: list[Event]
    joint: JointPart

    @property
    def name(self) -> str:
        return self.checked.admitted.manifest.campaign


@dataclass(slots=True)
class Together:
    """Published parts of one joint campaign, and the seal host's record where it is among them. problems: of the
    parts together; missing: cells and blocks that are not here.
    """

    parts: list[PublishedPart]
    seal: SealRecord | None
    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    unchecked: list[str] = field(default_factory=list[str])
    given: int = 0
    head: str = ""

    @property
    def name(self) -> str:
        return self.parts[0].joint["name"] if self.parts else self.sealed.manifest.campaign

    @property
    def sealed(self) -> SealRecord:
        assert self.seal is not None, "there are no parts without one"
        return self.seal

    @property
    def commitment(self) -> str:
        return self.parts[0].joint["commitment"] if self.parts else self.sealed.manifest.commitment

    @property
    def holds(self) -> bool:
        """Whether all of it does: each part, and the parts together."""
        return not self.problems and not any(part.checked.problems for part in self.parts)


def joint_of(folder: Path, record: Path) -> JointPart | None:
    """What the record of a published folder says of the joint campaign that it is a part of; None for one by itself.
    Raises BrokenRecord for what labctl never writes: by these names files are named, and by these numbers is counted.
    """
    joint = body_of(events_of(record, most=1)[0], CampaignOpened).get("joint")
    if joint is not None and not is_formed(joint):
        raise BrokenRecord(f"{folder}: what it says of its joint campaign is nothing that labctl writes")
    return joint


def is_formed(joint: Json | JointPart) -> bool:
    """Whether something read has the form of a `JointPart`, its names plain and its numbers those of blocks."""
    try:
        said = _SAID.validate_python(joint)
    except ValidationError:
        return False
    return said.cell in said.cells and all(block < said.of for block in said.blocks)


def check_together(
    folders: Sequence[Path],
    noted: Noted = NOTHING,
    say: Callable[[str], None] = lambda line: None,
    certificates: bytes | None = None,
) -> Together:
    """Verify published folders of one joint campaign, in any order. noted: a head of the seal host's chain and the
    commitment to the whole schedule, as `labctl joint open` printed it; certificates: as `check_published` has them.

    Raises as `check_published`; InputError for a folder that is of another campaign, or that is given twice.
    """
    parts: list[PublishedPart] = []
    seals: list[SealRecord] = []
    for folder in folders:
        if is_seal_record(folder):
            seals.append(read_seal_record(folder, say))
            continue
        checked = check_published(folder, say=say, certificates=certificates)
        joint = joint_of(folder, checked.admitted.record)
        if joint is None:
            name = checked.admitted.manifest.campaign
            raise InputError(f"{folder}: {name} is no part of a joint campaign; verify and report it by itself")
        parts.append(PublishedPart(folder, checked, events_of(checked.admitted.record), joint))
    _refuse_strangers(parts, seals)
    parts.sort(key=lambda part: (list(part.joint["cells"]).index(part.joint["cell"]), part.joint["part"]))
    found = Together(parts, seals[0] if seals else None)
    try:
        _look(found, noted)
    except UNREADABLE as error:
        text = f"an entry lacks what its kind must say: {in_words(error)}"
        found.problems.append(Problem("unreadable entry", found.name, text))
    return found


def _refuse_strangers(parts: Sequence[PublishedPart], seals: Sequence[SealRecord]) -> None:
    named = [(part.folder, part.joint["name"], part.joint["commitment"]) for part in parts]
    named += [(seal.folder, seal.manifest.campaign, seal.manifest.commitment) for seal in seals]
    for folder, name, commitment in named[1:]:
        if commitment != named[0][2]:
            first = f"{named[0][0]} is of {named[0][1]} ({named[0][2][:16]}…)"
            raise InputError(f"{folder} is of another joint campaign, {name} ({commitment[:16]}…): {first}")
    if len(seals) > 1:
        raise InputError(f"{seals[0].folder} and {seals[1].folder} are both the seal host's record; name one of them")
    seen: dict[tuple[str, int], Path] = {}
    for part in parts:
        key = part.joint["cell"], part.joint["part"]
        if key in seen:
            raise InputError(f"{seen[key]} and {part.folder} are both part {key[1]} of cell {key[0]}; name one of them")
        seen[key] = part.folder


def _look(found: Together, noted: Noted) -> None:
    looked = JointVerification()
    if found.seal is None:
        _agree(found, looked)
        found.unchecked.append(WITHOUT)
    else:
        looked.problems += chain_problems(found.seal.events)
        verify_entries(found.seal.events, ((part.name, part.events, ()) for part in found.parts), looked)
        found.given, found.head = looked.given, looked.head
        _against_manifest(found, found.seal)
    found.problems += looked.problems
    found.notes += [note for note in looked.notes if not note.startswith("cell ")]
    _missing(found, looked.absent)
    _against_noted(found, noted)


def _against_manifest(found: Together, seal: SealRecord) -> None:
    """What the manifest of the seal host's record says and its journal, or a part that is here, does not."""
    opened, manifest, last = body_of(seal.events[0], JointOpened), seal.manifest, seal.events[-1]
    said = {
        "campaign": (manifest.campaign, opened["name"]),
        "commitment": (manifest.commitment, opened["commitment"]),
        "head": (manifest.head, head_text(last.seq, last.hash)),
        "time of unblinding": (
            manifest.frozen,
            next((one.wall for one in seal.events if one.kind == JointKind.UNBLINDED), ""),
        ),
    }
    for name, (one, two) in said.items():
        if one != two:
            text = f"its {name} is {one[:40]}…, the journal's {two[:40]}…"
            found.problems.append(Problem("another campaign", "published.json", text))
    if not any(event.kind == JointKind.UNBLINDED for event in seal.events):
        found.problems.append(Problem("not unblinded", SEAL, "a campaign is published after it was unblinded"))
    listed = {(one.cell, one.part): one.manifest for one in manifest.parts}
    for part in found.parts:
        key = part.joint["cell"], part.joint["part"]
        if key in listed and listed[key] != part.checked.admitted.digest:
            found.notes.append(
                f"{part.name} here is another publication than the one that the report in {seal.folder.name} is of"
            )


def _agree(found: Together, looked: JointVerification) -> None:
    """What parts can show of each other without the seal host's record."""
    first = found.parts[0]
    heads: dict[int, tuple[str, str]] = {}
    own: dict[int, str] = {}
    for part in found.parts:
        for key in ("name", "cells", "of"):
            if part.joint[key] != first.joint[key]:
                text = f"its {key} of the joint campaign is not that of {first.name}"
                looked.problems.append(Problem("another campaign", part.name, text))
        for block in part.joint["blocks"] if part.joint["part"] == 1 else ():
            if own.setdefault(block, part.name) != part.name:
                text = f"block {block} was dealt to it and to {own[block]}"
                looked.problems.append(Problem("dealt twice", part.name, text))
        for seq, hash_ in _noted_heads(part):
            before = heads.setdefault(seq, (hash_, part.name))
            if before[0] != hash_:
                text = f"it noted another entry {seq} of the seal host's than {before[1]}"
                looked.problems.append(Problem("chains disagree", part.name, text))
        for number, arms in _arms(part).items():
            if max(arms.values()) > 1:
                looked.problems.append(Problem("unbalanced block", f"block {number}", "an arm appears twice in it"))
    check_once({(part.joint["cell"], part.joint["part"]): part.events for part in found.parts}, looked)


def _noted_heads(part: PublishedPart) -> list[tuple[int, str]]:
    """The seal host's entries that a part noted: at joining, and with each arm."""
    found = [(int(part.joint["head"]["seq"]), str(part.joint["head"]["hash"]))]
    for event in part.events:
        beside = body_of(event, ArmRevealed).get("joint") if event.kind == Kind.ARM_REVEALED else None
        if beside is not None:
            found.append((beside["seq"], beside["hash"]))
    return found


def _arms(part: PublishedPart) -> dict[int, Counter[str]]:
    """How often each arm stands in each block of a part, once it is unblinded."""
    found: dict[int, Counter[str]] = {}
    for event in part.events:
        if event.kind == Kind.CAMPAIGN_UNBLINDED:
            for slot in body_of(event, CampaignUnblinded)["schedule"]:
                found.setdefault(int(slot.get("block", -1)), Counter())[slot["arm"]] += 1
    return found


def _missing(found: Together, absent: Sequence[str]) -> None:
    """Cells and blocks that are not here, and what is withheld of those that are."""
    if found.seal is not None:
        every = {block["number"] for block in body_of(found.seal.events[0], JointOpened)["blocks"]}
    else:
        there = {part.joint["cell"] for part in found.parts}
        absent = [cell for cell in found.parts[0].joint["cells"] if cell not in there]
        every = set(range(found.parts[0].joint["of"]))
    found.missing += [f"cell {name}: its part is not here" for name in absent]
    counted = {event.trial for part in found.parts for event in part.events if event.kind == Kind.OUTCOME_RECORDED}
    begun = {block for part in found.parts for block in part.joint["blocks"]}
    if gone := sorted(every - begun):
        found.missing.append(f"blocks {_listed(gone)} of {len(every)} are of no part that is here")
    for part in found.parts:
        opened = body_of(part.events[0], CampaignOpened)
        run = {slot.get("block") for slot in opened["schedule"] if slot["trial"] in counted}
        if none := sorted(set(part.joint["blocks"]) - run):
            found.missing.append(f"{part.name}: no trial of its blocks {_listed(none)} was scored")
        if withheld := len(part.checked.withheld):
            found.missing.append(f"{part.name}: {withheld} of what was recorded is withheld, as its manifest lists")


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return ", ".join(map(str, numbers[:SHOWN])) + more


def _against_noted(found: Together, noted: Noted) -> None:
    """What somebody noted elsewhere of the joint campaign."""
    if noted.commitment is not None and not found.commitment.startswith(noted.commitment):
        text = f"the commitment given is not that of {found.name}, {found.commitment[:16]}…"
        found.problems.append(Problem("another commitment", "--commitment", text))
    if noted.hash is None:
        found.unchecked.append(f"{NOT_CHECKED}; give a head of the seal host's with --head, and its --commitment")
        return
    if found.seal is None:
        raise InputError(f"--head is of the seal host's chain, and its record is not among the folders of {found.name}")
    matches = [e for e in found.seal.events if e.hash.startswith(noted.hash) and noted.seq in (None, e.seq)]
    if not matches:
        text = "no entry of the seal host's journal is the head given"
        found.problems.append(Problem("another head", "--head", text))
    else:
        found.notes.append(f"entries 1 to {matches[0].seq} of the seal host's {len(found.seal.events)} are bound by it")
