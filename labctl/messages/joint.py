"""What a campaign's own journal says of the joint campaign that it is one cell's part of.

May not: say anything of an arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict


class JointPart(TypedDict):
    """Which part of a joint campaign this is. cells: all that share it; part: this one's number within its cell;
    blocks: their numbers, of `of` over all cells; commitment: of the whole schedule; head: the seal host's at joining.
    """

    name: str
    cell: str
    part: int
    cells: Sequence[str]
    blocks: Sequence[int]
    of: int
    commitment: str
    head: Mapping[str, int | str]


class SealAnswer(TypedDict):
    """The seal host's head when it gave an arm; the cell's wall clock less its own, in s, and half the round trip."""

    seq: int
    hash: str
    offset_s: float
    bound_s: float
