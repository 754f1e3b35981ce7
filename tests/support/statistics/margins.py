"""How often arms are shown to be within a margin: arms that lie exactly at it (where any claim is wrong), and arms that
are alike. Every run is a pure function of its number.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy import optimize

from labctl.analysis.operations_table.pair_effects import against_margin, rmst_ratio
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.clusters import clusters, rmst_replicates
from labctl.analysis.survival.curves import rmst_with_error
from labctl.analysis.survival.result import Margin
from labctl.analysis.table import NS
from support.statistics.calibration import Counts, _shares
from support.statistics.cohorts import OBJECTS

ALPHA, BOOT = 0.05, 999
EPISODES = 100_000
"""Behind what counts as the truth: a ratio then is known to about .2 %."""


def within(
    laws: tuple[Distribution, Distribution],
    episodes: int,
    runs: range,
    *,
    ratio: float,
    objects: int = 1,
    blocks: bool = False,
    tau_s: float = 240.0,
    boot: int = BOOT,
) -> dict[str, float]:
    """Share of `runs` campaigns of two arms, `episodes` of each at every object, in which they are shown to be
    equivalent, b to be non-inferior to a, a to be non-inferior to b. With `blocks` episode i of both shares its scene.
    """
    asked: dict[str, Margin] = {
        name: {"rmst_ratio": ratio, "non_inferior_to": to}
        for name, to in (("equivalent", None), ("b non-inferior", "a"), ("a non-inferior", "b"))
    }

    def one(run: int) -> Counts:
        rng = np.random.default_rng([run, episodes])
        names = [f"{i:03}" for i in range(episodes)] if blocks else None
        cells = {}
        for obj in OBJECTS[:objects]:
            scenes = rng.standard_normal(episodes) if blocks else None
            of = None if names is None else [f"{obj}{name}" for name in names]
            for arm, law in zip("ab", laws, strict=True):
                cells[arm, obj] = simulate(law, episodes, rng, arm=arm, obj=obj, blocks=of, scenes=scenes)
        found = rmst_replicates(clusters(cells, round(tau_s * NS), run), boot)
        effect = rmst_ratio(found, *([(arm, obj) for obj in OBJECTS[:objects]] for arm in "ab"))
        told = {name: against_margin({("a", "b"): effect}, m, tau_s, ALPHA, None) for name, m in asked.items()}
        return {name: int(by["a", "b"]["shown"]) for name, by in told.items()}

    return _shares(one, runs)


def at_margin(first: Distribution, second: Distribution, ratio: float, tau_s: float = 240.0) -> Distribution:
    """The second law with other item times, such that its RMST(tau) is `ratio` times that of the first."""
    target = ratio * _rmst(first, tau_s)

    def gap(factor: float) -> float:
        return _rmst(second.slower(factor), tau_s) - target

    return second.slower(float(optimize.brentq(gap, 0.1, 20.0, xtol=1e-4)))


@functools.cache
def _rmst(law: Distribution, tau_s: float) -> float:
    rng = np.random.default_rng(2**31)
    scenes = rng.standard_normal(EPISODES) if law.scene else None
    return rmst_with_error(simulate(law, EPISODES, rng, scenes=scenes).durations, round(tau_s * NS))[0]
