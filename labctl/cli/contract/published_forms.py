"""What --json prints of published folders and sites.

May not: compute or check; see `forms`.
"""

from __future__ import annotations

from typing import TypedDict

from labctl.cli.contract.forms import BoundOutside, CountsLooked, Damage, Document


class Withheld(TypedDict):
    """A thing that is not in a published folder. what: video, depth, side file, photo or samples; file: its path in the
    campaign's folder, "" of samples; salted: sha256 over 32 bytes that the lab keeps and the thing.
    """

    what: str
    episode: str
    file: str
    why: str
    salted: str


class PublishedMade(Document):
    """`labctl publish`. archive: null without one; free_texts: how many that people typed are in the journal, and by
    kind of entry.
    """

    campaign: str
    out: str
    archive: str | None
    files: int
    bytes: int
    manifest_sha256: str
    head: str
    commitment: str
    withheld: list[Withheld]
    free_texts: int
    free_texts_by: dict[str, int]


class VerifiedPublished(Document):
    """`labctl verify` of a published folder, which exits with 1 where it is not ok. head: N:HASH; unchecked: what the
    folder alone cannot show, a line each.
    """

    campaign: str
    ok: bool
    manifest_sha256: str
    head: str
    outside: BoundOutside | None
    counts: CountsLooked
    problems: list[Damage]
    notes: list[str]
    withheld: list[Withheld]
    unchecked: list[str]


class ReportAgain(Document):
    """`labctl report` of a published folder, which exits with 1 where `numbers` is not empty. same: byte for byte;
    files: those that differ, of the report by their names there, of what lies beside it by their paths; furthest: the
    largest relative difference of numbers that count as the same; numbers: what makes it another report (a number, a
    name, a verdict; by the same versions any file with other bytes); texts: where by other versions words alone differ,
    or one of the two says nothing; versions: which are other ones here.
    """

    report: str
    same: bool
    files: list[str]
    furthest: float
    numbers: list[str]
    texts: list[str]
    versions: list[str]


class SiteMade(Document):
    """`labctl site`. episodes: scored ones; rerun: how many it shows in Rerun's viewer; boards: the campaigns of each
    leaderboard; not_ranked: campaign -> why.
    """

    index: str
    campaigns: list[str]
    episodes: int
    rerun: int
    boards: list[list[str]]
    not_ranked: dict[str, str]


class SealLooked(TypedDict):
    """A seal host's published record: its head as N:HASH, and how many arms it gave."""

    manifest_sha256: str
    head: str
    given: int


class VerifiedPublishedJoint(Document):
    """`labctl verify` of published parts of a joint campaign, which exits with 1 where it is not ok. commitment: to the
    whole schedule; seal_host: null where the seal host's record is not among the folders; cells: those that were read;
    problems: of the parts together; missing: cells and blocks that are not here, a line each.
    """

    joint: str
    ok: bool
    commitment: str
    seal_host: SealLooked | None
    cells: list[str]
    problems: list[Damage]
    notes: list[str]
    missing: list[str]
    unchecked: list[str]
    parts: list[VerifiedPublished]


class ReportPublishedJoint(Document):
    """`labctl report` of published parts of a joint campaign, which exits with 1 where `numbers` says that one is
    another than in the published report. same: byte for byte that one, null where it was not held against it, and why;
    missing: cells and blocks that are not in it; the rest as of one published folder.
    """

    report: str
    joint: str
    same: bool | None
    why: str
    missing: list[str]
    notes: list[str]
    files: list[str]
    numbers: list[str]
    texts: list[str]
    versions: list[str]


class PartOfPublished(TypedDict):
    """A published part, and sha256 of its manifest."""

    campaign: str
    cell: str
    part: int
    manifest: str


class JointPublished(Document):
    """`labctl joint publish`. parts: those that the report in it is of; missing: what is not in that report."""

    joint: str
    out: str
    files: int
    head: str
    manifest_sha256: str
    commitment: str
    missing: list[str]
    parts: list[PartOfPublished]
