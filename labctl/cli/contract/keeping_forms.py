"""Types of what --json prints of the verbs that keep a lab. `documents` names them.

May not: be printed from elsewhere than the verb it is named for.
"""

from __future__ import annotations

from typing import TypedDict

from labctl.backup.repository import HeadKept
from labctl.cli.contract.forms import Document, Unread


class BackupTaken(Document):
    """`labctl backup`: files and bytes that are new in this folder of backups, and the campaigns' heads. passed_over:
    earlier snapshots that cannot be read, and why.
    """

    backups: str
    snapshot: str
    files: int
    new_files: int
    new_bytes: int
    heads: list[HeadKept]
    left_out: list[str]
    damaged: list[str]
    passed_over: list[str]


class SnapshotListed(TypedDict):
    """One snapshot; `bytes` is what a lab restored from it has."""

    snapshot: str
    lab: str
    files: int
    bytes: int
    heads: list[HeadKept]


class Backups(Document):
    """`labctl backup --list`, oldest first. unread: the snapshots that are damaged."""

    backups: str
    snapshots: list[SnapshotListed]
    unread: list[Unread]


class BackupsRead(Document):
    """`labctl backup --check`: how many kept files were read, and what is damaged."""

    backups: str
    files: int
    ok: bool
    problems: list[str]


class CampaignRestored(TypedDict):
    """A campaign of a restored lab, verified up to the head that it had."""

    campaign: str
    ok: bool
    head: str
    problems: list[str]


class LabRestored(Document):
    """`labctl restore`. missing: campaigns without their journal; open: campaigns that can go on, in one place only."""

    folder: str
    snapshot: str
    files: int
    ok: bool
    campaigns: list[CampaignRestored]
    missing: list[str]
    open: list[str]


class LabMoved(Document):
    """`labctl lab move`, which exits with 1 where a campaign does not hold (its bytes are those of the old place). to:
    the new folder, or the snapshot that is to be restored elsewhere; digest: sha256 over the lines that `sha256sum`
    writes of every file, by path; heads: campaign -> its newest entry, N:HASH, the same before and after; left: what
    stayed, since it is no file of a lab; passed_over: with --by, earlier snapshots that cannot be read, and why.
    """

    lab: str
    to: str
    files: int
    bytes: int
    digest: str
    heads: dict[str, str]
    problems: list[str]
    left: list[str]
    passed_over: list[str]
