"""The outcome law of the four-axis campaign: how often the simulated policies of `labctl demo --tasks` succeed.

Measured by 300 rollouts for each number, simulated robot and policy alone (tests/unit/drivers/rig.py), seeds 1000 to
1299; tests/system/reporting/test_four_axes.py holds whole campaigns against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from labctl.analysis.blocks.axes import Drop, Perturbed

AXES = ("S-LANG", "V-SC", "VB-POSE", "VSB-NOBJ")
STRONG = {"": 284 / 300, "S-LANG": 284 / 300, "V-SC": 283 / 300, "VB-POSE": 284 / 300, "VSB-NOBJ": 284 / 300}
WEAK = {"S-LANG": 100 / 300, "V-SC": 93 / 300, "VB-POSE": 101 / 300, "VSB-NOBJ": 150 / 300}
"""On the axis itself, of the policy that is weak on it; elsewhere it does as the strong one."""


def rates(weak: str) -> dict[str, float]:
    """Success by axis ("" the base) of a policy weak on one, or on none ("")."""
    return {axis: WEAK[axis] if axis and axis == weak else STRONG[axis] for axis in STRONG}


def campaign(rng: np.random.Generator, sets: int, weak: str) -> list[Perturbed]:
    """Both arms of a campaign: policy-a, weak on nothing, and policy-b."""
    return [
        Perturbed(arm, float(rng.random() < rate), axis or "base", "base" if axis else "", axis, f"{number}")
        for number in range(sets)
        for arm, at in (("policy-a", ""), ("policy-b", weak))
        for axis, rate in rates(at).items()
    ]


def named(drops: Sequence[Drop], arm: str, alpha: float = 0.05) -> Iterator[str]:
    """The axes that a result says cost an arm success."""
    for drop in drops:
        if drop.arm == arm and drop.p_holm <= alpha and drop.drop > 0:
            assert drop.ci is not None and drop.ci[0] > 0, "the interval goes with p"
            yield drop.axis
