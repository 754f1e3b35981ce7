"""A person of another time, as a campaign's first entry names what was frozen of it.

May not: say anything of an arm of the campaign.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class HistoricalEntry(TypedDict):
    """A person's rows of another time, in a file of the campaign's folder, and where they are from: kind of cell and
    head of the chain of an earlier campaign. hrt: whether a row of HRT is held against it.
    """

    file: str
    sha256: str
    source: str
    rig: str
    dates: str
    episodes: int
    hrt: bool
    kind: NotRequired[str]
    head: NotRequired[str]
