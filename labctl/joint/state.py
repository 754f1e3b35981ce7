"""A campaign of several cells as the seal host's journal has it: who has which block, what was revealed, what may be.

May not: hold an arm, write or read anything, or know of a socket. A *part* is one cell's share of the blocks with its
own campaign folder: the first is drawn, a later one holds blocks that another cell will not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NotRequired, TypedDict

from labctl.core.event_bodies import body_of
from labctl.core.events import Event
from labctl.errors import BrokenRecord, StateError
from labctl.messages.body_parts import Slot


class JointKind(StrEnum):
    """Every kind of entry of a seal host's journal."""

    OPENED = "JointOpened"
    JOINED = "CellJoined"
    GIVEN = "ArmGiven"
    HEADS = "HeadsJoined"
    GONE = "CellGone"
    BACK = "CellBack"
    MOVED = "BlocksMoved"
    CLOSED = "CellClosed"
    UNBLINDED = "JointUnblinded"


class HeadBody(TypedDict):
    """An entry of a chain: its number and its hash."""

    seq: int
    hash: str


class ClockBody(TypedDict):
    """A cell's wall clock less the seal host's, in seconds, and how far that may be wrong: half the round trip."""

    offset_s: float
    bound_s: float


class BlockBody(TypedDict):
    """A block as anyone may see it; the fields are those of `cell_allocation.CellBlock`, without the arms."""

    number: int
    together: int
    condition: str
    drawn_for: str
    drawn_place: int
    day: int
    trials: Sequence[str]


class PartBody(TypedDict):
    """A cell's share: its number within the cell, the blocks in the order that they run, and what binds their arms."""

    cell: str
    part: int
    blocks: Sequence[int]
    commitment: str


class JointOpened(TypedDict):
    """The first entry: what was sealed, for whom. protocol, fixture, cards: sha256 of files that every cell needs."""

    name: str
    commitment: str
    protocol: str
    fixture: str
    cards: str
    cells: Sequence[str]
    clock_limit_s: float
    blocks: Sequence[BlockBody]
    parts: Sequence[PartBody]


class ArmGiven(TypedDict):
    """The arm of one trial went to its cell, which had this head then; skipped: the trials before it that it does not
    run; again: the arm had been given before.
    """

    cell: str
    part: int
    head: HeadBody
    clock: ClockBody
    skipped: Sequence[str]
    again: bool


class BlocksMoved(TypedDict):
    """Blocks of cells that are gone were given to others, on a person's order."""

    reason: str
    parts: Sequence[PartBody]


class CellHead(TypedDict):
    """CellJoined and CellClosed. phase: of the cell's campaign, once it is over."""

    cell: str
    part: int
    head: HeadBody
    phase: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Part:
    """One cell's share. dealt: the blocks that it ever had, as its campaign has them; blocks: those that nobody else
    was given; head: the last that its cell said, None before it joined; given: trials whose arm it was told, in order;
    told_at: where its journal ended when it was told one last; phase: of its campaign once that is over.
    """

    cell: str
    number: int
    dealt: tuple[int, ...]
    blocks: tuple[int, ...]
    commitment: str
    head: HeadBody | None = None
    given: tuple[str, ...] = ()
    told_at: int = 0
    phase: str = ""

    @property
    def name(self) -> str:
        """As people call it: the cell, and the number of a later part."""
        return self.cell if self.number == 1 else f"{self.cell} (part {self.number})"


@dataclass(frozen=True, slots=True)
class JointState:
    """What the seal host's journal says now. parts: by cell and number; moved: blocks that were taken from a part."""

    opened: JointOpened
    blocks: Mapping[int, BlockBody]
    parts: Mapping[tuple[str, int], Part]
    gone: frozenset[str] = frozenset()
    unblinded: bool = False
    early: bool = False
    last: HeadBody = field(default_factory=lambda: HeadBody(seq=0, hash=""))

    def part(self, cell: str, number: int) -> Part:
        """Raises StateError for one that is not there."""
        if (cell, number) not in self.parts:
            raise StateError(f"cell {cell} has no part {number}; it has {len(self.parts_of(cell))}")
        return self.parts[cell, number]

    def parts_of(self, cell: str) -> list[Part]:
        return [part for part in self.parts.values() if part.cell == cell]

    def slots(self, part: Part) -> list[Slot]:
        """The public schedule of a part as it was dealt."""
        return slots_of(self.blocks, part.dealt)

    def begun(self) -> set[int]:
        """The numbers of the blocks of which an arm was given: they stay where they are."""
        given = {trial for part in self.parts.values() for trial in part.given}
        return {number for number, block in self.blocks.items() if given.intersection(block["trials"])}

    def open_parts(self) -> list[Part]:
        """The parts that somebody is still to run or close."""
        return [part for part in self.parts.values() if part.cell not in self.gone and not part.phase]


def slots_of(blocks: Mapping[int, BlockBody], dealt: Sequence[int]) -> list[Slot]:
    """The public schedule of blocks in the order that they run; slots are counted from 0, blocks keep their numbers."""
    found: list[Slot] = []
    for number in dealt:
        for position, trial in enumerate(blocks[number]["trials"]):
            condition = blocks[number]["condition"]
            found.append(Slot(index=len(found), trial=trial, block=number, position=position, condition=condition))
    return found


def fold_joint(events: Iterable[Event]) -> JointState:
    """The state after all entries. Raises BrokenRecord for entries that do not follow."""
    state: JointState | None = None
    for event in events:
        try:
            state = advance_joint(state, event)
        except (KeyError, TypeError) as error:
            text = f"entry {event.seq} of the seal host's journal lacks what its kind must say"
            raise BrokenRecord(f"{text}: {error}") from error
    if state is None:
        raise BrokenRecord("the seal host's journal is empty")
    return state


def advance_joint(state: JointState | None, event: Event) -> JointState:
    """The state after one more entry; None: before the first. Raises BrokenRecord for one that does not follow."""
    if (state is None) != (event.kind == JointKind.OPENED):
        raise BrokenRecord(f"entry {event.seq}: a joint campaign is opened first, and once")
    if state is None:
        opened = body_of(event, JointOpened)
        blocks = {block["number"]: block for block in opened["blocks"]}
        parts = {(one["cell"], one["part"]): _part(one) for one in opened["parts"]}
        return JointState(opened, blocks, parts, last=HeadBody(seq=event.seq, hash=event.hash))
    match event.kind:
        case JointKind.JOINED | JointKind.CLOSED:
            body = body_of(event, CellHead)
            part = state.part(body["cell"], body["part"])
            state = _with(state, replace(part, head=body["head"], phase=body.get("phase", "")))
        case JointKind.GIVEN:
            given = body_of(event, ArmGiven)
            part, trial = state.part(given["cell"], given["part"]), str(event.trial)
            trials = part.given if given["again"] else (*part.given, trial)
            state = _with(state, replace(part, head=given["head"], given=trials, told_at=given["head"]["seq"]))
        case JointKind.MOVED:
            state = _moved(state, body_of(event, BlocksMoved))
        case JointKind.GONE:
            state = replace(state, gone=state.gone | {event.body["cell"]})
        case JointKind.BACK:
            state = replace(state, gone=state.gone - {event.body["cell"]})
        case JointKind.UNBLINDED:
            state = replace(state, unblinded=True, early=bool(event.body["early"]))
        case JointKind.HEADS:
            pass
        case _:
            raise BrokenRecord(f"entry {event.seq} is of no kind that a seal host's journal has")
    return replace(state, last=HeadBody(seq=event.seq, hash=event.hash))


def _part(body: PartBody) -> Part:
    blocks = tuple(body["blocks"])
    return Part(body["cell"], body["part"], blocks, blocks, body["commitment"])


def _with(state: JointState, part: Part) -> JointState:
    return replace(state, parts={**state.parts, (part.cell, part.number): part})


def _moved(state: JointState, body: BlocksMoved) -> JointState:
    taken = {number for one in body["parts"] for number in one["blocks"]}
    kept = {
        key: replace(part, blocks=tuple(number for number in part.blocks if number not in taken))
        for key, part in state.parts.items()
    }
    return replace(state, parts=kept | {(one["cell"], one["part"]): _part(one) for one in body["parts"]})


def check_head(part: Part, head: HeadBody) -> None:
    """A cell's chain only grows. Raises StateError for one that was cut, or is another one."""
    before = part.head
    if before is None:
        return
    if head["seq"] < before["seq"]:
        raise StateError(
            f"the journal of cell {part.name} ends at entry {head['seq']}, the seal host has noted entry "
            f"{before['seq']}: it was cut, or is a copy from before; go on with the newest one"
        )
    if head["seq"] == before["seq"] and head["hash"] != before["hash"]:
        raise StateError(f"entry {head['seq']} of cell {part.name} is not the one that the seal host has noted")


def may_give(state: JointState, part: Part, trial: str, head: HeadBody, skipped: Sequence[str]) -> bool:
    """Whether the arm of a trial may go to its cell: True when it was given before and is given again. skipped: trials
    before it that the cell does not run.

    The next trial in the part's order, once the cell has journalled something since the last, or the last one given;
    nothing before it, and nothing beyond it. Raises StateError.
    """
    if part.cell in state.gone:
        how = back(state.opened["name"], part.cell)
        raise StateError(f"cell {part.cell} was declared gone; it goes on once somebody orders: {how}")
    if part.head is None:
        further = f" --part {part.number}" if part.number > 1 else ""
        how = f"labctl joint join {part.cell}.invitation.toml PROTOCOL.toml --cell CELL.toml{further}"
        raise StateError(f"cell {part.name} has not joined; join it first, there: {how}")
    if part.phase:
        raise StateError(f"the campaign of cell {part.name} is {part.phase}; no trial of it begins any more")
    check_head(part, head)
    order = [trial for number in part.blocks for trial in state.blocks[number]["trials"]]
    if trial not in order:
        elsewhere = trial in {name for block in state.blocks.values() for name in block["trials"]}
        where = "is not of this cell any more" if elsewhere else "is not in the sealed schedule"
        raise StateError(f"trial {trial} {where}")
    if part.given and trial == part.given[-1]:
        return True
    if trial in part.given:
        raise StateError(f"trial {trial} came before the last one that cell {part.name} was told; it is over")
    last = max((order.index(one) for one in part.given if one in order), default=-1)
    left_out = [one for one in order[last + 1 : order.index(trial)] if one not in skipped]
    if order.index(trial) < last or left_out:
        raise StateError(f"trial {trial} is not the next of cell {part.name}; one arm is given at a time, in order")
    if head["seq"] <= part.told_at:
        raise StateError(
            f"the journal of cell {part.name} ends at entry {head['seq']}, as when it was told its last arm: trial "
            f"{part.given[-1]} begins or is skipped there first, with labctl run"
        )
    return False


def back(name: str, cell: str) -> str:
    """The command, at the seal host, by which a cell of joint campaign `name` that was declared gone returns."""
    return f"labctl joint back {name} {cell} --reason TEXT"


def check_clock(clock: ClockBody, limit_s: float) -> None:
    """Raises StateError for a clock that is surely further away than the limit."""
    surely = abs(clock["offset_s"]) - clock["bound_s"]
    if surely > limit_s:
        raise StateError(
            f"this cell's clock is {clock['offset_s']:+.3f} s (± {clock['bound_s']:.3f} s) from the seal host's, the "
            f"limit is {limit_s:g} s: set both by NTP, then go on"
        )


def not_yours(state: JointState, part: Part) -> list[str]:
    """The trials that were dealt to a part and that another cell has now: the cell does not run them."""
    return [trial for number in part.dealt if number not in part.blocks for trial in state.blocks[number]["trials"]]
