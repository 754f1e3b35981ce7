"""Where a campaign's schedule comes from: drawn and sealed here, or dealt by the seal host of a joint campaign, which
keeps the arms until each trial's turn.

May not: ask anybody, or know an arm of a dealt schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from labctl.errors import BrokenRecord, InputError, StateError
from labctl.messages.body_parts import Slot as PublicSlot
from labctl.messages.body_parts import SlotWithArm, Unsealed
from labctl.messages.joint import JointPart
from labctl.store.atomic_files import replace_file
from labctl.store.ledger import Ledger

if TYPE_CHECKING:
    from labctl.config.conditions import Condition
    from labctl.core.design import Schedule
    from labctl.store.lab_folder import Plan

INVITATION = "invitation.toml"  # beside the seal of a cell's part: how its seal host is reached


@dataclass(frozen=True, slots=True)
class Dealt:
    """A cell's part as its seal host dealt it: public slots, what binds their arms, and the text of the invitation."""

    entry: JointPart
    slots: Sequence[PublicSlot]
    commitment: str
    invitation: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What a seal host says of a part once all is unblinded: its slots with their arms, and what binds them."""

    slots: Sequence[SlotWithArm]
    nonce_hex: str


class JointBody(TypedDict, total=False):
    """What a campaign's first entry has of it; nothing of a campaign by itself."""

    joint: JointPart


def schedule_of(plan: Plan, conditions: Sequence[Condition], entropy: bytes, dealt: Dealt | None) -> Schedule:
    """The schedule to seal, drawn from the entropy or as it was dealt, without arms then. Raises InputError."""
    from labctl.config.conditions import sets_of
    from labctl.core.design import Schedule, Slot, draw

    protocol = plan.protocol
    if protocol.cells is not None and dealt is None:
        text = "several cells share this protocol: labctl joint open seals it, labctl joint join opens each part"
        raise protocol.refusal(("cells",), text, str(plan.path))
    if dealt is None:
        arms = [arm.name for arm in protocol.arm]
        return draw(sets_of(conditions), arms, protocol.design.blocks_per_condition, entropy, protocol.alone)
    known = {condition.id for condition in conditions}
    strange = next((slot["condition"] for slot in dealt.slots if slot["condition"] not in known), None)
    if strange is not None:
        raise InputError(f"the seal host dealt condition {strange!r}, which {plan.path} does not have")
    return Schedule(
        tuple(
            Slot(number, slot["trial"], slot["block"], slot["position"], slot["condition"], "")
            for number, slot in enumerate(dealt.slots)
        )
    )


def seal(folder: Path, plan: Plan, schedule: Schedule, entropy: bytes, dealt: Dealt | None) -> str:
    """The seal of a campaign, and what binds its arms. Raises StateError, StorageError."""
    commitment = Ledger.create(folder, schedule, entropy, plan.protocol_text, plan.cards)
    if dealt is None:
        return commitment
    path = Ledger.open(folder).private_file(INVITATION)
    replace_file(path, dealt.invitation.encode(), mode=0o600)
    return dealt.commitment


def joint_body(dealt: Dealt | None) -> JointBody:
    """What the first entry says of the joint campaign."""
    return {} if dealt is None else {"joint": dealt.entry}


def unsealed(ledger: Ledger, name: str, opening: Opening | None) -> Unsealed:
    """Everything in a seal, for unblinding. Raises StateError for a part whose seal host has not opened it,
    BrokenRecord where that opens another arm than it revealed.
    """
    found = ledger.open_all()
    if not ledger.joint:
        return found
    if opening is None:
        raise StateError(f"campaign {name} is a part of a joint one; its arms are at the seal host: labctl unblind")
    revealed: Mapping[str, str] = ledger.revealed()
    for slot in opening.slots:
        if revealed.get(slot["trial"], slot["arm"]) != slot["arm"]:
            raise BrokenRecord(f"trial {slot['trial']}: the seal host opens another arm than it revealed")
    return {**found, "schedule": list(opening.slots), "nonce_hex": opening.nonce_hex}
