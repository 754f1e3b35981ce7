"""What `labctl analyze` prints of an episodes table, as types: the keys of schema labctl.episodes/1.

May not: compute. What a table cannot say is None, or an empty list.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

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


class Order(TypedDict):
    """What the order of running did, on `blocks` that have every arm and every place. places: mean of the measure by
    position; after: by how much an episode departs from what its block, arm and place make of it if it ran right after
    this arm; `after_p` is of all of these at once. trend: Kendall's tau of block means over blocks as listed.
    """

    blocks: int
    places: list[float]
    places_ci: list[Bounds]
    after: dict[str, float]
    after_p: float | None
    trend: float | None
    trend_p: float | None


class StageReached(TypedDict):
    """How many of `episodes` of an arm reached a stage, and by when half of all had, "inf" if they never did. times_s:
    when each of those did, in order, where that was seen.
    """

    stage: int
    reached: int
    episodes: int
    ci: Bounds
    median_s: Unbounded | None
    times_s: list[float]


class SuccessCurve(TypedDict):
    """Share F of episodes done within t seconds, from (0, 0) to tau: steps at t."""

    t: list[float]
    F: list[float]


class ArmOfEpisodes(TypedDict):
    """One arm. Intervals are at 1 - alpha each; `rank_ci` and `letters` hold for all arms at once. judged: of how many
    of its episodes it is known whether they succeeded; `successes` and `rate` are of those.
    """

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
    curve: SuccessCurve | None
    judged: int


class Sequence(TypedDict):
    """The confidence sequence of a pair's difference in the measure: after each of `block` blocks, [low, high]; None
    from where on no one difference fits all blocks. e_value: evidence against "no difference", at most 1e12; the test
    stops where it first reaches 1 / alpha.
    """

    block: list[int]
    low: list[float | None]
    high: list[float | None]
    e_value: list[float]


class PairOfEpisodes(TypedDict):
    """Two arms in the `blocks` that have both, which are so many independent `units`: sets of blocks, or blocks.
    Intervals are at 1 - alpha each, but `adjusted_ci`, of the difference in the measure at Holm's level: a verdict
    "better" rests on that one.
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
    adjusted_ci: Bounds
    stop_block: int | None
    sequence: Sequence | None
    verdict: str | None
    units: int


class Strength(TypedDict):
    """An arm's worth by preference; those of all compared arms add up to 1. None without a bound."""

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


class AtLevel(TypedDict):
    """A pair's mean difference at one level of a factor, of so many blocks (sets, where there are any), and that of all
    other levels together.
    """

    level: str
    blocks: int
    mean: float
    without: float | None


class PairOfFactor(TypedDict):
    """One pair over the levels of a factor: the mean over them, how far they differ, and whether more than blocks
    explain (`q_p`).
    """

    a: str
    b: str
    mean: float | None
    ci: Bounds
    tau2: float | None
    i2: float | None
    q_p: float | None
    levels: list[AtLevel]


class Factor(TypedDict):
    """How far the differences of arms differ between levels: `tau2` and `i2` are means over pairs. pairs: each by
    itself; of a factor nested in another none.
    """

    levels: int
    tau2: float | None
    i2: float | None
    prediction: list[Prediction]
    pairs: list[PairOfFactor]


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
        "smallest_p": float | None,
        "tasks_with": int,
        "tasks_without": int,
        "within": str | None,
        "words": str,
    },
)
"""An arm's mean at the tasks with a tag, and without; `smallest_p` is the least that so few tasks can give, `within`
another tag that the effect is taken within, `words` what cannot be told.
"""


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


class Cliff(TypedDict):
    """Where an arm breaks along a family: from `holds` to `breaks`, with its means up to the one and from the other on.
    p: of a break so clear anywhere, were no level to matter; same: share of redrawn tables that break there too.
    """

    family: str
    arm: str
    holds: str
    breaks: str
    before: float
    after: float
    p: float
    p_error: float
    same: float


class AxesTogether(TypedDict):
    """An arm's drop under several axes at once, the sum of their single drops, and what is beyond it."""

    axis: str
    arm: str
    drop: float
    singles: float
    beyond: float
    ci: Bounds
    p: float
    pairs: int


class FamilyMean(TypedDict):
    """An arm's mean over all episodes of a family, whatever their level (NEBULA's family by arm)."""

    family: str
    arm: str
    episodes: int
    score: float | None
    ci: Bounds


class Cell(TypedDict):
    """An arm's mean at one task."""

    task: str
    arm: str
    episodes: int
    mean: float | None
    ci: Bounds


class HardForAll(TypedDict):
    """A task at which even the best arm's mean is low."""

    task: str
    best_arm: str
    best: float
    ci: Bounds


class LeadsApart(TypedDict):
    """Two arms whose difference depends on the task, so that either leads somewhere. together: what the better arm of
    each task would reach; single: what the better arm overall does.
    """

    a: str
    b: str
    a_leads: list[str]
    b_leads: list[str]
    together: float
    single: float
    p_holm: float


class Tasks(TypedDict):
    """Tasks by arms. by: the column that names the tasks."""

    by: str
    cells: list[Cell]
    hard: list[HardForAll]
    complementary: list[LeadsApart]


class FewerBlocks(TypedDict):
    """How often the test of a pair found a difference in so many of the table's own blocks (sets), drawn anew; with its
    Monte-Carlo error, and how often it found the other sign.
    """

    a: str
    b: str
    blocks: int
    detected: float
    error: float
    wrong_found: float
    wrong_sign: float


class EpisodesResult(TypedDict):
    """The whole result. `preference`, `factors`, `axes`, `tags`, `retention` and `stress` are as the interface says.
    measure: "score", or "success" where the table has no score. tau: the horizon of RMST in s, None without times.
    analysed_by: the labctl that computed it, of whoever prints it.
    """

    schema: str
    seed: int
    alpha: float
    measure: str
    reference: str | None
    tau: float | None
    blocks: Blocks
    order: Order
    arms: list[ArmOfEpisodes]
    pairs: list[PairOfEpisodes]
    preference: Preference | None
    factors: dict[str, Factor]
    axes: list[AxisDrop]
    tags: list[TagEffect]
    retention: list[Retained]
    stress: list[StressLevel]
    families: list[FamilyMean]
    cliffs: list[Cliff]
    compositions: list[AxesTogether]
    tasks: Tasks | None
    enough: list[FewerBlocks]
    warnings: list[str]
    analysed_by: NotRequired[str]
