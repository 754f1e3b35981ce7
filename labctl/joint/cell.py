"""A cell's side: it opens its part of a joint campaign, says when that is over, and gets it opened at the end.

May not: run a trial, or take another seal host's word than the one that its invitation names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from labctl.clock import Anchor
from labctl.config.cell_schema import Cell
from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import digest
from labctl.errors import BrokenRecord, InputError, LabctlError
from labctl.joint.asking import SealLink
from labctl.joint.keys import Invitation, read_invitation
from labctl.joint.state import HeadBody, check_clock
from labctl.joint.wire import Files
from labctl.store.campaign import Campaign, Opened, open_campaign
from labctl.store.chain_heads import head_text
from labctl.store.journal import events_of
from labctl.store.lab_folder import Plan, campaigns, read_plan, read_text
from labctl.store.ledger import Ledger
from labctl.store.opened_body import INVITATION, Dealt, Frozen, Opening, text_digest

Asks = Callable[[Invitation, int], SealLink]


def _link(invitation: Invitation, part: int) -> SealLink:
    return SealLink(invitation, part=part)


def link_of(folder: Path, opened: CampaignOpened, asks: Asks = _link) -> SealLink:
    """How the seal host of a part is asked. Raises InputError for a campaign by itself, or a key that others may
    read.
    """
    if "joint" not in opened:
        raise InputError(f"campaign {folder.name} is no part of a joint one")
    return asks(read_invitation(Ledger.open(folder).private_file(INVITATION)), opened["joint"]["part"])


def join(
    invitation_path: Path,
    protocol: Path,
    cell: Path,
    lab: Path,
    *,
    entropy: bytes,
    anchor: Anchor,
    who: str,
    part: int = 1,
    name: str | None = None,
    asks: Asks = _link,
    further: Callable[[Plan, Cell], Frozen | None] = lambda plan, cell: None,
) -> tuple[Opened, bool]:
    """Open a cell's part as a campaign of its lab, and tell the seal host of its first head. True when it was opened
    before: then only that is said again. further: as `open_campaign` has it.

    Nothing is opened for a part that the seal host would not let join. Raises Unreachable, InputError for another
    protocol, fixture or card than the seal host's, StateError for clocks too far apart, a part that has joined or a
    cell that is declared gone, BrokenRecord for another seal host than invited.
    """
    invitation, plan = read_invitation(invitation_path), read_plan(protocol)
    link = asks(invitation, part)
    hello = link.hello()
    check_clock(hello.clock, hello.limit_s)
    before = _opened_before(lab, invitation, part)
    if before is not None:
        found = _again(before)
        link.join(_head_of(found))
        return found, True
    digests = text_digest(plan.protocol_text), text_digest(plan.fixture_text), digest(dict(plan.cards))
    answer = link.part(Files(protocol=digests[0], fixture=digests[1], cards=digests[2]))
    entry = answer.joint.body()
    as_invited = (entry["name"], entry["cell"], entry["commitment"], entry["part"])
    if as_invited != (invitation.joint, invitation.cell, invitation.commitment, part):
        raise BrokenRecord("the seal host's commitment is not the one of the invitation: it is another joint campaign")
    slots = [slot.body() for slot in answer.slots]
    dealt = Dealt(entry, slots, answer.commitment, read_text(invitation_path))
    wanted = name or f"{invitation.joint}-{invitation.cell}" + (f"-{part}" if part > 1 else "")
    opened = open_campaign(
        protocol, cell, lab, entropy=entropy, anchor=anchor, who=who, name=wanted, further=further, dealt=dealt
    )
    link.join(_head_of(opened))
    return opened, False


def tell(folder: Path, asks: Asks = _link) -> str:
    """Tell the seal host that a part is over, with its head; a line to print. Raises InputError while it is open,
    Unreachable.
    """
    with Campaign.open(folder) as campaign:
        phase, opened, (seq, own) = str(campaign.state.phase), campaign.opened, campaign.journal.head()
    if phase == "open":
        raise InputError(f"campaign {folder.name} is open; close it first: labctl close {folder.name}")
    link_of(folder, opened, asks).close(HeadBody(seq=seq, hash=own), phase)
    return f"the seal host knows that {folder.name} is {phase}, at head {head_text(seq, own)}"


def opening_of(folder: Path, asks: Asks = _link) -> Opening | None:
    """What the seal host opens of a part; None for a campaign by itself. Raises StateError before it is unblinded
    there, Unreachable.
    """
    opened = body_of(events_of(folder)[0], CampaignOpened)
    if "joint" not in opened:
        return None
    slots, nonce = link_of(folder, opened, asks).opening()
    return Opening(slots, nonce)


def _opened_before(lab: Path, invitation: Invitation, part: int) -> Path | None:
    for folder in campaigns(lab):
        try:
            entry = body_of(events_of(folder)[0], CampaignOpened).get("joint")
        except (LabctlError, IndexError):
            continue  # another campaign of this lab, which is damaged
        if entry is not None and (entry["commitment"], entry["cell"], entry["part"]) == (
            invitation.commitment,
            invitation.cell,
            part,
        ):
            return folder
    return None


def _again(folder: Path) -> Opened:
    first = events_of(folder)[0]
    return Opened(folder, folder.name, first.body["commitment"], head_text(first.seq, first.hash))


def _head_of(opened: Opened) -> HeadBody:
    seq, _, own = opened.head.partition(":")
    return HeadBody(seq=int(seq), hash=own)
