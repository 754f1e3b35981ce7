"""The analysis repeated for every other way to count, and how many episodes it would take to lose an order.

May not: change a number of the analysis it repeats, or say which way is right: a protocol declares that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labctl.analysis.episodes.estimand import (
    Estimand,
    affected,
    alternatives,
    counted,
    ended_with_run,
    without_success,
)
from labctl.analysis.survival.result import AnalysisResult, Counting, PairResult, Repeat, Tipping
from labctl.analysis.survival.verdicts import BETTER
from labctl.analysis.table import Row

Analyse = Callable[[Sequence[Row], int | None], AnalysisResult | None]
"""The same analysis of other rows, by at most so many resamples; None where every episode is void."""

TIPPING = 1999
"""Resamples and label swaps behind each step towards a tipping point, at most."""


def repeated(
    rows: Sequence[Row], how: Estimand, result: AnalysisResult, analyse: Analyse, *, declared: bool
) -> Counting:
    """Repeat `result`, the analysis of `counted(rows, how)`, for every other way to count that changes an episode: at
    the same size, tipping points by at most TIPPING resamples. Raises what `analyse` raises.
    """
    found: list[Repeat] = []
    for other in alternatives(rows, how):
        again = analyse(other.rows, None)
        arms, pairs = (again["arms"], again["pairs"]) if again else ([], [])
        found.append({"key": other.key, "value": other.value, "episodes": other.episodes, "arms": arms, "pairs": pairs})
    about, primary = affected(rows), counted(rows, how)
    cut = ended_with_run(primary)
    told: Counting = {
        "counts": dict(vars(how)),
        "declared": declared,
        "affected": {key: {arm: len(names) for arm, names in sorted(arms.items())} for key, arms in about.items()},
        "repeated": found,
        "tipping": _tipping(primary, result, analyse, about),
    }
    if cut:
        told["ended_with_run"] = cut
    return told


def _tipping(
    primary: Sequence[Row], result: AnalysisResult, analyse: Analyse, about: Mapping[str, Mapping[str, set[str]]]
) -> list[Tipping]:
    moved: dict[str, int] = {}
    for row in primary:
        moved[str(row["episode"])] = moved.get(str(row["episode"]), 0) + (row["kind"] == "success")
    found: list[Tipping] = []
    for pair in result["pairs"]:
        if pair["verdict"] != BETTER or pair["leads"] is None:
            continue
        leads = pair["leads"]
        names = set[str]().union(*(arms.get(leads, ()) for arms in about.values()))
        order = sorted(names, key=lambda name: (-moved[name], name))

        def holds(count: int, order: list[str] = order, pair: PairResult = pair) -> bool:
            again = analyse(without_success(primary, order[:count]), TIPPING)
            return again is not None and any(
                (one["a"], one["b"], one["verdict"], one["leads"]) == (pair["a"], pair["b"], BETTER, pair["leads"])
                for one in again["pairs"]
            )

        found.append({"a": pair["a"], "b": pair["b"], "leads": leads, "episodes": len(order), "needed": None})
        if order and not holds(len(order)):
            low, high = 0, len(order)  # holds at low, not at high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if holds(middle) else (low, middle)
            found[-1]["needed"] = high
    return found
