"""Which campaign of the lab was opened from a protocol, known by the name in it: that one takes no arm any more.

May not: say of a sealed protocol more than its name.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from labctl.errors import BrokenRecord
from labctl.store.lab_folder import JOURNAL
from labctl.store.ledger import Ledger
from labctl.store.opened_list import opened_in

COPY = "copy the protocol, and give the copy another name in [protocol]"


def opened_from(lab: Path, protocol: str) -> str | None:
    """The campaign, or joint campaign, that was opened from the protocol of this name; None where none was. Raises
    BrokenRecord for a list or a seal that does not hold.
    """
    found = next((one.campaign for one in opened_in(lab) if one.protocol == protocol), None)
    sealed_here = sorted(lab.glob(f"joint/*/{JOURNAL}"))  # which --name may call otherwise than their protocols
    return found or next((one.parent.name for one in sealed_here if _sealed_name(one.parent) == protocol), None)


def takes_no_arm(campaign: str, protocol: str) -> str:
    """Of a protocol that was opened, in words, with what to do."""
    return f"campaign {campaign} was opened from protocol {protocol!r} and takes no arm any more; {COPY}"


def _sealed_name(joint: Path) -> str:
    try:
        return str(tomllib.loads(Ledger.open(joint).protocol_text())["protocol"]["name"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BrokenRecord(f"{joint}: the protocol in its seal cannot be read; see: labctl verify {joint}") from None
