"""What verification finds of an opened seal: each value held to its digest in the journal, each pair to what was drawn.

May not: open a seal (`labctl.store.ledger` does), or look at anything else of a campaign.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import Event, Kind
from labctl.messages.body_parts import Link, Unsealed
from labctl.plain import Json
from labctl.store.ledger import SEALING, compared_trials, sealed_digest


def check_compared(events: Sequence[Event], opened: Unsealed) -> list[str]:
    """Which of the pairs that were compared by preference is not the one that was drawn for its block."""
    asked = [event for event in events if event.kind == Kind.PREFERENCE_ASKED]
    if not asked:
        return []
    pairs = compared_trials(opened["schedule"], bytes.fromhex(opened["secret_hex"])).values()
    drawn = {second: first for first, second in pairs}
    owner = {event.episode: event.trial for event in events if event.kind == Kind.ARM_REVEALED}
    return [
        f"journal seq {event.seq} ({event.kind}): these two episodes are not the pair that was drawn for their block"
        for event in asked
        if drawn.get(event.trial or "") != owner.get(event.body["first"])
    ]


def check_digests(opened: Unsealed) -> list[str]:
    """Which of the opened values does not give its own digest."""
    secret = bytes.fromhex(opened["secret_hex"])
    return [
        f"episode {one['episode']}: a sealed value does not give its own digest"
        for one in opened["openings"]
        if sealed_digest(secret, one["episode"], one["field"], one["value"]) != one["sha256"]
    ]


def check_openings(events: Sequence[Event], opened: Unsealed) -> list[str]:
    """What is wrong between the journal's sealed digests and the opened values: each must open, arms to those drawn."""
    arms = {slot["trial"]: slot["arm"] for slot in opened["schedule"]}
    values: dict[tuple[str, str], tuple[str, Json]] = {}
    problems = check_digests(opened)
    for opening in opened["openings"]:
        values[opening["episode"], opening["sha256"]] = (opening["field"], opening["value"])
    for link in [link for event in events for link in _links(event)]:
        if ("", link.get("sealed", "")) not in values:
            problems.append(f"the anchors shared with campaign {link['campaign']}: their sealed value was not opened")
    for event in events:
        if event.kind not in SEALING or "sealed" not in event.body:
            continue
        opening = values.get((event.episode or "", event.body.get("sealed", "")))
        here = f"journal seq {event.seq} ({event.kind}), episode {event.episode}"
        if opening is None:
            problems.append(f"{here}: its sealed value was not opened")
        elif event.kind == Kind.ARM_REVEALED and opening != ("arm", arms.get(event.trial or "")):
            problems.append(f"{here}: the arm that was sealed is not the one drawn for trial {event.trial}")
    return problems


def _links(event: Event) -> list[Link]:
    """The links of a CampaignOpened that hold a sealed value."""
    if event.kind != Kind.CAMPAIGN_OPENED:
        return []
    return [link for link in body_of(event, CampaignOpened).get("links") or [] if "sealed" in link]
