"""What the order of running did: place within a block, carry-over from the episode before, drift over blocks.

May not: correct anything. A schedule that draws the order makes these tests exact: had the order no effect, every other
order within blocks would have been as likely.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

from labctl.analysis.blocks.means import mean_over_units
from labctl.analysis.episodes_table.cohort import Cohort, Plan
from labctl.analysis.episodes_table.ranks import Test
from labctl.analysis.episodes_table.result import Order
from labctl.analysis.results import bounds
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.resample import hashes, stream_key
from labctl.analysis.survival.spread import alike

MOST_ORDERS = 1999
CHUNK = 200
TIE = 1e-9


def order_of(cohort: Cohort, plan: Plan) -> Order:
    """The entry `order`: place and carry-over on the blocks that have every arm and every place, drift over all."""
    whole = cohort.complete & (np.sort(cohort.position, axis=1) == np.arange(1, len(cohort.table.arms) + 1)).all(axis=1)
    tau, p = _trend(cohort.measure[cohort.complete].mean(axis=1)) if cohort.complete.any() else (None, None)
    found: Order = {
        "blocks": 0, "places": [], "places_ci": [], "after": {}, "after_p": None, "trend": tau, "trend_p": p,
    }  # fmt: skip
    if not whole.any() or len(cohort.table.arms) < 2:
        return found
    values, place = cohort.measure[whole], (cohort.position[whole] - 1).astype(np.int64)
    ran = np.take_along_axis(values, np.argsort(place, axis=1), axis=1)
    arms = values - values.mean(axis=1, keepdims=True)
    rest = arms - arms.mean(axis=0)
    orders = min(plan.perm, MOST_ORDERS)
    seen, effect = _carried(rest, place[None])
    if len(values) > 1:
        drawn = np.concatenate([_carried(rest, part)[0] for part in _orders(plan.seed, orders, rest.shape)])
        found["after_p"] = float((1 + (drawn >= seen[0] * (1 - TIE)).sum()) / (1 + orders))
    unit = cohort.unit[whole]
    means = [mean_over_units(column, unit, 0.0, 1.0, plan.draws, plan.level) for column in ran.T]
    found["blocks"], found["places"] = len(values), ran.mean(axis=0).tolist()
    found["places_ci"] = [bounds(mean.interval) for mean in means]
    found["after"] = {a: float(e) for a, e in zip(cohort.table.arms, effect[0], strict=True) if np.isfinite(e)}
    return found


def _trend(means: Floats) -> Test:
    if len(means) < 3 or alike(means):
        return None, None
    tau, p = np.array(stats.kendalltau(np.arange(len(means)), means), dtype=np.float64)
    return float(tau), float(p)


def _orders(seed: int, count: int, shape: tuple[int, ...]) -> Iterator[Ints]:
    """Random places within every block, in chunks [replicates, blocks, arms]."""
    key, (blocks, arms) = stream_key(seed, "order"), shape
    for start in range(0, count, CHUNK):
        part = range(start, min(start + CHUNK, count))
        yield np.argsort(hashes(key, part, range(blocks * arms)).reshape(len(part), blocks, arms), axis=2)


def _carried(rest: Floats, place: Ints) -> tuple[Floats, Floats]:
    """How much of what remains goes with the arm before, [replicates], and by that arm [replicates, arms].

    rest [blocks, arms]: values less their block's and arm's means; place [replicates, blocks, arms], 0 the first.
    """
    count, _, arms = place.shape
    order = np.argsort(place, axis=2)
    ran = np.take_along_axis(np.broadcast_to(rest, place.shape), order, axis=2)
    ran = ran - ran.mean(axis=1, keepdims=True)
    before = order[:, :, :-1] + np.arange(count)[:, None, None] * arms
    sums = np.bincount(before.ravel(), ran[:, :, 1:].ravel(), count * arms).reshape(count, arms)
    times = np.bincount(before.ravel(), minlength=count * arms).reshape(count, arms)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = sums / times
    return np.nansum(times * effect**2, axis=1), effect
