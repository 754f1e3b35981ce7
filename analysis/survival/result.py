"""The object that `labctl analyze` prints (schema labctl.analysis/1), as types; times in seconds, shares as fractions.

May not: compute or check. An interval is [low, high], at 95 % where nothing else is said; None is "the table has no
answer", "inf" infinity.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from labctl.analysis.cells_result import OverCells
from labctl.analysis.results import Bounds, Unbounded


class CurveValues(TypedDict):
    t: list[float]
    F: list[float]


class CellResult(TypedDict):
    """One arm on one object: counts, RMST(tau) by several estimators, completion, rates and the success curve.

    `rmst` is the result's `estimator`'s; `rmst_wang_chang_ci` is t on the scale of rates, whichever that is.
    """

    arm: str
    object: str
    episodes: int
    operations: int
    successes: int
    censored: int
    ghosts: int
    rmst: float | None
    rmst_se: float
    rmst_ci: Bounds
    rmst_ci_percentile: Bounds
    rmst_kaplan_meier: float
    rmst_wang_chang: float
    rmst_wang_chang_ci: Bounds
    rmst_aalen_johansen: float | None
    items_moved: int
    items_staged: int | None
    rmst_first_operation: float
    ended_early: int
    median: Unbounded
    completion: float
    uph: float | None
    uph_paper: float | None
    mtbf: Unbounded
    rate: dict[str, float]
    curve: CurveValues


class AgainstReference(TypedDict):
    """An arm against the reference; all None without a shared object."""

    hrt: float | None
    hrt_floor: float | None
    hrt_ci: Bounds
    hrt_ci_percentile: Bounds
    auc: float | None
    auc_ci: Bounds


class ArmResult(AgainstReference):
    """One arm: macro means over objects. helped: episodes that a person touched, None where some do not say.

    `moved` pools episodes over objects, `moved_macro` weighs objects equally; `seconds_per_item` is robot time from go
    to end, of a carried tail to the budget, over items moved, "inf" where none was; succeeded: episodes in which every
    item staged was moved.
    """

    arm: str
    rmst: float | None
    rmst_ci: Bounds
    moved: float | None
    moved_ci: Bounds
    moved_macro: float | None
    seconds_per_item: Unbounded | None
    succeeded: int | None
    letters: str
    intervention_rate: float | None
    helped: int | None
    episodes: int


class AtObject(TypedDict):
    """A pair at one object: log(RMST_a / RMST_b) and its p, Holm-adjusted over the pair's objects."""

    object: str
    log_rmst_ratio: float | None
    p: float | None
    p_error: float | None


class Margin(TypedDict):
    """A margin that was registered. rmst_ratio: above 1, of time per item, either way round; non_inferior_to: the arm
    that all others are held against at the worse side alone, None where every pair is at both sides.
    """

    rmst_ratio: float
    non_inferior_to: str | None


class MarginVerdict(TypedDict):
    """Whether a pair is shown to be within the registered margin. arm: which of the two is held to be non-inferior.

    `margin` [low, high], None at a side that is not asked, and `ci`, with `level` 1 less twice the level of Holm's
    step, are of log(RMST_a / RMST_b). p: of lying at the margin or beyond; p_holm: adjusted over the pairs of its
    family. unable: why nothing can be shown, whatever p: "no_spread", or "floor" where an arm that never moves would be
    within the margin too.
    """

    claim: Literal["equivalent", "non-inferior"]
    arm: str | None
    margin: list[float | None]
    level: float
    ci: Bounds
    p: float | None
    p_error: float | None
    p_holm: float | None
    p_holm_error: float | None
    shown: bool
    unable: Literal["no_spread", "floor"] | None


class PairResult(TypedDict):
    """A pair of arms on `objects`, which both have met; statistics are None where it was not tested.

    `rmst_a` and `rmst_b` are macro means over these objects alone. Intervals are 95 % each, but for
    `log_rmst_ratio_adjusted_ci`: with those of the pairs of its family it holds at once at 1 - alpha, and a direction
    rests on it. `holm_over` are the pairs of that family, over which p_holm is adjusted too: those with the reference,
    or all others. `relabellings` says where the labels of its permutation test come from and how many were tried.
    Each `_error` is the Monte-Carlo standard error of a p: 0 where a formula gave it or every relabelling was listed.
    `margin` is there where one was registered that asks about this pair.
    """

    a: str
    b: str
    objects: list[str]
    rmst_a: float | None
    rmst_b: float | None
    ks_macro: float | None
    ks_sup_mean: float | None
    log_rmst_ratio: float | None
    log_rmst_ratio_ci: Bounds
    log_rmst_ratio_adjusted_ci: Bounds
    uph_difference: float | None
    uph_difference_ci: Bounds
    moved_difference: float | None
    moved_difference_ci: Bounds
    moved_p: float | None
    moved_p_error: float | None
    auc: float | None
    auc_ci: Bounds
    by_object: list[AtObject]
    relabelled_by: str | None
    relabellings: int | None
    p: dict[str, float | None]
    p_error: dict[str, float | None]
    p_holm: float | None
    p_holm_error: float | None
    holm_over: list[list[str]]
    logrank_chi2: float | None
    verdict: str | None
    leads: str | None
    margin: NotRequired[MarginVerdict]


class RandomFactor(TypedDict):
    """A factor of a pair: how many levels it had, the standard error of log(RMST_a / RMST_b) that they give, and the
    95 % interval of what one further level of the size of these would show. unable: why there is neither; "unknown": an
    episode does not name its level, "few": fewer than four, "confounded": without one nothing is left of an arm at an
    object.
    """

    levels: int
    se: float | None
    further_ci: Bounds
    unable: Literal["unknown", "few", "confounded"] | None


class Anew(TypedDict):
    """A pair over further evenings and people: `ci` is of log(RMST_a / RMST_b), its mean over levels like those that
    were met of every factor that is able, 95 %, t on `df`; None where sessions, if asked for, are not.
    """

    a: str
    b: str
    log_rmst_ratio: float | None
    ci: Bounds
    df: float | None
    factors: dict[str, RandomFactor]


class AnalysisResult(TypedDict):
    """The whole result; `margin` where one was registered, `anew` where random factors were, `by_cell` of a campaign in
    several robots' cells, whose `cells` are by object and cell.

    `estimator` is what RMST, HRT, log_rmst_ratio and all that rests on them are made of: "kaplan_meier" of all
    operations, or "wang_chang". analysed_by: the labctl that computed it, of whoever prints it.
    """

    schema: str
    tau: float
    reference: str | None
    seed: int
    boot: int
    alpha: float
    family: list[str]
    estimator: str
    margin: NotRequired[Margin]
    anew: NotRequired[list[Anew]]
    by_cell: NotRequired[OverCells]
    cells: list[CellResult]
    arms: list[ArmResult]
    pairs: list[PairResult]
    warnings: list[str]
    analysed_by: NotRequired[str]


class Repeat(TypedDict):
    """The analysis with `key` counted as `value`: how many episodes of each arm change, arms, pairs."""

    key: str
    value: str
    episodes: dict[str, int]
    arms: list[ArmResult]
    pairs: list[PairResult]


class Tipping(TypedDict):
    """A pair that is ordered: of the `episodes` of its leader that a choice is about, how many, the best first, may
    count as no success until the order is lost; None: all of them may.
    """

    a: str
    b: str
    leads: str
    episodes: int
    needed: int | None


class Counting(TypedDict):
    """What counts as what: as declared (`declared`: by the protocol), the episodes of each arm that each choice is
    about, every other way, tipping points. ended_with_run: episodes of each arm that the run's own end left open, of
    which nothing is declared; missing where there are none.
    """

    counts: dict[str, str]
    declared: bool
    affected: dict[str, dict[str, int]]
    ended_with_run: NotRequired[dict[str, int]]
    repeated: list[Repeat]
    tipping: list[Tipping]
