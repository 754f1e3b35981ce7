"""The object that `labctl.analysis.episodes.supplement` makes, as types; times in seconds, shares as fractions.

May not: compute or check. Each `_error` is the Monte-Carlo error of a p, 0 where every way was listed.
An interval is [low, high] at 95 %; None is "the table has no answer", "inf" infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:  # as in `episode_facts`
    from labctl.analysis.results import Bounds, Plain, Unbounded


class Range(TypedDict):
    """The least and the most that timeouts could mean."""

    worst: Unbounded
    best: Unbounded


class ByOperation(TypedDict):
    """RMST of the first, second, … operation, over the episodes that came so far."""

    index: list[int]
    episodes: list[int]
    rmst: list[float]
    se: list[float]


class Quantiles(TypedDict):
    """By when, s, the reference and an arm had done the same shares q, to the last that both reach."""

    q: list[float]
    reference_t: list[float]
    arm_t: list[float]
    last: float


class Swept(TypedDict):
    """As the time allowed, tau, grows: items per hour, charged and of successes alone, and seconds between failures;
    "inf" for infinity, None for what is not a number.
    """

    tau: list[float]
    charged: list[Unbounded | None]
    uph: list[Unbounded | None]
    mtbf: list[Unbounded | None]


class MoreOfCell(TypedDict):
    """What stands beside the numbers of an arm on an object; None where there is no answer."""

    arm: str
    object: str
    bounds: Range
    by_operation: ByOperation
    incidence: Mapping[str, Plain] | None
    band: Mapping[str, Plain] | None
    pp: Mapping[str, Plain] | None
    qq: Quantiles | None
    sweep: Swept


class Failures(TypedDict):
    """Operations of an arm, and those that failed by cause: counts, shares of all operations and of episodes."""

    operations: int
    successes: int
    counts: dict[str, int]
    shares: dict[str, float]
    episodes_with: dict[str, float]


class Trend(TypedDict):
    """RMST of an arm by block, in the campaign's order, with its slope in s per block and p."""

    arm: str
    order: list[int]
    object: list[str]
    block: list[str]
    rmst: list[float]
    slope: float | None
    p: float | None
    p_error: float | None


class TrendInCell(TypedDict):
    """The slope of an arm's RMST over its blocks in one robot's cell, s per block, and its p, as of `Trend`."""

    cell: str
    blocks: int
    slope: float | None
    p: float | None
    p_error: float | None


class Sessions(TypedDict):
    """Items moved / staged of an arm by session, and p."""

    arm: str
    session: list[str]
    episodes: list[int]
    moved: list[float]
    p: float | None
    p_error: float | None


class MoreOfArm(TypedDict):
    """What stands beside the numbers of an arm. trend_by_cell: in a table of several robots' cells, of each where the
    arm has three blocks; `trend` is then the slope within cells.
    """

    arm: str
    hrt_bounds: Range | None
    failures: Failures
    trend: Trend | None
    trend_by_cell: NotRequired[list[TrendInCell]]
    sessions: Sessions | None
    letters: str


class Moved(TypedDict):
    """Items moved of staged, arm a less arm b; blocks: of blocks where paired, else of episodes."""

    a: str
    b: str
    difference: float
    interval: Bounds
    p: float
    p_error: float
    paired: bool
    blocks: int
    per_hour: float | None


class MoreOfPair(TypedDict):
    """What stands beside the numbers of a pair; ratios and p by object."""

    a: str
    b: str
    moved: Moved | None
    object_log_rmst_ratio: dict[str, float | None]
    object_p: dict[str, float | None]
    object_p_error: dict[str, float | None]
    pp: list[Mapping[str, Plain]]
    logrank_stratified_cluster: float | None
    logrank_stratified_permutation: float | None
    logrank_stratified_permutation_error: float | None


class Configuration(TypedDict):
    """An arm in a spatial configuration: items moved / staged, and F(budget)."""

    arm: str
    tote_side: str
    camera_side: str
    episodes: int
    moved: float | None
    moved_ci: Bounds
    completion: float | None


class Sides(TypedDict):
    """An arm with tote and camera on the same side against opposite sides: F(budget), items moved / staged, p."""

    arm: str
    same: float | None
    opposite: float | None
    moved_same: float | None
    moved_opposite: float | None
    p: float | None
    p_error: float | None


class Spatial(TypedDict):
    """Every arm in every configuration; imbalance: the largest gap to all arms together, percentage points."""

    rows: list[Configuration]
    sides: list[Sides]
    imbalance: float


class Operator(TypedDict):
    """A person of the reference: items moved, their share of those staged, and items per hour."""

    operator: str
    episodes: int
    sessions: int
    moved: int
    staged: int | None
    share: float | None
    moved_ci: Bounds
    rate: float | None
    rate_ci: Bounds


class Slope(TypedDict):
    """Items per hour gained with each further episode."""

    value: float | None
    ci: Bounds
    episodes: int
    df: int


class People(TypedDict):
    """Who the reference is. fatigue: None where nobody had two sessions."""

    reference: str
    operators: list[Operator]
    learning: Slope
    fatigue: Slope | None


class PeopleInCell(TypedDict):
    """Learning and fatigue of those who operated in one robot's cell; as of `People`."""

    cell: str
    learning: Slope
    fatigue: Slope | None


class PeopleOfCells(People):
    """Who the reference is; by_cell: in a table of several robots' cells, of each where it was run."""

    by_cell: NotRequired[list[PeopleInCell]]


class Supplement(TypedDict):
    """Everything that `supplement` computes."""

    schema: str
    cells: list[MoreOfCell]
    arms: list[MoreOfArm]
    pairs: list[MoreOfPair]
    spatial: Spatial | None
    teleoperators: list[str]
    people: PeopleOfCells | None
