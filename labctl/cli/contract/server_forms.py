"""What `labctl database --json` prints, as types; the rules are those of `forms`.

May not: compute or check.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from labctl.cli.contract.forms import Document
from labctl.store.server.fetching import Listed


class SetUp(Document):
    """`labctl database init`."""

    does: Literal["init"]
    said: list[str]


class CopiedCampaign(TypedDict):
    """entries: of the journal that the server has now, from 1; sent_entries, sent_chunks: by this command. error: what
    of it was not copied and why, else null.
    """

    campaign: str
    entries: int
    sent_entries: int
    sent_chunks: int
    error: str | None


class Copies(Document):
    """`labctl database copy`."""

    does: Literal["copy"]
    campaigns: list[CopiedCampaign]


class CheckedCampaign(TypedDict):
    """entries and chunks that the server has, of how many here; head: of the copy, as N:HASH; witnessed: when the
    server's own clock saw it; blind: what tells arms apart is neither there nor counted.
    """

    campaign: str
    whole: bool
    entries: int
    of_entries: int
    chunks: int
    of_chunks: int
    head: str
    witnessed: str | None
    blind: bool
    problems: list[str]


class Checks(Document):
    """`labctl database check`."""

    does: Literal["check"]
    campaigns: list[CheckedCampaign]


class Listing(Document):
    """`labctl database list`."""

    does: Literal["list"]
    campaigns: list[Listed]


class FetchedCampaign(Document):
    """`labctl database fetch`."""

    does: Literal["fetch"]
    campaign: str
    folder: str
    entries: int
    head: str
    chunks: int


Database = SetUp | Copies | Checks | Listing | FetchedCampaign
