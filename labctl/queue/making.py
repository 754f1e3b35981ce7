"""A request in the making, by whoever submits: what the lab would refuse by its form is refused before it is signed.

May not: know a lab's own networks; an endpoint in one of them is left to the lab.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from pydantic import ValidationError

from labctl.config.policy_card import parse_card
from labctl.errors import InputError
from labctl.queue.endpoints import check_card, check_endpoint
from labctl.queue.request import Asked, first_wrong, lasting, new_nonce

ANYWHERE = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))


def request_of(card: str, where: str, wall: str, days: int, given: Mapping[str, str | None]) -> Asked:
    """The request for a card's text. wall: now; given: the other words of `Asked`. Raises InputError."""
    parsed = parse_card(card, where)
    check_card(parsed, where)
    made, expires = lasting(days, wall)
    try:
        asked = Asked.model_validate({**given, "card": card, "nonce": new_nonce(), "made": made, "expires": expires})
    except ValidationError as error:
        raise InputError(f"the request: {first_wrong(error)}") from None
    if asked.endpoint is not None:
        check_endpoint(asked.endpoint, parsed.policy.dialect, ANYWHERE, "--endpoint")
    return asked
