"""How often the interval of P(T_arm < T_reference) holds the truth with few blocks. Every run is a pure function of its
number.
"""

from __future__ import annotations

import functools

import numpy as np

from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.event_order import event_order
from labctl.analysis.survival.kernel import Given, order_probability
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.table import NS
from support.statistics.calibration import Counts, _shares

BOOT = 399
EPISODES = 20_000
"""Behind what counts as the truth: a probability then is known to .004."""
PERSON = Distribution(20.0, shape=3.0, frailty=0.15, scene=0.3)
QUICK = Distribution(5.0, shape=3.0, frailty=0.15, items=1, budget_s=60.0)
POLICY, SLOW = Distribution(60.0, lost=0.03, scene=0.3), Distribution(330.0, lost=0.07, scene=0.3)
ONE_ITEM = Distribution(15.0, shape=4.0, lost=0.2, frailty=0.2, items=1, budget_s=60.0)
PAIRS: dict[str, tuple[Distribution, Distribution, float]] = {
    "a policy and the person": (POLICY, PERSON, 240.0),
    "a slow policy and the person": (SLOW, PERSON, 240.0),
    "two slow policies, alike": (SLOW, SLOW, 240.0),
    "one item, a policy and the person": (ONE_ITEM, QUICK, 60.0),
    "one item, two policies, alike": (ONE_ITEM, ONE_ITEM, 60.0),
}


def coverage(blocks: int, runs: range, *, objects: int = 1, pairs: tuple[str, ...] = tuple(PAIRS)) -> dict[str, float]:
    """Share of `runs` campaigns whose 95 % interval of P(T_arm < T_reference) holds it, of those that have one; both
    arms once in each of `blocks` blocks of every object, which share their scene.
    """
    found: dict[str, float] = {}
    for name in pairs:
        first, second, tau_s = PAIRS[name]
        true, tau_ns = truth(name), round(tau_s * NS)

        def one(run: int, laws: tuple[Distribution, ...] = (first, second), true=true, tau_ns=tau_ns) -> Counts:
            rng = np.random.default_rng([run, blocks, objects])
            sides: list[list] = [[], []]
            for obj in range(objects):
                scenes, of = rng.standard_normal(blocks), [f"{obj} {i}" for i in range(blocks)]
                for side, law, arm in zip(sides, laws, "ab", strict=True):
                    side.append(simulate(law, blocks, rng, arm=arm, obj=f"o{obj}", blocks=of, scenes=scenes))
            ci = auc(*sides, tau_ns, run, BOOT).interval
            return {"given": int(ci is not None), "held": int(ci is not None and ci[0] <= true <= ci[1])}

        shares = _shares(one, runs)
        found[name] = shares["held"] / max(shares["given"], 1e-9)
    return found


@functools.cache
def truth(name: str) -> float:
    """P(T_arm < T_reference) of a pair."""
    first, second, tau_s = PAIRS[name]
    if first == second:
        return 0.5
    rng = np.random.default_rng(2**31)
    scenes = rng.standard_normal(EPISODES)
    cells = [simulate(law, EPISODES, rng, scenes=scenes, blocks=["x"] * EPISODES) for law in (first, second)]
    walk = event_order([cell.durations for cell in cells], round(tau_s * NS))
    return float(order_probability(walk, Given(np.ones((1, walk.units))), range(1)).value[0])
