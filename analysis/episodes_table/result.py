"""What `labctl analyze` prints of an episodes table, as types: the keys of schema labctl.episodes/1.

May not: compute. What a table cannot say is None, or an empty list.
"""

from __future__ import annotations

from typing import TypedDict

from labctl.analysis.results import Bounds, Plain, Unbounded

SCHEMA = "labctl.episodes/1"


class Blocks(TypedDict):
    """All arms at once, on blocks where every arm has a value: `n` blocks, `complete` of them."""

    n: int
    complete: int
    friedman_chi2: float | None
    friedman_p: float | None
    position_chi2: float | None
    position_p: float | None
    cochran_q: float | None
    cochran_p: float | None


class StageReached(TypedDict):
    """How many episodes of an arm reached a stage, and by when half of all had, "inf" if they never did."""

    stage: int
    reached: int
    ci: Bounds
    median_s: Unbounded | None


class ArmOfEpisodes(TypedDict):
    """One arm. Intervals are at 1 - alpha each; `rank_ci` and `letters` hold for all arms at once."""

    arm: str
    episodes: int
    successes: int | None
    rate: float | None
    rate_ci: Bounds
    score: float | None
    score_ci: Bounds
    rank: int | None
    rank_ci: list[int] | None
    letters: str
    stages: list[StageReached]
    rmst: float | None
    rmst_ci: Bounds
    hrt: float | None
    hrt_ci: Bounds


class Sequence(TypedDict):
    """The confidence sequence of a pair's difference in the measure: after each of `block` blocks, [low, high]; None
    from where on no one difference fits all blocks.
    """

    block: list[int]
    low: list[float | None]
    high: list[float | None]


class PairOfEpisodes(TypedDict):
    """Two arms in the `blocks` that have both. Intervals are at 1 - alpha each; a verdict "better" rests on one that
    holds at once with those of the other pairs.
    """

    a: str
    b: str
    blocks: int
    score_difference: float | None
    score_ci: Bounds
    success_difference: float | None
    success_ci: Bounds
    win: float | None
    win_ci: Bounds
    p: dict[str, float | None]
    p_holm: float | None
    stop_block: int | None
    sequence: Sequence | None
    verdict: str | None


class EpisodesResult(TypedDict):
    """The whole result. `preference`, `factors`, `axes`, `tags`, `retention` and `stress` are as the interface says."""

    schema: str
    seed: int
    alpha: float
    blocks: Blocks
    arms: list[ArmOfEpisodes]
    pairs: list[PairOfEpisodes]
    preference: dict[str, Plain] | None
    factors: dict[str, Plain]
    axes: list[dict[str, Plain]]
    tags: list[dict[str, Plain]]
    retention: list[dict[str, Plain]]
    stress: list[dict[str, Plain]]
    warnings: list[str]
