"""What latency that was added to everything a policy sees leaves of its score: level by level beside the base, paired
in sets, and within a level late episodes beside quick ones.

May not: call a difference one of the arm's own quickness: latency was added by the campaign, and alike for all arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from labctl.analysis.blocks.means import Draws, mean_over_units, mean_score
from labctl.analysis.episode_facts import LateEpisodes, LatencyLevel, Lateness
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.survival.curves import Floats

BASE = "base"  # the level of episodes without any added
PERM = 4999


@dataclass(frozen=True)
class Delayed:
    """A scored episode: added_s of latency, measured_s from what was seen to the command (NaN: no trace says), score
    0 to 1 (NaN: none); set: of a base and what stresses it.
    """

    arm: str
    level: str
    added_s: float
    measured_s: float
    score: float
    set: str


def lateness_of(rows: Sequence[Delayed], measure: str, level: float, draws: Draws) -> Lateness | None:
    """By arm and level, in order of the latency added; None where there is no level with some beside one without.

    kept: score at the level less that of the base in the same set, a mean over sets with its interval.
    """
    known = [row for row in rows if not np.isnan(row.score)]
    places = sorted({(row.added_s, row.level) for row in known})
    if len(places) < 2 or places[0][0] > 0 or places[-1][0] == 0:
        return None
    arms = sorted({row.arm for row in known})
    found: list[LatencyLevel] = []
    for arm in arms:
        base = {row.set: row.score for row in known if row.arm == arm and row.added_s == 0}
        for added_s, name in places:
            own = [row for row in known if (row.arm, row.added_s, row.level) == (arm, added_s, name)]
            if not own:
                continue
            mean, late = mean_score(_of(own, "score"), level), _of(own, "measured_s")
            both = [(row.set, row.score - base[row.set]) for row in own if added_s > 0 and row.set in base]
            unit = np.array([sorted(base).index(name) for name, _ in both], dtype=np.int64)
            values = np.array([value for _, value in both])
            kept = mean_over_units(values, unit, -1.0, 1.0, draws, level) if both else None
            found.append(
                {
                    "arm": arm,
                    "level": name,
                    "added_s": added_s,
                    "measured_s": None if np.isnan(late).all() else float(np.nanmedian(late)),
                    "episodes": mean.episodes,
                    "score": mean.mean,
                    "ci": None if mean.ci is None else [*mean.ci],
                    "kept": None if kept is None else kept.value,
                    "kept_ci": None if kept is None or kept.interval is None else [*kept.interval],
                    "sets": len(both),
                }
            )
    within = late_episodes([row.arm for row in known], _of(known, "measured_s"), _of(known, "score"), draws.seed)
    return {"measure": measure, "levels": found, "within": within}


def late_episodes(arm: Sequence[str], measured_s: Floats, score: Floats, seed: int = 0) -> list[LateEpisodes]:
    """By arm, latency in s (n,) against score (n,), 0 to 1: Spearman's rank correlation, p by permutation. Episodes
    that lack one are left out; None where there is no spread.
    """
    found: list[LateEpisodes] = []
    for name in dict.fromkeys(arm):
        own = (np.array(arm) == name) & ~np.isnan(measured_s) & ~np.isnan(score)
        x, y = stats.rankdata(measured_s[own]), stats.rankdata(score[own])
        if not len(x):
            continue
        rho = p = error = None
        if len(x) > 2 and x.std() > 0 and y.std() > 0:
            x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
            rho = float((x * y).mean())
            drawn = x[np.random.default_rng(seed).permuted(np.tile(np.arange(len(x)), (PERM, 1)), axis=1)] @ y / len(x)
            p = (1 + int((np.abs(drawn) >= abs(rho) - 1e-9).sum())) / (PERM + 1)
            error = share_error(p, PERM + 1)
        found.append({"arm": name, "episodes": len(x), "rho": rho, "p": p, "p_error": error})
    return found


def _of(rows: Sequence[Delayed], name: str) -> Floats:
    return np.array([getattr(row, name) for row in rows], dtype=float)
