"""A person of another time, as a report prints it: numbers of its own, and HRT against it where that was declared.

May not: compute anything (`analysis.episodes.historical` does).
"""

from __future__ import annotations

from typing import TypedDict

from labctl.analysis.survival.result import Bounds


class HistoricalCell(TypedDict):
    """The person at one object."""

    object: str
    episodes: int
    moved: int
    rmst: float
    rmst_ci: Bounds


class HistoricalRatio(TypedDict):
    """HRT of an arm of this campaign against the person of then, over the objects that both met, a fraction."""

    arm: str
    objects: list[str]
    hrt: float
    hrt_ci: Bounds


class HistoricalNumbers(TypedDict):
    """tau: horizon, s; shorter: budgets of then that are below it, s, None without; arms: None unless declared."""

    tau: float
    shorter: float | None
    cells: list[HistoricalCell]
    arms: list[HistoricalRatio] | None


class Historical(HistoricalNumbers):
    """With where it is from: source (a campaign at its head, or a table), rig and dates in words, how many episodes,
    and the digest of the rows that were frozen at opening.
    """

    source: str
    rig: str
    dates: str
    episodes: int
    sha256: str
