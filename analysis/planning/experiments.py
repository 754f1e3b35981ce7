"""The paper's two experiments on a cohort: detection rate against N, and rejections where nothing differs.

May not: stand for a simulation or be called power. Subsampling a finite cohort without replacement goes to 0 or 1 near
its size whatever the truth (facts §4.2), and with replacement it takes the cohort for the truth; `CAVEAT` states it and
is printed with every table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.numerals import counted
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Durations, Floats, Ints, joined
from labctl.analysis.survival.event_order import event_order
from labctl.analysis.survival.kernel import Given, PairValues, Pool, Request, backend, spread
from labctl.analysis.survival.ks import TIE, TINY
from labctl.analysis.survival.resample import below, hashes, stream_key
from labctl.analysis.table import NS, UNKNOWN

METRICS = ("F(30)", "F(60)", "RMST", "KS")
READ_S = (30, 60)
ALPHAS = (0.01, 0.05, 0.10)
CAVEAT = (
    "subsamples of one finite cohort are not power: drawn once each, a rate goes to 0 or 1 near the cohort's size "
    "whatever the truth; drawn again and again, the cohort is taken for the truth"
)
AT_ONCE = 8
Taken = tuple[Sequence[Ints], Sequence[Ints]]
"""Episodes of each object's cell for the first and the second side; an episode may stand in it more than once."""


@dataclass(frozen=True)
class Rejections(Result):
    """How often each metric tells two sides apart, in `outer` subsamples with `inner` pooled resamples each.

    episodes: per object, of the first and of the second side; repeated: an episode may be drawn more than once.
    share[metric]: of p at most each of `alphas`, in their order; error[metric]: their standard errors, of `outer`
    alone; mean_p[metric].
    """

    a: str
    b: str
    objects: tuple[str, ...]
    episodes: tuple[tuple[int, int], ...]
    repeated: bool
    outer: int
    inner: int
    tau_s: float
    alphas: tuple[float, ...]
    share: Mapping[str, tuple[float, ...]]
    error: Mapping[str, tuple[float, ...]]
    mean_p: Mapping[str, float]
    caveat: str = CAVEAT


@dataclass(frozen=True)
class Experiment:
    """outer: subsamples; inner: pooled resamples for each p = b / B, as in the paper; tau_s: seconds. seed: the same
    numbers for the same seed, on any number of threads.
    """

    outer: int
    inner: int
    tau_s: float = 120.0
    seed: int = 0
    threads: int | None = None

    def detection(self, a: Sequence[Cell], b: Sequence[Cell], size: int, *, repeated: bool = False) -> Rejections:
        """How often two arms are told apart with `size` episodes of each per object.

        a, b: an arm's cells, the same objects in the same order. repeated: drawn with replacement. Raises ValueError
        for a size larger than the smallest cell where each episode is drawn once.
        """
        small = min(cell.episodes for cell in (*a, *b))
        if size > small and not repeated:
            raise ValueError(f"the smallest cell has {counted(small, 'episode')}; {size} cannot be taken from it")
        name = f"{'again' if repeated else 'once'} {size}"
        sides = [
            [self._drawn(f"{name} {side}", cell, size, repeated) for cell in cells]
            for side, cells in (("a", a), ("b", b))
        ]
        first = [cell.episodes for cell in a]

        def take(i: int) -> Taken:
            return [drawn[i] for drawn in sides[0]], [n + drawn[i] for n, drawn in zip(first, sides[1], strict=True)]

        pooled = [joined(x.observed, y.observed) for x, y in zip(a, b, strict=True)]
        return self._run((a, b), pooled, name, take, repeated)

    def itself(self, cells: Sequence[Cell]) -> Rejections:
        """How often two random disjoint halves of one arm are told apart; nominally alpha.

        The paper saw .060 on average for KS and .078 at most; .067 and .088 on simulated cohorts (facts §4.1).
        """
        halves = [cell.episodes // 2 for cell in cells]
        if min(halves) < 1:
            raise ValueError("a cell with one episode has no halves")
        orders = [self._drawn("halves", cell, cell.episodes, False) for cell in cells]

        def take(i: int) -> Taken:
            both = [(order[i][:half], order[i][half : 2 * half]) for order, half in zip(orders, halves, strict=True)]
            return [one for one, _ in both], [other for _, other in both]

        return self._run((cells, cells), [cell.observed for cell in cells], "halves", take, False)

    def pooled(self, a: Sequence[Cell], b: Sequence[Cell]) -> Rejections:
        """How often two arms are told apart once their episodes have exchanged labels at random; nominally alpha."""
        both = [joined(x.observed, y.observed) for x, y in zip(a, b, strict=True)]
        key = stream_key(self.seed, "pooled", a[0].arm, b[0].arm)
        orders = [_orders(stream_key(int(key), x.object), self.outer, s.episodes) for x, s in zip(a, both, strict=True)]

        def take(i: int) -> Taken:
            return [o[i][: x.episodes] for o, x in zip(orders, a, strict=True)], [
                o[i][x.episodes :] for o, x in zip(orders, a, strict=True)
            ]

        return self._run((a, b), both, "pooled", take, False)

    def _drawn(self, name: str, cell: Cell, size: int, repeated: bool) -> Ints:
        """Episodes of a cell [outer, size]."""
        key = stream_key(self.seed, name, cell.arm, cell.object)
        if repeated:
            return below(hashes(key, range(self.outer), range(size)), cell.episodes)
        return _orders(key, self.outer, cell.episodes)[:, :size]

    def _run(
        self,
        sides: tuple[Sequence[Cell], Sequence[Cell]],
        units: Sequence[Durations],
        name: str,
        take: Callable[[int], Taken],
        repeated: bool,
    ) -> Rejections:
        a, b = sides
        budgets = np.concatenate([cell.budget_ns for cell in (*a, *b)])
        tau_ns = round(self.tau_s * NS)
        horizon_ns = min([tau_ns, *budgets[budgets != UNKNOWN].tolist()])
        arms = a[0].arm, b[0].arm
        kernel = backend()

        def p_of(i: int) -> Floats:
            one, other = take(i)
            walk = event_order([_of(s, np.concatenate(m)) for s, *m in zip(units, one, other, strict=True)], tau_ns)
            sizes = np.array([len(m) for m in one]), np.array([len(m) for m in other])
            first = np.concatenate([np.repeat([1.0, 0.0], [n, m]) for n, m in zip(*sizes, strict=True)])[None]
            request = Request(walk.steps_until(horizon_ns), tuple(walk.steps_until(s * NS) for s in READ_S))
            keys = [stream_key(self.seed, f"{name} {i}", *arms, side) for side in "ab"]
            found = _metrics(kernel.pair_values(walk, Given(first, 1.0 - first), range(1), request))
            drawn = _metrics(kernel.pair_values(walk, Pool(keys[0], keys[1], *sizes), range(self.inner), request))
            p: Floats = (drawn >= found * (1 - TIE) - TINY).mean(axis=0)
            return p

        parts = [range(start, min(start + AT_ONCE, self.outer)) for start in range(0, self.outer, AT_ONCE)]
        p = np.concatenate(spread(lambda part: np.array([p_of(i) for i in part]), parts, self.threads))
        shares = {m: [float((p[:, j] <= alpha).mean()) for alpha in ALPHAS] for j, m in enumerate(METRICS)}
        one, other = take(0)
        return Rejections(
            *arms,
            tuple(cell.object for cell in a),
            tuple((len(x), len(y)) for x, y in zip(one, other, strict=True)),
            repeated,
            self.outer,
            self.inner,
            self.tau_s,
            ALPHAS,
            {m: tuple(found) for m, found in shares.items()},
            {m: tuple(math.sqrt(r * (1 - r) / self.outer) for r in found) for m, found in shares.items()},
            {m: float(p[:, j].mean()) for j, m in enumerate(METRICS)},
        )


def _orders(key: np.uint64, outer: int, episodes: int) -> Ints:
    """Random orders of the episodes [outer, episodes]."""
    return np.argsort(hashes(key, range(outer), range(episodes)), axis=1)


def _of(whole: Durations, chosen: Ints) -> Durations:
    """The chosen episodes, in their order, as episodes 0, 1, …; one that is chosen twice is there twice."""
    by_episode = np.argsort(whole.episode, kind="stable")
    rows = np.bincount(whole.episode, minlength=whole.episodes)
    start = np.cumsum(rows) - rows
    count = rows[chosen]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    row = by_episode[np.repeat(start[chosen], count) + within]
    return Durations(whole.time_ns[row], whole.event[row], np.repeat(np.arange(len(chosen)), count), len(chosen))


def _metrics(found: PairValues) -> Floats:
    """The paper's four metrics [R, 4], macro means over objects, unsigned."""
    reads = np.abs((found.read_a - found.read_b).mean(axis=1))
    rmst = np.abs((found.rmst_a - found.rmst_b).mean(axis=1))
    return np.column_stack((reads, rmst, found.sup.mean(axis=1)))
