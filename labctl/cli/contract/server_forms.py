"""What `labctl database --json` prints, as types; the rules are those of `forms`.

May not: compute or check.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from labctl.store.server.fetching import Listed


class SetUp(TypedDict):
    """`labctl database init`."""

    schema: str
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


class Copies(TypedDict):
    """`labctl database copy`."""

    schema: str
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


class Checks(TypedDict):
    """`labctl database check`."""

    schema: str
    does: Literal["check"]
    campaigns: list[CheckedCampaign]


class Listing(TypedDict):
    """`labctl database list`."""

    schema: str
    does: Literal["list"]
    campaigns: list[Listed]


class FetchedCampaign(TypedDict):
    """`labctl database fetch`."""

    schema: str
    does: Literal["fetch"]
    campaign: str
    folder: str
    entries: int
    head: str
    chunks: int


Database = SetUp | Copies | Checks | Listing | FetchedCampaign
