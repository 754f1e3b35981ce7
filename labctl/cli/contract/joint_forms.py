"""Types of what --json prints of `labctl joint`. `documents` names them.

May not: be printed from elsewhere than the verb it is named for, or hold an arm.
"""

from __future__ import annotations

from typing import TypedDict

from labctl.cli.contract.forms import Document, HeadAt


class JointMade(Document):
    """`labctl joint open`: commitment: of the whole schedule; invitations: files with a key each."""

    joint: str
    folder: str
    commitment: str
    head: str
    invitations: list[str]


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
