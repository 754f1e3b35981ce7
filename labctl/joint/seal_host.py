"""The seal of a joint campaign, at its one host: which cell is told which arm, one at a time, journalled before it is.

May not: know of a socket, print an arm, or answer anything before it stands in the journal.

A folder LAB/joint/NAME: `journal.db` with a chain of its own, `heads.log`, `seal/` (the whole schedule, its secret, the
protocol), `keys.toml`. Who writes holds the folder's lock for one answer, so that a person's orders go in between.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labctl.bus import Body
from labctl.clock import SECOND, Anchor, Clock, MonotonicClock
from labctl.core.cell_allocation import Allocation, CellBlock, redistribute
from labctl.core.design import drbg
from labctl.core.events import Event
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.joint.state import (
    ArmGiven,
    CellHead,
    ClockBody,
    HeadBody,
    JointKind,
    JointState,
    Part,
    PartBody,
    advance_joint,
    back,
    check_clock,
    check_head,
    fold_joint,
    may_give,
)
from labctl.messages.body_parts import SlotWithArm
from labctl.store.chain_heads import append_head, chain_and_head_problems
from labctl.store.journal import Journal, journal_url
from labctl.store.lab_folder import refuse_moved
from labctl.store.ledger import Ledger, part_commitment
from labctl.store.locks import Lock

JOINT = "joint"  # of a lab: the joint campaigns whose seal it has
WHO = "seal-host"
_PATIENCE_NS = 10 * SECOND


@dataclass(frozen=True, slots=True)
class Given:
    """An arm, and the seal host's head after it was journalled."""

    arm: str
    head: HeadBody


class SealHost:
    """The opened seal of a joint campaign. Use `writing` for one that may answer and take orders."""

    def __init__(self, folder: Path, journal: Journal, ledger: Ledger, anchor: Anchor) -> None:
        self.folder = folder
        self._journal, self._ledger, self._anchor = journal, ledger, anchor
        events = journal.events()
        problems = chain_and_head_problems(folder, events)
        if problems:
            raise BrokenRecord(f"{problems[0]}; nothing is revealed by it; see: labctl joint verify {folder.name}")
        self.state: JointState = fold_joint(events)
        sealed = ledger.open_all()
        self._slots: dict[str, SlotWithArm] = {slot["trial"]: slot for slot in sealed["schedule"]}
        self._secret = bytes.fromhex(sealed["secret_hex"])

    def log(self, kind: JointKind, body: Body, *, who: str = WHO, trial: str | None = None) -> Event:
        """Commit an entry, fold it in and keep its head outside the database. Raises StorageError."""
        event = self._journal.append(kind, anchor=self._anchor, who=who, trial=trial, body=body)
        append_head(self.folder, event.seq, event.hash, event.wall)
        self.state = advance_joint(self.state, event)
        return event

    def protocol_text(self) -> str:
        return self._ledger.protocol_text()

    def to_join(self, cell: str, part: int) -> Part:
        """The part that a cell is about to open a campaign for. Raises StateError, before there is one, where `join`
        would refuse any.
        """
        mine = self._own(cell, part)
        if mine.head is not None:
            raise self._joined_already(mine)
        return mine

    def join(self, cell: str, part: int, head: HeadBody) -> None:
        """A cell's campaign is open: from here on its chain is this one. The same head again changes nothing.

        Raises StateError for another chain than before, or while the cell is declared gone.
        """
        mine = self._own(cell, part)
        if mine.head is None:
            self.log(JointKind.JOINED, CellHead(cell=cell, part=part, head=head))
        elif head != self._joined_with(mine):
            raise self._joined_already(mine)

    def give(self, cell: str, part: int, trial: str, head: HeadBody, clock: ClockBody, skipped: Sequence[str]) -> Given:
        """The arm of the next trial of a cell's part, journalled with the cell's head before it leaves; the heads of
        all cells are joined first where a block begins. The same trial gives the same arm, however often it is asked.

        Raises StateError for what may not be given, or a clock that is too far away.
        """
        mine = self._own(cell, part)
        again = may_give(self.state, mine, trial, head, skipped)
        check_clock(clock, self.state.opened["clock_limit_s"])
        block = next(number for number in mine.blocks if trial in self.state.blocks[number]["trials"])
        if not again and block not in self.state.begun():
            heads = [
                {"cell": one.cell, "part": one.number, "head": head if one == mine else one.head}
                for one in self.state.parts.values()
                if one.head is not None
            ]
            self.log(JointKind.HEADS, {"block": block, "heads": heads})
        body = ArmGiven(cell=cell, part=part, head=head, clock=clock, skipped=list(skipped), again=again)
        event = self.log(JointKind.GIVEN, body, trial=trial)
        return Given(self._slots[trial]["arm"], HeadBody(seq=event.seq, hash=event.hash))

    def close(self, cell: str, part: int, head: HeadBody, phase: str) -> None:
        """A cell's campaign is over (closed, reviewed or frozen), and this is its head. Raises StateError."""
        mine = self._own(cell, part)
        check_head(mine, head)
        if mine.head is None:
            raise StateError(f"cell {mine.name} has not joined")
        if (mine.phase, mine.head) != (phase, head):
            self.log(JointKind.CLOSED, CellHead(cell=cell, part=part, head=head, phase=phase))

    def opening(self, cell: str, part: int) -> tuple[list[SlotWithArm], str]:
        """What a cell's part was: its slots with their arms, and the nonce that binds them. Raises StateError before
        all of it is unblinded.
        """
        mine = self.state.part(cell, part)
        if not self.state.unblinded:
            left = ", ".join(one.name for one in self.state.open_parts()) or "nobody"
            raise StateError(
                f"joint campaign {self.folder.name} is not unblinded; not over yet: {left}; then, at the seal host: "
                f"labctl joint unblind {self.folder.name}"
            )
        return self.sealed_slots(mine), part_nonce(self._secret, cell, part).hex()

    def gone(self, cell: str, *, who: str, reason: str) -> None:
        """Nothing is revealed to a cell any more, until it is declared back. Raises StateError."""
        self._known(cell)
        if cell in self.state.gone:
            raise StateError(f"cell {cell} is declared gone already")
        self.log(JointKind.GONE, {"cell": cell, "reason": _said(reason)}, who=who)

    def back(self, cell: str, *, who: str, reason: str) -> None:
        """A cell that was gone goes on with the blocks that nobody else was given. Raises StateError."""
        self._known(cell)
        if cell not in self.state.gone:
            raise StateError(f"cell {cell} was not declared gone")
        self.log(JointKind.BACK, {"cell": cell, "reason": _said(reason)}, who=who)

    def free_blocks(self) -> set[int]:
        """Blocks that can be given: of cells that are declared gone, where nobody has begun one of those that stand
        together.
        """
        theirs = {n for part in self.state.parts.values() if part.cell in self.state.gone for n in part.blocks}
        begun, blocks = self.state.begun(), self.state.blocks
        stay = {blocks[n]["together"] for n in blocks if n in begun or n not in theirs}
        return {n for n in theirs if blocks[n]["together"] not in stay}

    def dealt_anew(self) -> dict[int, str]:
        """To which cell each free block goes by the rule that dealt the blocks, as balanced as can be: number -> cell.
        Blocks of cells that are there stay. It depends on no arm.
        """
        state, free = self.state, self.free_blocks()
        now = {n: (part.cell, place) for part in state.parts.values() for place, n in enumerate(part.blocks)}
        arms = {trial: slot["arm"] for trial, slot in self._slots.items()}
        blocks = tuple(
            CellBlock(
                **{**block, "trials": tuple(block["trials"])},
                cell=now[number][0],
                place=now[number][1],
                arms=tuple(arms[trial] for trial in block["trials"]),
            )
            for number, block in sorted(state.blocks.items())
        )
        cells = tuple(state.opened["cells"])
        present = [cell for cell in cells if cell not in state.gone]
        anew = redistribute(Allocation(cells, blocks), present, set(state.blocks) - free)
        return {block.number: block.cell for block in anew.blocks if block.number in free and block.cell in present}

    def move(self, to: Mapping[int, str], *, who: str, reason: str) -> list[PartBody]:
        """Give free blocks to other cells, each as a new part of that cell. Arms and order within a block stay as they
        were sealed. to: the cell of each block's number. Raises StateError.
        """
        free = self.free_blocks()
        for number, cell in to.items():
            self._known(cell)
            if number not in free:
                raise StateError(
                    f"block {number}, or one that it stands together with, is begun, or its cell is not declared gone: "
                    "it stays where it is"
                )
            if cell in self.state.gone:
                raise StateError(f"cell {cell} is declared gone; it is given nothing")
        parts: list[PartBody] = []
        for cell in sorted(set(to.values())):
            number, blocks = len(self.state.parts_of(cell)) + 1, sorted(n for n, name in to.items() if name == cell)
            slots = self.sealed_slots(Part(cell, number, tuple(blocks), tuple(blocks), ""))
            nonce = part_nonce(self._secret, cell, number)
            parts.append(PartBody(cell=cell, part=number, blocks=blocks, commitment=part_commitment(slots, nonce)))
        if not parts:
            raise StateError("no block is free to be given: of cells that are gone every set is begun")
        self.log(JointKind.MOVED, {"reason": _said(reason), "parts": parts}, who=who)
        return parts

    def unblind(self, *, who: str, reason: str) -> bool:
        """Open the whole schedule in the journal. True when that is early: before every cell that is not gone is over,
        which needs a reason. Raises StateError.
        """
        if self.state.unblinded:
            raise StateError(f"joint campaign {self.folder.name} is unblinded already")
        left = [part for part in self.state.open_parts() if part.blocks]
        early = bool(left) or any(
            part.phase not in ("", "frozen") for part in self.state.parts.values() if part.cell not in self.state.gone
        )
        if early and not reason:
            named = ", ".join(part.name for part in left) or "a cell that is not frozen"
            raise StateError(
                f"not over: {named}; close, review and freeze there (labctl joint tell CAMPAIGN says so here), declare "
                "it gone, or give a --reason TEXT, which this journal keeps"
            )
        body = {"early": early, "reason": reason or None, "schedule": list(self._slots.values())}
        self.log(JointKind.UNBLINDED, {**body, "secret_hex": self._secret.hex()}, who=who)
        return early

    def sealed_slots(self, part: Part) -> list[SlotWithArm]:
        """A part's slots as its campaign has them, with their arms."""
        return [SlotWithArm(**slot, arm=self._slots[slot["trial"]]["arm"]) for slot in self.state.slots(part)]

    def _own(self, cell: str, part: int) -> Part:
        if cell in self.state.gone:
            how = back(self.state.opened["name"], cell)
            raise StateError(f"cell {cell} was declared gone; a person at the seal host orders: {how}")
        return self.state.part(cell, part)

    def _joined_already(self, part: Part) -> StateError:
        return StateError(
            f"cell {part.name} has joined with another campaign, whose first entry is "
            f"{self._joined_with(part)['hash'][:16]}…; a cell joins once, and no trial is run in two folders"
        )

    def _joined_with(self, part: Part) -> HeadBody:
        events = (event for event in self._journal.events() if event.kind == JointKind.JOINED)
        return next(e.body["head"] for e in events if (e.body["cell"], e.body["part"]) == (part.cell, part.number))

    def _known(self, cell: str) -> None:
        if cell not in self.state.opened["cells"]:
            names = ", ".join(self.state.opened["cells"])
            raise InputError(f"no cell {cell!r} in {self.folder.name}; there are {names}")


@contextmanager
def writing(folder: Path, verb: str, clock: Clock | None = None) -> Generator[SealHost, None, None]:
    """A seal host that may answer, for one answer or order. Raises StateError while another holds it too long or where
    its lab was moved away from, BrokenRecord when its chain or its seal does not hold, StorageError.
    """
    if not (folder / "journal.db").is_file():
        raise InputError(f"{folder} holds no seal of a joint campaign; `labctl joint open` makes one")
    now = clock or MonotonicClock()
    with Lock(folder / ".lock", verb, what=f"the seal of {folder.name}", clock=now, patience_ns=_PATIENCE_NS):
        refuse_moved(folder)  # `lab move` may have held the lock until now
        journal = Journal.open(journal_url(folder), folder.name)
        try:
            yield SealHost(folder, journal, Ledger.open(folder), now.anchor())
        finally:
            journal.close()


def part_nonce(secret: bytes, cell: str, part: int) -> bytes:
    """The 32 bytes that bind the arms of a cell's part; only the seal host can make them before unblinding."""
    return drbg(secret, f"part:{cell}:{part}")


def _said(reason: str) -> str:
    if not reason.strip():
        raise InputError("say why with --reason TEXT; it stands in the journal for good")
    return reason.strip()
