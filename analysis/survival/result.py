"""The object that `labctl analyze` prints (schema labctl.analysis/1), as types; times in seconds, shares as fractions.

May not: compute or check. An interval is [low, high] at 95 %; None is "the table has no answer", "inf" infinity.
"""

from __future__ import annotations

from typing import TypedDict

Bounds = list[float] | None
Unbounded = float | str


class CurveValues(TypedDict):
    t: list[float]
    F: list[float]


class CellResult(TypedDict):
    """One arm on one object: counts, RMST(tau) by several estimators, completion, rates and the success curve."""

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
    rmst_wang_chang: float
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
    """One arm: macro means over objects."""

    arm: str
    rmst: float | None
    rmst_ci: Bounds
    moved: float | None
    moved_ci: Bounds
    intervention_rate: float | None
    episodes: int


class PairResult(TypedDict):
    """A pair of arms; statistics are None where it was not tested."""

    a: str
    b: str
    ks_macro: float | None
    ks_sup_mean: float | None
    log_rmst_ratio: float | None
    uph_difference: float | None
    p: dict[str, float | None]
    p_holm: float | None
    logrank_chi2: float | None
    verdict: str | None


class AnalysisResult(TypedDict):
    """The whole result."""

    schema: str
    tau: float
    reference: str | None
    seed: int
    cells: list[CellResult]
    arms: list[ArmResult]
    pairs: list[PairResult]
    warnings: list[str]
