"""Types of what --json prints of `labctl joint`. `documents` names them.

May not: be printed from elsewhere than the verb it is named for, or hold an arm.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from labctl.cli.contract.forms import Document, HeadAt


class JointMade(Document):
    """`labctl joint open`: commitment: of the whole schedule; invitations: files with a key each."""

    joint: str
    folder: str
    commitment: str
    head: str
    invitations: list[str]


class JointServing(Document):
    """`labctl joint serve`, printed once the seal host answers there."""

    joint: str
    address: str


class PartGiven(TypedDict):
    """A further part of a cell, and how many blocks it has."""

    cell: str
    part: int
    blocks: int


class JointActed(Document):
    """`labctl joint gone`, `back`, `give`, `unblind`. cell: of gone and back; free_blocks: of all cells that are gone;
    blocks: that the cell goes on with; parts: that were given; early: before every cell was over; head: after it.
    """

    joint: str
    did: Literal["gone", "back", "give", "unblind"]
    reason: str
    cell: NotRequired[str]
    free_blocks: NotRequired[int]
    blocks: NotRequired[int]
    parts: NotRequired[list[PartGiven]]
    early: NotRequired[bool]
    head: HeadAt


class PartListed(TypedDict):
    """A cell's share: how many blocks are its own now, of how many trials, and how many arms it was given."""

    cell: str
    part: int
    blocks: int
    trials: int
    given: int
    stands: str


class JointStatus(Document):
    """`labctl joint status`: head: of the seal host's chain."""

    joint: str
    commitment: str
    unblinded: bool
    head: HeadAt
    parts: list[PartListed]


class JointProblem(TypedDict):
    """What is broken, and where."""

    what: str
    where: str
    detail: str


class JointVerified(Document):
    """`labctl joint verify`: cells: those whose campaigns were read; given: how many arms the seal host gave."""

    joint: str
    head: str
    entries: int
    given: int
    cells: list[str]
    problems: list[JointProblem]
    notes: list[str]
