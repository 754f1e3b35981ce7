"""Latency against what an arm makes of it, as a report prints it.

May not: compute anything (`analysis.blocks.added_latency` does).
"""

from __future__ import annotations

from typing import TypedDict

from labctl.analysis.survival.result import Bounds


class LatencyLevel(TypedDict):
    """An arm at a level. added_s: by the campaign; measured_s: median over episodes from what was seen to the command,
    None where no trace says; score: mean with its interval; kept: score less the base's in the same set, over `sets`
    of them, None at the base.
    """

    arm: str
    level: str
    added_s: float
    measured_s: float | None
    episodes: int
    score: float | None
    ci: Bounds
    kept: float | None
    kept_ci: Bounds
    sets: int


class LateEpisodes(TypedDict):
    """Rank correlation of an episode's measured latency with its score, over all levels; None without spread."""

    arm: str
    episodes: int
    rho: float | None
    p: float | None
    p_error: float | None


class Lateness(TypedDict):
    """measure: "score" or "success"; levels in order of the latency added."""

    measure: str
    levels: list[LatencyLevel]
    within: list[LateEpisodes]
