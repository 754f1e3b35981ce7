"""Two arms in the blocks that have both: differences, who wins, exact tests, and what may be said of them.

May not: look at an episode outside of a shared block; nothing here compares unpaired arms.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labctl.analysis.binary.paired import mcnemar, tango
from labctl.analysis.blocks.anytime import Monitor, paired_monitor
from labctl.analysis.blocks.means import Estimate, mean_over_units
from labctl.analysis.blocks.swaps import sign_flip_p
from labctl.analysis.episodes_table.cohort import Cohort, Pair, Plan
from labctl.analysis.episodes_table.result import PairOfEpisodes, Sequence
from labctl.analysis.results import Bounds, bounds
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.verdicts import (
    BETTER,
    InView,
    holm_by_family,
    holm_errors_by_family,
    holm_levels,
    of_one_family,
    pairs_of,
    verdict,
)

MOST_E = 1e12
"""Evidence beyond which nothing more is said."""


def pair_rows(cohort: Cohort, plan: Plan) -> list[PairOfEpisodes]:
    """Every pair of arms, p-values adjusted by Holm among pairs without the reference, and among those with it."""
    rows = {pair: _row(cohort, pair, plan) for pair in pairs_of(cohort.table.arms, plan.reference)}
    tested = {pair: p for pair, row in rows.items() if (p := row["p"][_decisive(row)]) is not None}
    adjusted = holm_by_family(tested, plan.reference)
    errors = {pair: rows[pair]["p_error"][_decisive(rows[pair])] or 0.0 for pair in tested}
    off = holm_errors_by_family(tested, errors, plan.reference)
    for pair, row in rows.items():
        if pair not in adjusted:
            continue
        family = {o: p for o, p in tested.items() if of_one_family(pair, o, plan.reference)}
        at_once = measured(cohort, pair, plan, 1 - holm_levels(family, plan.alpha)[pair]).interval
        against = () if row["success_ci"] is None else ((row["success_ci"][0], row["success_ci"][1]),)
        row["p_holm"], row["p_holm_error"], row["adjusted_ci"] = adjusted[pair], off[pair], bounds(at_once)
        found = verdict(pair, adjusted[pair], InView(at_once, (), against), alpha=plan.alpha)
        row["verdict"] = found.kind if found else None
    return list(rows.values())


def _decisive(row: PairOfEpisodes) -> str:
    """Whose p says whether two arms differ: that of the score, else of success."""
    return "success" if row["p"]["score"] is None else "score"


def difference(row: PairOfEpisodes) -> float | None:
    """The first arm's measure less the second's."""
    return row["score_difference"] if row["score_difference"] is not None else row["success_difference"]


def leader(row: PairOfEpisodes) -> str | None:
    """The arm that does better, None where no order may be said."""
    if row["verdict"] != BETTER:
        return None
    return row["a"] if (difference(row) or 0.0) > 0 else row["b"]


def told_apart(rows: list[PairOfEpisodes]) -> set[Pair]:
    """(better, worse) of every pair with an order."""
    led = [(leader(row), row) for row in rows]
    return {(first, row["b"] if first == row["a"] else row["a"]) for first, row in led if first is not None}


def measured(cohort: Cohort, pair: Pair, plan: Plan, level: float) -> Estimate:
    """The paired difference of the measure with its interval."""
    return mean_over_units(cohort.difference(cohort.measure, pair), cohort.unit, -1.0, 1.0, plan.draws, level)


def by_unit(cohort: Cohort, differences: Floats) -> Floats:
    """Sums of differences over the blocks of each unit, those without any left out [units]."""
    known = np.isfinite(differences)
    place, index = np.unique(cohort.unit[known], return_inverse=True)
    return np.bincount(index, differences[known], len(place)).astype(np.float64)


def as_sets_end(cohort: Cohort, differences: Floats) -> Floats:
    """The mean difference of each unit at the last of its blocks that has one, NaN at all others [blocks]."""
    out = np.full(len(differences), np.nan)
    last: dict[int, list[int]] = {}
    for block in np.flatnonzero(np.isfinite(differences)).tolist():
        last.setdefault(int(cohort.unit[block]), []).append(block)
    for own in last.values():
        out[own[-1]] = differences[own].mean()
    return out


def _row(cohort: Cohort, pair: Pair, plan: Plan) -> PairOfEpisodes:
    score, success = (cohort.difference(grid, pair) for grid in (cohort.score, cohort.success))
    measure = score if np.isfinite(cohort.score).any() else success
    won = np.where(np.isfinite(measure), (np.sign(measure) + 1) / 2, np.nan)
    of_score, of_win = (
        mean_over_units(values, cohort.unit, low, 1.0, plan.draws, plan.level)
        for values, low in ((score, -1.0), (won, 0.0))
    )
    flipped = {
        name: sign_flip_p(by_unit(cohort, values), plan.seed, plan.perm, "\x1f".join((name, *pair)))
        for name, values in (("score", score), ("success", success))
    }
    only_a, only_b = int((success > 0).sum()), int((success < 0).sum())
    known = bool(np.isfinite(success).any())
    exact = mcnemar(only_a, only_b).p_exact if known else None
    watched = paired_monitor(as_sets_end(cohort, measure), plan.alpha) if of_win.n else None
    return {
        "a": pair[0],
        "b": pair[1],
        "blocks": of_win.n,
        "score_difference": of_score.value,
        "score_ci": bounds(of_score.interval),
        "success_difference": float(np.nanmean(success)) if known else None,
        "success_ci": _success_interval(cohort, success, only_a, only_b, plan),
        "win": of_win.value,
        "win_ci": bounds(of_win.interval),
        "p": {**{k: found and found[0] for k, found in flipped.items()}, "mcnemar": exact},
        "p_error": {**{k: found and found[1] for k, found in flipped.items()}, "mcnemar": exact and 0.0},
        "p_holm": None,
        "p_holm_error": None,
        "adjusted_ci": None,
        "stop_block": watched.stop_block if watched else None,
        "sequence": _sequence(watched) if watched else None,
        "verdict": None,
        "units": len(by_unit(cohort, measure)),
    }


def _sequence(watched: Monitor) -> Sequence:
    ends = ([None if np.isnan(end) else float(end) for end in ends] for ends in (watched.low, watched.high))
    low, high = ends
    e = [float(min(one, MOST_E)) for one in watched.e_value]
    return {"block": list(range(1, len(low) + 1)), "low": low, "high": high, "e_value": e}


def _success_interval(cohort: Cohort, success: Floats, only_a: int, only_b: int, plan: Plan) -> Bounds:
    count = int(np.isfinite(success).sum())
    if not count:
        return None
    if cohort.single:
        return bounds(tango(only_a, only_b, count, plan.level))
    return bounds(mean_over_units(success, cohort.unit, -1.0, 1.0, plan.draws, plan.level).interval)


def wins(rows: list[PairOfEpisodes]) -> Mapping[Pair, float]:
    """How often the first of two arms does better than the second, both ways round."""
    known = [(row["a"], row["b"], row["win"]) for row in rows if row["win"] is not None]
    return {(a, b): win for a, b, win in known} | {(b, a): 1 - win for a, b, win in known}
