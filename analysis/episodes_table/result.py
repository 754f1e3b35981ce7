"""What `labctl analyze` prints of an episodes table, as types: the keys of schema labctl.episodes/1.

May not: compute. What a table cannot say is None, or an empty list.
"""

from __future__ import annotations

from typing import TypedDict

from labctl.analysis.results import Bounds, Unbounded

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
    p_error: dict[str, float | None]
    p_holm: float | None
    p_holm_error: float | None
    stop_block: int | None
    sequence: Sequence | None
    verdict: str | None


class Strength(TypedDict):
    """An arm's worth by preference; those of all compared arms add up to 1."""

    arm: str
    strength: float | None
    ci: Bounds


class Preference(TypedDict):
    """What was preferred how often, and what a Bradley-Terry-Davidson model makes of it. agreement: the share of
    preferences, scores unequal, that are for the higher score.
    """

    first: int
    second: int
    tie: int
    davidson: list[Strength]
    tie_parameter: float | None
    order_effect: float | None
    order_ci: Bounds
    agreement: float | None


class Prediction(TypedDict):
    """The interval of a pair's mean difference at one further level of a factor."""

    a: str
    b: str
    difference: float | None
    low: float
    high: float


class Factor(TypedDict):
    """How far the differences of arms differ between levels: means over pairs."""

    levels: int
    tau2: float | None
    i2: float | None
    prediction: list[Prediction]


class AxisDrop(TypedDict):
    """What an axis costs an arm, over `pairs` sets; `p`, with its Monte-Carlo error, and `ci` adjusted over the axes of
    the arm. axis: "" for all of a category.
    """

    axis: str
    category: str
    arm: str
    base: float
    perturbed: float
    drop: float
    ci: Bounds
    p: float
    p_error: float
    pairs: int


TagEffect = TypedDict(
    "TagEffect",
    {
        "tag": str,
        "arm": str,
        "with": float | None,
        "without": float | None,
        "effect": float | None,
        "ci": Bounds,
        "p": float | None,
        "p_error": float | None,
    },
)
"""An arm's mean at the tasks with a tag, and without."""


class Retained(TypedDict):
    """An arm's mean in either split, and test / train."""

    arm: str
    train: float | None
    test: float | None
    retention: float | None
    ci: Bounds


class StressLevel(TypedDict):
    """An arm's mean at one level of a family."""

    family: str
    level: str
    arm: str
    score: float | None
    ci: Bounds


class EpisodesResult(TypedDict):
    """The whole result. `preference`, `factors`, `axes`, `tags`, `retention` and `stress` are as the interface says."""

    schema: str
    seed: int
    alpha: float
    blocks: Blocks
    arms: list[ArmOfEpisodes]
    pairs: list[PairOfEpisodes]
    preference: Preference | None
    factors: dict[str, Factor]
    axes: list[AxisDrop]
    tags: list[TagEffect]
    retention: list[Retained]
    stress: list[StressLevel]
    warnings: list[str]
