"""What `labctl media --json` prints, as types; the rules are those of `forms`.

May not: compute or check.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from labctl.cli.contract.forms import Document


class MediaListed(TypedDict):
    """where: by the folder and the journal, no store was asked; waits: it may not leave yet. place, version, until
    (when the store may delete it) and checked are of its newest journalled copy, null without one.
    """

    episode: str
    file: str
    sha256: str
    where: Literal["both", "here", "store", "gone"]
    waits: bool
    place: str | None
    version: str | None
    until: str | None
    checked: str | None


class CampaignListed(TypedDict):
    """A campaign's media files."""

    campaign: str
    files: list[MediaListed]


class MediaList(Document):
    """`labctl media list`."""

    does: Literal["list"]
    campaigns: list[CampaignListed]


class CampaignUploaded(TypedDict):
    """sent: files of which bytes went now; stored: files of which the journal has a verified copy in this store; waits:
    files that may not leave yet; elsewhere: files that another store alone has, by the journal; gone: neither here nor
    stored; broken: not stored, and why; later: why nothing was journalled, else empty.
    """

    campaign: str
    place: str
    sent: int
    sent_bytes: int
    stored: int
    waits: int
    elsewhere: int
    gone: list[str]
    broken: list[str]
    later: str


class MediaUploads(Document):
    """`labctl media upload`."""

    does: Literal["upload"]
    campaigns: list[CampaignUploaded]


class CampaignAsked(TypedDict):
    """checked: copies that were compared with their digests; problems: those that do not hold; elsewhere: files whose
    copies are in other stores alone, which were not asked.
    """

    campaign: str
    place: str
    checked: int
    problems: list[str]
    elsewhere: int
    ok: bool


class MediaChecks(Document):
    """`labctl media check`."""

    does: Literal["check"]
    campaigns: list[CampaignAsked]


class MediaFetched(Document):
    """`labctl media fetch`: files that were brought back."""

    does: Literal["fetch"]
    campaign: str
    files: list[str]


class CampaignTrimmed(TypedDict):
    """files: removed here, or with dry_run such as would be; kept: files without a journalled copy; broken: kept as
    their copy does not hold now.
    """

    campaign: str
    place: str
    files: list[str]
    bytes: int
    kept: int
    broken: list[str]
    dry_run: bool


class MediaTrims(Document):
    """`labctl media trim`."""

    does: Literal["trim"]
    campaigns: list[CampaignTrimmed]


Media = MediaList | MediaUploads | MediaChecks | MediaFetched | MediaTrims
