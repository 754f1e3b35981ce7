"""Evenings and teleoperators as a sample of more: how far an RMST ratio may lie from that of further ones.

May not: replace an interval of `labctl analyze`, which is of these evenings and these people, or judge a pair. Asked
for only where a protocol registered it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from labctl.analysis.episodes.sensitivity import part_of
from labctl.analysis.results import bounds
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.curves import KAPLAN_MEIER, Floats, rmst_with_error
from labctl.analysis.survival.intervals import IDENTITY, t_interval
from labctl.analysis.survival.result import AnalysisResult, Anew, PairResult, RandomFactor
from labctl.analysis.table import NS, Table

FEWEST = 4
"""Levels of a factor below which their spread says next to nothing: t on 2 degrees of freedom is 4.3, on 1 12.7."""
Labels = Mapping[tuple[str, str], Sequence[str]]


def anew(table: Table, result: AnalysisResult, factors: Sequence[str]) -> list[Anew]:
    """What `factors` ("session", "operator") make of every pair of `result`, the analysis of the same table.

    The operator is whoever drove the reference arm, and so a factor of its pairs alone.
    """
    table = table.compared()
    cells, tau_ns = cells_of(table, result.get("estimator", KAPLAN_MEIER)), round(float(result["tau"]) * NS)
    return [
        of_pair(_Pair(cells, pair, tau_ns), _labels(table, pair, result["reference"], factors), pair)
        for pair in result["pairs"]
        if pair["objects"]
    ]


def of_pair(pair: _Pair, labels: Mapping[str, Labels], row: PairResult) -> Anew:
    """The interval of one pair over further levels of every factor; `labels` name the level of each cell's episodes.

    The variance is the delete-one jackknife's over the levels of a factor, (n - 1) / n times the sum of squares about
    the mean, and of two factors after A. C. Cameron, J. B. Gelbach & D. L. Miller (J. Bus. Econ. Stat. 29 (2011) 238):
    the sum of both less that over what they have in common, at least that of either. t on the levels less one, of two
    factors after Satterthwaite.
    """
    of: dict[str, RandomFactor] = {name: _factor(pair, own) for name, own in labels.items()}
    session, operator = of.get("session"), of.get("operator")
    value, interval, df = pair.ratio(), None, None
    main = operator if session is None else session
    if value is not None and main is not None and main["se"] is not None:
        variance, df = main["se"] ** 2, float(main["levels"] - 1)
        if session is not None and operator is not None and operator["se"] is not None:
            variance, df = _two_way(pair, labels, (main["se"], operator["se"]), (main["levels"], operator["levels"]))
        interval = bounds(t_interval(value, math.sqrt(variance), df, IDENTITY))
    return {"a": row["a"], "b": row["b"], "log_rmst_ratio": value, "ci": interval, "df": df, "factors": of}


def _two_way(
    pair: _Pair, labels: Mapping[str, Labels], ses: tuple[float, float], levels: tuple[int, int]
) -> tuple[float, float]:
    """Variance and degrees of freedom of two factors; what they have in common is that of the arm that people drive."""
    common = pair.jackknife(
        {
            key: [f"{s}\x1f{o}" for s, o in zip(labels["session"][key], own, strict=True)]
            for key, own in labels["operator"].items()
        }
    )
    squares = [se**2 for se in ses]
    variance = max(*squares, sum(squares) - (common or 0.0) ** 2)
    spread = math.fsum(square**2 / (n - 1) for square, n in zip(squares, levels, strict=True))
    return variance, min(max(variance**2 / spread, min(levels) - 1.0), max(levels) - 1.0)


def _factor(pair: _Pair, labels: Labels) -> RandomFactor:
    """A factor by itself: its levels, the standard error that they give, and what a further level would show."""
    names = {name for own in labels.values() for name in own}
    unable = None
    if "" in names or not names:
        unable = "unknown"
    elif len(names) < FEWEST:
        unable = "few"
    se = None if unable else pair.jackknife(labels)
    if unable is None and se is None:
        unable = "confounded"
    value = pair.ratio()
    further = None
    if se is not None and value is not None:
        further = bounds(t_interval(value, se * math.sqrt(len(names) + 1), len(names) - 1, IDENTITY))
    return {"levels": len(names - {""}), "se": se, "further_ci": further, "unable": unable}


def _labels(table: Table, row: PairResult, reference: str | None, factors: Sequence[str]) -> dict[str, Labels]:
    """The level of every episode by factor and cell: of the operator, of the reference's cells alone."""
    members = table.cells()
    keys = [(row[side], o) for o in row["objects"] for side in ("a", "b")]
    found: dict[str, Labels] = {}
    if "session" in factors:
        found["session"] = {key: [table.episodes[i].session for i in members[key]] for key in keys}
    if "operator" in factors and reference in (row["a"], row["b"]):
        driven = [key for key in keys if key[0] == reference]
        found["operator"] = {key: [table.episodes[i].operator for i in members[key]] for key in driven}
    return found


class _Pair:
    """Two arms at their common objects, and their log RMST ratio with some episodes left out."""

    def __init__(self, cells: Mapping[tuple[str, str], Cell], row: PairResult, tau_ns: int) -> None:
        self._cells = {(row[side], o): cells[row[side], o] for o in row["objects"] for side in ("a", "b")}
        self._a, self._tau_ns, self._objects = row["a"], tau_ns, len(row["objects"])
        self._whole = {key: self._log(cell) for key, cell in self._cells.items()}

    def ratio(self) -> float | None:
        """log(RMST_a / RMST_b), mean over objects; None where an RMST is 0."""
        return self._of(self._whole)

    def jackknife(self, labels: Labels) -> float | None:
        """The standard error by leaving out each level once; None where that leaves nothing of an arm at an object."""
        levels = sorted({name for own in labels.values() for name in own})
        values: list[float] = []
        for level in levels:
            logs = dict(self._whole)
            for key, own in labels.items():
                cell, kept = self._cells[key], np.array([name != level for name in own])
                if not kept.any():
                    return None
                if not kept.all():
                    logs[key] = self._log(part_of(cell, kept))
            without = self._of(logs)
            if without is None:
                return None
            values.append(without)
        found: Floats = np.array(values)
        n = len(found)
        return math.sqrt((n - 1) / n * float(((found - found.mean()) ** 2).sum())) if n > 1 else None

    def _log(self, cell: Cell) -> float | None:
        value = rmst_with_error(cell.timed, self._tau_ns)[0]
        return math.log(value) if value > 0 else None

    def _of(self, logs: Mapping[tuple[str, str], float | None]) -> float | None:
        signed = [(value if key[0] == self._a else -value) for key, value in logs.items() if value is not None]
        return math.fsum(signed) / self._objects if len(signed) == len(logs) else None
