"""A declared edit of what a policy sees, as the journal and the messages to cameras and controllers have it.

May not: make the edit, or say anything of an arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

LATENCY = "latency"  # of the edits the one that is of all that a policy sees, and of no picture


class EditEntry(TypedDict):
    """One edit. cameras: whose pictures, none: of all; amount: its number, as the protocol's table of this edit has it
    (recolour: degrees, blur: pixels, latency: seconds, the others: shares and factors).
    """

    edit: str
    cameras: Sequence[str]
    amount: float


def delay_s(edits: Sequence[EditEntry]) -> float:
    """How much later everything comes to a policy, s."""
    return sum(one["amount"] for one in edits if one["edit"] == LATENCY)
