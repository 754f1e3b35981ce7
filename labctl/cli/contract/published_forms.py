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
    """`labctl publish`. archive: null without one; free_texts: how many that people typed are in the journal."""

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
    """`labctl report` of a published folder, which exits with 1 where `numbers` says that one is another. same: byte
    for byte; files: those that differ; furthest: the largest relative difference of numbers that count as the same;
    texts: where
    words alone differ; versions: which are other ones here.
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
