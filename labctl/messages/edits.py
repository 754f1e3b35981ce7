"""A declared edit of what a policy sees, as the journal and the messages to cameras and controllers have it.

May not: make the edit, or say anything of an arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class EditEntry(TypedDict):
    """One edit. cameras: whose pictures, none: of all; amount: its number, as the protocol's table of this edit has it
    (recolour: degrees, blur: pixels, latency: seconds, the others: shares and factors).
    """

    edit: str
    cameras: Sequence[str]
    amount: float
