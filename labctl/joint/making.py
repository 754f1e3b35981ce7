"""A joint campaign is made: the schedule over all cells drawn and sealed at one host, an invitation for each cell.

May not: write anything before everything that could be refused has been checked, or print what is sealed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Anchor
from labctl.core.cell_allocation import Allocation, allocate
from labctl.core.design import Schedule, Slot
from labctl.core.events import digest
from labctl.errors import InputError
from labctl.joint.keys import (
    HOST_KEYS,
    HostKeys,
    Invitation,
    check_address,
    new_pair,
    write_host_keys,
    write_invitation,
)
from labctl.joint.seal_host import JOINT, part_nonce
from labctl.joint.state import BlockBody, JointKind, JointOpened, PartBody, fold_joint, slots_of
from labctl.messages.body_parts import SlotWithArm
from labctl.store.atomic_files import folder_in_one_step
from labctl.store.chain_heads import append_head, head_text
from labctl.store.database_backend import sqlite_url
from labctl.store.journal import Journal
from labctl.store.lab_folder import Plan, check_name, read_plan
from labctl.store.ledger import Ledger, part_commitment
from labctl.store.opened_body import text_digest


@dataclass(frozen=True, slots=True)
class Made:
    """A joint campaign that was just sealed; commitment and head are to be published."""

    folder: Path
    commitment: str
    head: str
    invitations: Sequence[Path]


def make_joint(
    protocol_path: Path, lab: Path, *, address: str, entropy: bytes, anchor: Anchor, who: str, name: str | None = None
) -> Made:
    """Draw and seal the schedule of a protocol with [cells] in LAB/joint/NAME, with keys and invitations.

    address: tcp://HOST:PORT where the cells will find this host. The folder appears whole or not at all. Raises
    InputError, StorageError.
    """
    plan = read_plan(protocol_path)
    if plan.protocol.cells is None:
        at = str(protocol_path)
        raise InputError('it has no [cells] table; a joint campaign names its cells: names = ["a", "b"]', where=at)
    check_address(address, "--address")
    name = name or plan.protocol.protocol.name
    check_name("joint campaign", name)
    folder = lab.resolve() / JOINT / name
    if folder.exists():
        raise InputError(f"joint campaign {name!r} is there already in {folder.parent}; choose another --name")
    with folder_in_one_step(folder, mode=0o700) as building:
        commitment, head = _seal(building, name, plan, entropy, anchor, who)
        _pair(building, name, plan.protocol.cells.names, address, commitment)
    return Made(folder, commitment, head, sorted(folder.glob("*.invitation.toml")))


def drawn(plan: Plan, secret: bytes) -> Allocation:
    """The blocks of a protocol with [cells], dealt over cells and days."""
    from labctl.config.conditions import protocol_conditions, sets_of

    protocol, cells = plan.protocol, plan.protocol.cells
    assert cells is not None
    conditions = protocol_conditions(protocol, plan.fixture)
    blocks = protocol.design.blocks_per_condition
    in_a_cell = len(conditions) * blocks // len(cells.names)
    days = None if cells.blocks_per_day is None else -(-in_a_cell // cells.blocks_per_day)
    return allocate(sets_of(conditions), [arm.name for arm in protocol.arm], blocks, secret, cells.names, days)


def _seal(folder: Path, name: str, plan: Plan, secret: bytes, anchor: Anchor, who: str) -> tuple[str, str]:
    """The commitment to the whole schedule, and the first head."""
    allocation, cells = drawn(plan, secret), plan.protocol.cells
    assert cells is not None
    slots = [
        Slot(0, trial, block.number, position, block.condition, arm)
        for block in allocation.blocks
        for position, (trial, arm) in enumerate(zip(block.trials, block.arms, strict=True))
    ]
    numbered = tuple(Slot(n, s.trial, s.block, s.position, s.condition, s.arm) for n, s in enumerate(slots))
    commitment = Ledger.create(folder, Schedule(numbered), secret, plan.protocol_text, plan.cards)
    blocks = [
        BlockBody(
            number=block.number,
            together=block.together,
            condition=block.condition,
            drawn_for=block.drawn_for,
            drawn_place=block.drawn_place,
            day=block.day,
            trials=list(block.trials),
        )
        for block in allocation.blocks
    ]
    body = JointOpened(
        name=name,
        commitment=commitment,
        protocol=text_digest(plan.protocol_text),
        fixture=text_digest(plan.fixture_text),
        cards=digest(dict(plan.cards)),
        cells=list(cells.names),
        clock_limit_s=cells.clock_limit_s,
        blocks=blocks,
        parts=[_part(allocation, blocks, cell, secret) for cell in cells.names],
    )
    journal = Journal.create(sqlite_url(folder / "journal.db"), name)
    try:
        event = journal.append(JointKind.OPENED, anchor=anchor, who=who, body=body)
        fold_joint([event])
    finally:
        journal.close()
    append_head(folder, event.seq, event.hash, anchor.wall)
    return commitment, head_text(event.seq, event.hash)


def _part(allocation: Allocation, blocks: Sequence[BlockBody], cell: str, secret: bytes) -> PartBody:
    own = sorted((block for block in allocation.blocks if block.cell == cell), key=lambda block: block.place)
    arms = {trial: arm for block in own for trial, arm in zip(block.trials, block.arms, strict=True)}
    dealt = [block.number for block in own]
    slots = slots_of({block["number"]: block for block in blocks}, dealt)
    sealed = [SlotWithArm(**slot, arm=arms[slot["trial"]]) for slot in slots]
    return PartBody(cell=cell, part=1, blocks=dealt, commitment=part_commitment(sealed, part_nonce(secret, cell, 1)))


def _pair(folder: Path, name: str, cells: Sequence[str], address: str, commitment: str) -> None:
    """Keys for the host and each cell. The host forgets the cells' secret halves: they are in the invitations alone."""
    host_public, host_secret = new_pair()
    known: dict[str, str] = {}
    for cell in cells:
        public, secret = new_pair()
        known[cell] = public
        one = Invitation(name, cell, address, commitment, host_public, public, secret)
        write_invitation(folder / f"{cell}.invitation.toml", one)
    write_host_keys(folder / HOST_KEYS, HostKeys(address, host_public, host_secret, known))
