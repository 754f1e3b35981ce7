"""Who is first: P(T_arm < T_reference), the area under the P–P plot, with its tie rule and interval.

May not: rank arms by it. It ignores by how much an arm is slower, and can order arms against their HRT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import blocks_of
from labctl.analysis.survival.curves import Spells
from labctl.analysis.survival.event_order import Route, route
from labctl.analysis.survival.hrt import Estimate
from labctl.analysis.survival.intervals import bootstrap_t, logit, t_interval
from labctl.analysis.survival.kernel import Given, Redraw, precedence
from labctl.analysis.survival.resample import stream_key


def auc(arm: Sequence[Cell], reference: Sequence[Cell], tau_ns: int, seed: int, boot: int) -> Estimate:
    """Macro mean over objects of P(T_arm < T_reference) up to tau; cells of one object at the same place.

    Equal times count one half, and so do two times that are both beyond tau or infinite: nobody was first. Bootstrap-t
    on the logit scale with the clustered jackknife se, logit-t where that is undefined. Blocks that both sides ran in
    are drawn whole.
    """
    value, variance, values, variances, df = 0.0, 0.0, np.zeros(boot), np.zeros(boot), [0, 0]
    for mine, theirs in zip(arm, reference, strict=True):
        walk, draw, held = _raced(mine, theirs, tau_ns, seed)
        found = precedence(walk, Given(np.ones((1, walk.units))), range(1))
        drawn = precedence(walk, draw, range(boot))
        value, variance = value + float(found.value[0]), variance + float(found.variance[0])
        values, variances = values + drawn.value, variances + drawn.variance
        df = [d + h - 1 for d, h in zip(df, held, strict=True)]
    n = len(arm)
    value, se, values, ses = value / n, math.sqrt(variance) / n, values / n, np.sqrt(variances) / n
    twin = t_interval(value, se, min(df), logit())
    studentised = bootstrap_t(value, se, values, ses, logit()) if twin else None
    method = "bootstrap-t" if studentised else "logit-t" if twin else "none"
    return Estimate(value, se, studentised or twin, twin, None, method)


def _raced(mine: Cell, theirs: Cell, tau_ns: int, seed: int) -> tuple[Route, Redraw, tuple[int, int]]:
    """Both cells as groups 0 and 1 of one route, with the units that are drawn and how many each holds."""
    blocks = [blocks_of(c) for c in (mine, theirs)]
    shared = blocks[0] & blocks[1]
    names = sorted(blocks[0] | blocks[1])
    if shared and len(names) > 1:
        number = {name: i for i, name in enumerate(names)}
        groups = [
            Spells(
                c.spells.time_ns,
                c.spells.event,
                np.array([number[name] for name in c.blocks])[c.spells.episode],
                len(names),
            )
            for c in (mine, theirs)
        ]
        draw = Redraw((stream_key(seed, "race blocks", mine.arm, theirs.arm, mine.object),), (len(names),))
        return route(groups, tau_ns, shared=True), draw, (len(blocks[0]), len(blocks[1]))
    keys = [stream_key(seed, "boot", c.arm, c.object) for c in (mine, theirs)]
    draw = Redraw((keys[0], keys[1]), (mine.episodes, theirs.episodes))
    return route([mine.spells, theirs.spells], tau_ns), draw, (mine.episodes, theirs.episodes)
