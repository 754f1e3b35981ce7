"""The paper's planning formula for the macro KS distance: Brownian bridges and a cluster design effect.

May not: stand for a simulation. It is the paper's approximation, kept so that its numbers can be had again; a plan
rests on simulated campaigns.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import stats

OPERATIONS = 4.4
"""Operations per episode in the paper."""
DESIGN_EFFECT = 2.25
"""How many times fewer independent operations that is worth, in the paper."""
_DRAWS = 200_000


@functools.cache
def critical_mean(objects: int, alpha: float = 0.05) -> float:
    """The upper alpha quantile of the mean over objects of independent Kolmogorov variables sup |bridge|.

    One object: 1.3581 at .05 (Smirnov 1948). Several: 200,000 seeded draws, error about .002.
    """
    if objects == 1:
        return float(stats.kstwobign.isf(alpha))
    uniform = np.random.default_rng(0).random((_DRAWS, objects))
    return float(np.quantile(stats.kstwobign.isf(uniform).mean(axis=1), 1 - alpha))


def effective(episodes: float, operations: float = OPERATIONS, design_effect: float = DESIGN_EFFECT) -> float:
    """Operations of `episodes` episodes, counted as independent ones."""
    return episodes * operations / design_effect


def macro_ks_power(
    distance: float, episodes: float, *, objects: int = 4, alpha: float = 0.05, design_effect: float = DESIGN_EFFECT
) -> float:
    """Power of the macro KS test at a true distance, the same for every object, `episodes` per arm and object.

    sqrt(n / 2) |F_a - F_b| is a bridge plus sqrt(n / 2) distance where the curves are furthest apart, taken at its
    most variable (1/2, standard deviation 1/2): Phi((sqrt(n / 2) distance - critical) sqrt(objects) / (1/2)), never
    below alpha.
    """
    reach = math.sqrt(effective(episodes, design_effect=design_effect) / 2) * distance
    return max(alpha, float(stats.norm.cdf((reach - critical_mean(objects, alpha)) * math.sqrt(objects) / 0.5)))


def macro_ks_episodes(distance: float, power: float = 0.8, *, objects: int = 4, alpha: float = 0.05) -> int:
    """Episodes per arm and object for that power."""
    reach = critical_mean(objects, alpha) + 0.5 * float(stats.norm.ppf(power)) / math.sqrt(objects)
    return math.ceil(2 * (reach / distance) ** 2 * DESIGN_EFFECT / OPERATIONS)
