"""How many sets of a base and what perturbs it a drop of success takes to be found, adjusted over axes.

May not: read a protocol, or know scores between 0 and 1: those vary less than success does, and take no more sets.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from scipy import stats

BASE = 0.9  # share of success at the base that a plan goes by
DROPS = (0.7, 0.5, 0.3)  # and under the perturbation
POWER = 0.8
MOST = 1000  # sets; a drop that takes more is no plan


class Needed(TypedDict):
    """A drop of success from `base` to `perturbed` is found with `power` in so many sets; None: more than MOST."""

    base: float
    perturbed: float
    power: float
    sets: int | None


def power_of(sets: np.ndarray, base: float, perturbed: float, level: float) -> np.ndarray:
    """The chance (n,) that base and perturbed swapped within so many sets (n,) give a two-sided p of at most `level`.

    Exact. Of successes a swap changes only the sets in which just one of both succeeded: of m of those, k for the base,
    p = 2 P(Bin(m, 1/2) >= max(k, m - k)), at most 1. Base and perturbed succeed independently of each other; where hard
    sets are hard for both, fewer sets differ, and those that do say the same.
    """
    for_base, against = base * (1 - perturbed), (1 - base) * perturbed
    differing = for_base + against
    m = np.arange(int(np.max(sets)) + 1)
    share = for_base / differing if differing else 0.0
    least = stats.binom.isf(level / 2, m, 0.5) + 1  # the fewest of m that reject: P(Bin >= least) <= level / 2
    rejects = stats.binom.sf(least - 1, m, share) + stats.binom.cdf(m - least, m, share)
    return np.array([float(stats.binom.pmf(m[: n + 1], n, differing) @ rejects[: n + 1]) for n in sets])


def needed(axes: int, alpha: float) -> list[Needed]:
    """For each of DROPS the fewest sets that find it in one of so many axes, at Holm's first step."""
    return [{"base": BASE, "perturbed": to, "power": POWER, "sets": _fewest(to, alpha / max(axes, 1))} for to in DROPS]


def _fewest(perturbed: float, level: float) -> int | None:
    """Exact tests gain power in steps, and lose a little between: the first number of sets of three that have it."""
    reach = 64
    while reach <= MOST:
        enough = power_of(np.arange(reach), BASE, perturbed, level) >= POWER
        three = np.flatnonzero(enough[:-2] & enough[1:-1] & enough[2:])
        if len(three):
            return int(three[0])
        reach *= 2
    return None
