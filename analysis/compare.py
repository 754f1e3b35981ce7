"""Arms against the reference and every pair of arms: HRT, AUC, tests, verdicts.

Reads cells only; which warnings to print is decided in `cautions.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from labctl.analysis.cells import Cell
from labctl.analysis.describe import listed
from labctl.analysis.hrt import (
    CHUNK,
    Interval,
    Mean,
    cell_key,
    hrt_interval,
    hrt_replicates,
    percentile,
    rmst_interval,
)
from labctl.analysis.ks import auc_replicates, bootstrap_p, observed_statistics, pair_of
from labctl.analysis.logrank import logrank
from labctl.analysis.permutation import holm_by_family, permutation_p
from labctl.analysis.resample import multiplicities
from labctl.analysis.survival import Floats, Spells
from labctl.analysis.table import UNKNOWN
from scipy import stats

Key = tuple[str, str]
ALPHA = 0.05


@dataclass(frozen=True)
class Plan:
    """What was asked: horizon, reference arm, numbers of replicates, seed."""

    tau_ns: int
    reference: str | None
    boot: int
    perm: int
    seed: int


@dataclass(frozen=True)
class Cohort:
    """Every cell with its recommended mean and the paper's RMST replicates, keyed by (arm, object)."""

    cells: Mapping[Key, Cell]
    means: Mapping[Key, Mean]
    replicates: Mapping[Key, Floats]

    def objects(self, *arms: str) -> list[str]:
        """Objects that every one of these arms has met, sorted."""
        return sorted(set.intersection(*({o for a, o in self.cells if a == arm} for arm in arms)))

    def arms(self) -> list[str]:
        """Arms with at least one episode, sorted."""
        return sorted({a for a, _ in self.cells})


def arm_row(cohort: Cohort, arm: str, plan: Plan) -> dict[str, object]:
    """The entry of `arms`: macro means over objects, equal weights; HRT over the objects shared with the reference."""
    own = [cohort.means[arm, o] for o in cohort.objects(arm)]
    cells = [cohort.cells[arm, o] for o in cohort.objects(arm)]
    value, interval = rmst_interval(own, plan.tau_ns / 1e9)
    moved, moved_ci = moved_share(cells)
    return {
        "arm": arm,
        "rmst": value,
        "rmst_ci": listed(interval),
        **_against_reference(cohort, arm, plan),
        "moved": moved,
        "moved_ci": listed(moved_ci),
        "intervention_rate": None,
        "episodes": sum(c.episodes for c in cells),
    }


def pair_rows(cohort: Cohort, plan: Plan, refused: set[Key]) -> list[dict[str, Any]]:
    """The entries of `pairs`, every pair once, the reference first; statistics are null for pairs in `refused`."""
    arms = sorted(cohort.arms(), key=lambda a: (a != plan.reference, a))
    pairs = list(itertools.combinations(arms, 2))
    rows = {p: _pair_row(cohort, *p, plan, refused=p in refused) for p in pairs}
    family = {p: v for p, row in rows.items() if isinstance(v := row["p"]["family"], float)}
    adjusted = holm_by_family(family, plan.reference)
    for p, row in rows.items():
        row["p_holm"] = adjusted.get(p)
        row["verdict"] = verdict(row["p_holm"], _scalars(cohort, p, row))
    return list(rows.values())


def verdict(p_holm: float | None, favours_a: Sequence[float | None]) -> str | None:
    """better (every scalar that can be said favours the same arm), different but crossing, or not resolved.

    Each of `favours_a` is above 0 where the pair's first arm did better. The arm meant is the one with the shorter
    macro RMST, equally the sign of log_rmst_ratio: below 0 for the first. None without a p or a scalar.
    """
    said = [s for s in favours_a if s is not None]
    if p_holm is None or not said:
        return None
    if p_holm > ALPHA:
        return "not resolved at this N"
    return "better" if all(s > 0 for s in said) or all(s < 0 for s in said) else "different, crossing"


def moved_share(cells: Sequence[Cell]) -> tuple[float | None, Interval | None]:
    """Items moved / items staged over all episodes, and a Wilson interval at the effective number of items.

    That number is p(1-p) over the episode-clustered (linearised) variance, at most the items staged; with nothing or
    everything moved no spread is seen, and every episode counts as one item.
    """
    moved = np.concatenate([c.moved for c in cells])
    staged = np.concatenate([c.staged for c in cells])
    if (staged == UNKNOWN).any():
        return None, None
    total, count = int(staged.sum()), len(staged)
    share = int(moved.sum()) / total
    spread = float(((moved - share * staged) ** 2).sum()) / total**2 * count / max(count - 1, 1)
    if (moved > staged).any():  # the table contradicts itself; no interval can be trusted
        return share, None
    effective = min(total, share * (1 - share) / spread) if spread > 0 else count
    z2 = float(stats.norm.ppf(0.975)) ** 2
    centre = (share + z2 / (2 * effective)) / (1 + z2 / effective)
    reach = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * effective)) / effective) / (1 + z2 / effective)
    return share, (max(0.0, centre - reach), min(1.0, centre + reach))


def _against_reference(cohort: Cohort, arm: str, plan: Plan) -> dict[str, object]:
    keys = ("hrt", "hrt_floor", "hrt_ci", "hrt_ci_percentile", "auc", "auc_ci")
    silent: dict[str, object] = {k: None for k in keys}
    shared = cohort.objects(arm, plan.reference) if plan.reference else []
    if not (plan.reference and shared):
        return silent
    them = [cohort.means[plan.reference, o] for o in shared]
    floor = math.fsum(m.rmst for m in them) / len(them) / (plan.tau_ns / 1e9)
    if arm == plan.reference:
        return {**silent, "hrt": 1.0, "hrt_floor": floor, "auc": 0.5}
    value, interval = hrt_interval(them, [cohort.means[arm, o] for o in shared])
    replicates = hrt_replicates(
        [cohort.replicates[plan.reference, o] for o in shared], [cohort.replicates[arm, o] for o in shared]
    )
    pairs = [(cohort.cells[arm, o], cohort.cells[plan.reference, o]) for o in shared]
    area, area_ci = _area(pairs, plan)
    return {
        "hrt": value,
        "hrt_floor": floor,
        "hrt_ci": listed(interval),
        "hrt_ci_percentile": listed(percentile(replicates)) if value is not None else None,
        "auc": area,
        "auc_ci": listed(area_ci),
    }


def _area(pairs: Sequence[tuple[Cell, Cell]], plan: Plan) -> tuple[float, Interval | None]:
    """Macro AUC and its percentile interval, episodes redrawn within each cell."""
    once = [np.ones((1, c.episodes)) for pair in pairs for c in pair]
    found = np.mean(
        [
            auc_replicates(a.spells, r.spells, once[2 * i], once[2 * i + 1], plan.tau_ns)
            for i, (a, r) in enumerate(pairs)
        ]
    )
    means = []
    for start in range(0, plan.boot, CHUNK):
        part = range(start, min(start + CHUNK, plan.boot))
        drawn = [[multiplicities(cell_key(plan.seed, c), part, c.episodes, c.episodes) for c in pair] for pair in pairs]
        areas = [
            auc_replicates(a.spells, r.spells, w[0], w[1], plan.tau_ns) for (a, r), w in zip(pairs, drawn, strict=True)
        ]
        means.append(np.mean(areas, axis=0))
    return float(found), percentile(np.concatenate(means))


def _pair_row(cohort: Cohort, a: str, b: str, plan: Plan, *, refused: bool) -> dict[str, Any]:
    names = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph", "family", "ks_macro_bootstrap", "logrank_cluster")
    empty = dict.fromkeys(("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph_difference"))
    shared = cohort.objects(a, b)
    if refused or not shared:
        return {"a": a, "b": b, **empty, "p": dict.fromkeys(names), "p_holm": None, "logrank_chi2": None}
    of_a, of_b = ([cohort.cells[arm, o] for o in shared] for arm in (a, b))
    pair = pair_of(of_a, of_b, plan.tau_ns)
    found = {k: v if math.isfinite(v) else None for k, v in observed_statistics(pair).items()}
    carried = logrank(_joined([c.spells for c in of_a]), _joined([c.spells for c in of_b]))
    plain = logrank(_joined([c.observed for c in of_a]), _joined([c.observed for c in of_b]))
    return {
        "a": a,
        "b": b,
        "ks_macro": found["ks_macro"],
        "ks_sup_mean": found["ks_sup_mean"],
        "log_rmst_ratio": found["log_rmst_ratio"],
        "uph_difference": found["uph"],
        "p": {
            **permutation_p(pair, plan.seed, plan.perm),
            "ks_macro_bootstrap": bootstrap_p(pair_of(of_a, of_b, plan.tau_ns, observed=True), plan.seed, plan.boot),
            "logrank_cluster": carried.p_cluster,
        },
        "p_holm": None,
        "logrank_chi2": plain.chi2,
    }


def _scalars(cohort: Cohort, pair: Key, row: Mapping[str, Any]) -> list[float | None]:
    """Macro RMST difference, log RMST ratio and UPH difference, turned so that above 0 favours the first arm."""
    shared = cohort.objects(*pair)
    if not shared:
        return []
    gap = math.fsum(cohort.means[pair[1], o].rmst - cohort.means[pair[0], o].rmst for o in shared)
    ratio = row["log_rmst_ratio"]
    return [gap, None if ratio is None else -ratio, row["uph_difference"]]


def _joined(parts: Sequence[Spells]) -> Spells:
    starts = np.cumsum([0, *(p.episodes for p in parts)])
    return Spells(
        np.concatenate([p.time_ns for p in parts]),
        np.concatenate([p.event for p in parts]),
        np.concatenate([p.episode + s for p, s in zip(parts, starts, strict=False)]),
        int(starts[-1]),
    )
