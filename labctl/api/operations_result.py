"""What an operations table says, as typed rows: arms, cells, pairs of arms and success curves.

May not: compute; every number is that of `labctl analyze --json`, of which `Analysis.to_json` has the bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.table import Value
from labctl.api import frames
from labctl.api.frames import Foreign
from labctl.api.notebook import Shown, page
from labctl.api.values import STRICT, Interval, flat, named, rows_of, shown, with_interval
from labctl.errors import InputError
from labctl.plain import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Curve:
    """F(t), the Kaplan-Meier share of operations done within t: `t` in s and `F`, both as many as there are steps."""

    __pydantic_config__ = STRICT

    t: tuple[float, ...]
    F: tuple[float, ...]

    def at(self, seconds: float) -> float:
        """The share done within so many seconds."""
        return max((share for t, share in zip(self.t, self.F, strict=True) if t <= seconds), default=0.0)


@dataclass(frozen=True)
class Cell:
    """One arm on one object. Times in s, rates per hour, shares as fractions; `rate` is F at 30 and 60 s."""

    __pydantic_config__ = STRICT

    arm: str
    object: str
    episodes: int
    operations: int
    successes: int
    censored: int
    ghosts: int
    rmst: float | None
    rmst_se: float
    rmst_ci: Interval | None
    rmst_ci_percentile: Interval | None
    rmst_kaplan_meier: float
    rmst_wang_chang: float
    rmst_wang_chang_ci: Interval | None
    rmst_aalen_johansen: float | None
    items_moved: int
    items_staged: int | None
    rmst_first_operation: float
    ended_early: int
    median: float
    completion: float
    uph: float | None
    uph_paper: float | None
    mtbf: float
    rate: dict[str, float]
    curve: Curve = field(repr=False)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """F(t) up to its last step; on `ax`, else on axes of its own."""
        from labctl.api.drawing import success_curves

        return success_curves([self], max(self.curve.t, default=1.0) or 1.0, self.object, ax)


@dataclass(frozen=True)
class Arm:
    """One arm over its objects. hrt: Human-Relative Throughput as a fraction, None without a reference;
    seconds_per_item is `inf` where nothing was moved; arms that share a letter are not told apart.
    """

    __pydantic_config__ = STRICT

    arm: str
    episodes: int
    rmst: float | None
    rmst_ci: Interval | None
    hrt: float | None
    hrt_floor: float | None
    hrt_ci: Interval | None
    hrt_ci_percentile: Interval | None
    auc: float | None
    auc_ci: Interval | None
    moved: float | None
    moved_ci: Interval | None
    moved_macro: float | None
    seconds_per_item: float | None
    succeeded: int | None
    letters: str
    intervention_rate: float | None
    helped: int | None


@dataclass(frozen=True)
class Pair:
    """Two arms on the objects that both have met; ratios and differences are of `a` over or less `b`. p: by statistic,
    p_holm: adjusted over the pairs in `holm_over`. `log_rmst_ratio_adjusted_ci` is what a direction rests on; `leads`
    is the arm that is shown to be quicker, None where neither is.
    """

    __pydantic_config__ = STRICT

    a: str
    b: str
    objects: tuple[str, ...]
    verdict: str | None
    leads: str | None
    rmst_a: float | None
    rmst_b: float | None
    log_rmst_ratio: float | None
    log_rmst_ratio_ci: Interval | None
    log_rmst_ratio_adjusted_ci: Interval | None
    uph_difference: float | None
    uph_difference_ci: Interval | None
    moved_difference: float | None
    moved_difference_ci: Interval | None
    moved_p: float | None
    moved_p_error: float | None
    auc: float | None
    auc_ci: Interval | None
    ks_macro: float | None
    ks_sup_mean: float | None
    p: dict[str, float | None]
    p_error: dict[str, float | None]
    p_holm: float | None
    p_holm_error: float | None
    holm_over: tuple[tuple[str, str], ...] = field(repr=False)
    logrank_chi2: float | None
    relabelled_by: str | None
    relabellings: int | None
    by_object: tuple[dict[str, str | float | None], ...] = field(repr=False)
    margin: dict[str, str | float | bool | tuple[float | None, ...] | None] | None = None


@dataclass(frozen=True, repr=False)
class Analysis:
    """The analysis of an operations table. `tau` is the horizon of the restricted mean, s."""

    tau: float
    reference: str | None
    seed: int
    alpha: float
    estimator: str
    cells: tuple[Cell, ...]
    arms: tuple[Arm, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]
    result: AnalysisResult = field(compare=False)
    """The object that `labctl analyze --json` prints."""

    @classmethod
    def of(cls, result: AnalysisResult) -> Analysis:
        """A result as typed rows."""
        return cls(
            tau=result["tau"],
            reference=result["reference"],
            seed=result["seed"],
            alpha=result["alpha"],
            estimator=result["estimator"],
            cells=rows_of(Cell, result["cells"]),
            arms=rows_of(Arm, result["arms"]),
            pairs=rows_of(Pair, result["pairs"]),
            warnings=tuple(result["warnings"]),
            result=result,
        )

    @property
    def analysed_by(self) -> str:
        """The labctl that computed it: version, commit and a digest of its files."""
        return self.result.get("analysed_by", "")

    def arm(self, name: str) -> Arm:
        """An arm by its name. Raises InputError that lists those there are."""
        return named({arm.arm: arm for arm in self.arms}, name, "arm")

    def cell(self, arm: str, object: str) -> Cell:
        """An arm on an object. Raises InputError that lists those there are."""
        return named({f"{c.arm} on {c.object}": c for c in self.cells}, f"{arm} on {object}", "cell")

    def pair(self, a: str, b: str) -> Pair:
        """A pair of arms, which stands once. Raises InputError for the other way round: its signs would be turned."""
        pairs = {f"{pair.a} and {pair.b}": pair for pair in self.pairs}
        if f"{b} and {a}" in pairs and a != b:
            raise InputError(f"this pair stands as {b} and {a}, and its differences so; ask for pair({b!r}, {a!r})")
        return named(pairs, f"{a} and {b}", "pair")

    def to_frame(self, what: str = "arms", library: str | None = None) -> Foreign:
        """`arms`, `cells` or `pairs` as a data frame; an interval is two columns, `_low` and `_high`."""
        rows: Mapping[str, tuple[Arm | Cell | Pair, ...]] = {
            "arms": self.arms,
            "cells": self.cells,
            "pairs": self.pairs,
        }
        return frames.frame_of([flat(row) for row in named(rows, what, "table")], library)

    def curves_to_frame(self, library: str | None = None) -> Foreign:
        """Every success curve, one row a step: arm, object, t in s, F."""
        steps = ((c, t, share) for c in self.cells for t, share in zip(c.curve.t, c.curve.F, strict=True))
        rows: list[dict[str, Value]] = [{"arm": c.arm, "object": c.object, "t": t, "F": share} for c, t, share in steps]
        return frames.frame_of(rows, library)

    def plot(self, object: str | None = None, *, ax: Axes | None = None) -> Axes:
        """F(t) of every arm on an object, or where it is None and there are several, their mean over the objects that
        each has met; on `ax`, else on axes of its own.
        """
        from labctl.api.drawing import success_curves

        known = sorted({cell.object for cell in self.cells})
        if object is not None:
            named(dict.fromkeys(known), object, "object")
        cells = [cell for cell in self.cells if object is None or cell.object == object]
        return success_curves(cells, self.tau, object or (known[0] if len(known) == 1 else "mean over objects"), ax)

    def plot_pairs(self, *, ax: Axes | None = None) -> Axes:
        """The ratio of RMSTs of every pair with its adjusted interval, the one that a direction rests on; on `ax`, else
        on axes of its own.
        """
        from labctl.api.drawing import intervals

        rows = [
            (
                f"{pair.a} / {pair.b}",
                None if pair.log_rmst_ratio is None else math.exp(pair.log_rmst_ratio),
                pair.log_rmst_ratio_adjusted_ci and Interval(*map(math.exp, pair.log_rmst_ratio_adjusted_ci)),
            )
            for pair in self.pairs
        ]
        drawn = intervals(rows, "time per item, ratio of RMSTs", ax, nothing=1.0)
        drawn.set_xscale("log")
        return drawn

    def to_json(self) -> str:
        """What `labctl analyze --json` prints, byte for byte."""
        from labctl.analysis.operations_table.analyze import dumps

        return dumps(self.result)

    def __repr__(self) -> str:
        against = f" against {self.reference}" if self.reference else ""
        arms = ", ".join(f"{arm.arm} RMST {shown(arm.rmst)} s" for arm in self.arms)
        counts = f"{count(len(self.pairs), 'pair')}, {count(len(self.warnings), 'warning')}"
        return f"Analysis(tau {self.tau:g} s{against}: {arms}; {counts})"

    def _repr_html_(self) -> str:
        arms = [
            (
                arm.arm,
                str(arm.episodes),
                with_interval(arm.rmst, arm.rmst_ci),
                with_interval(arm.hrt, arm.hrt_ci),
                with_interval(arm.moved, arm.moved_ci),
                arm.letters,
            )
            for arm in self.arms
        ]
        pairs = [
            (
                f"{pair.a} / {pair.b}",
                with_interval(pair.log_rmst_ratio, pair.log_rmst_ratio_adjusted_ci),
                shown(pair.p_holm, 2),
                pair.verdict or "–",
            )
            for pair in self.pairs
        ]
        return page(
            f"tau {self.tau:g} s" + (f", reference {self.reference}" if self.reference else ""),
            Shown(("arm", "episodes", "RMST, s", "HRT", "items moved", "letters"), arms),
            Shown(("pair", "log RMST ratio, adjusted interval", "p (Holm)", "verdict"), pairs),
            notes=self.warnings,
        )
