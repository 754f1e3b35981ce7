"""What is drawn together: whole episodes of a cell, or whole blocks of the arms that ran in them.

May not: estimate an effect; it lays out event orders, keys and the RMST replicates that every interval shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Durations, Floats
from labctl.analysis.survival.event_order import EventOrder, event_order
from labctl.analysis.survival.kernel import Given, Moments, Redraw, moments
from labctl.analysis.survival.resample import stream_key
from labctl.analysis.table import NS

Key = tuple[str, str]


@dataclass(frozen=True)
class Cluster:
    """Cells whose units are drawn together: one cell's episodes, or blocks that several arms ran in, or one at several
    objects.

    Group i of `walk` is `keys[i]`, an (arm, object); `held` [groups] is in how many units each has an episode.
    """

    keys: tuple[Key, ...]
    walk: EventOrder
    draw: Redraw
    held: tuple[int, ...]
    by_block: bool


@dataclass(frozen=True)
class Replicates:
    """RMST of every cell as it was and per replicate, in seconds, with clustered jackknife covariances.

    `value[k]` and `values[k]` [B]; `covariance[k, l]` and `covariances[k, l]` [B] for cells drawn together;
    `held[k]` is the number of units behind a cell, `alone` the cells whose episodes are drawn, not their blocks.
    `by_episode`: every episode counts alike (`curves.marginal`), so that a value is a mean of as many as there are, and
    intervals at few of them have to be wider than replicates tell. `tau_s` is the horizon of the RMSTs.
    """

    value: Mapping[Key, float]
    covariance: Mapping[tuple[Key, Key], float]
    values: Mapping[Key, Floats]
    covariances: Mapping[tuple[Key, Key], Floats]
    held: Mapping[Key, int]
    alone: frozenset[Key]
    by_episode: bool = False
    tau_s: float = 0.0


MOST_TOGETHER = 40
"""Cells whose blocks are drawn together over objects, at most: covariances of all pairs are kept for each replicate."""


def clusters(cells: Mapping[Key, Cell], tau_ns: int, seed: int) -> list[Cluster]:
    """The sets of cells that are drawn together (methodology §3, 4: with blocks, whole blocks are resampled).

    Cells belong together when each names the block of every episode and they share a block, at one object or at
    several: a block of that name is one staging. A single block cannot be drawn, so its episodes are. Beyond
    `MOST_TOGETHER` cells those of each object are drawn on their own.
    """
    out = []
    for group in _sets(cells):
        members = [cells[k] for k in group]
        names = sorted(set().union(*(c.blocks for c in members)))
        if len(names) > 1 and all(blocks_of(c) for c in members):
            objects = sorted({o for _, o in group})
            named = [name for o in objects for name in (o, *(a for a, at in group if at == o))]
            out.append(_together(members, names, tau_ns, stream_key(seed, "blocks", *named)))
        else:
            out += [_alone(c, c.timed, tau_ns, seed) for c in members]
    return out


def blocks_over_objects(cells: Mapping[Key, Cell]) -> int:
    """How many cells one set joins over several objects though they are too many to be drawn together; 0 for none."""
    joined = [len(group) for group in _joined_by_blocks(cells) if len({o for _, o in group}) > 1]
    return max([n for n in joined if n > MOST_TOGETHER], default=0)


def freedom(found: Replicates, keys: Iterable[Key]) -> int:
    """Degrees of freedom behind some cells: units less one, those that are drawn together counted once."""
    left, total = list(keys), 0
    while left:
        together = [k for k in left if (left[0], k) in found.covariance]
        left = [k for k in left if k not in together]
        total += max(found.held[k] for k in together) - 1
    return total


def few(found: Replicates, keys: Sequence[Key]) -> float:
    """Degrees of freedom of a mean over the cells `keys` where every episode counts alike: half of n - 1 a cell, n the
    fewest units of any, since times of which now and then one is ten times the others say about half as much of their
    spread, and no more than `MOST_OF_UNSEEN` where the rare slow episodes may not have been met (`unseen`); over
    several no more than twice that, since one cell may carry all the error.
    """
    each = (min(found.held[k] for k in keys) - 1) / 2
    if any(unseen(found.value[k], found.held[k], found.tau_s) for k in keys):
        each = min(each, MOST_OF_UNSEEN)
    return min(2 * each, len(keys) * each)


MOST_OF_UNSEEN = 6.0
UNSEEN = 0.25
"""By which share of an RMST one more episode that is stuck until tau may raise it before few degrees are left."""


def unseen(rmst_s: float, units: int, tau_s: float) -> bool:
    """Whether an RMST where every episode counts alike hangs on episodes so slow and rare that so many units may have
    met none: one that is stuck until tau would raise it by more than `UNSEEN`.
    """
    return tau_s > (1 + UNSEEN * (units + 1)) * rmst_s


def _sets(cells: Mapping[Key, Cell]) -> list[list[Key]]:
    """Sets of cells by object and name, each small enough to be drawn together."""
    out = []
    for group in _joined_by_blocks(cells):
        if len(group) <= MOST_TOGETHER or len({o for _, o in group}) == 1:
            out.append(group)
        else:
            for obj in sorted({o for _, o in group}):
                out += _joined_by_blocks({k: cells[k] for k in group if k[1] == obj})
    return sorted(out, key=lambda group: [(o, a) for a, o in group])


def _joined_by_blocks(cells: Mapping[Key, Cell]) -> list[list[Key]]:
    by_name = sorted(cells, key=lambda k: (k[1], k[0]))
    return connected({k: blocks_of(cells[k]) for k in by_name})


def rmst_replicates(groups: Iterable[Cluster], boot: int) -> Replicates:
    """RMST(tau) of every cell under `boot` draws of its units."""
    value, covariance, values, covariances, held = {}, {}, {}, {}, {}
    alone: set[Key] = set()
    groups = list(groups)
    by_episode = any((cluster.walk.worth != 1.0).any() for cluster in groups)
    for cluster in groups:
        found = moments(cluster.walk, Given(np.ones((1, cluster.walk.units))), range(1))
        drawn: Moments = moments(cluster.walk, cluster.draw, range(boot))
        alone |= set() if cluster.by_block else set(cluster.keys)
        for i, k in enumerate(cluster.keys):
            value[k], values[k], held[k] = float(found.rmst[0, i]), drawn.rmst[:, i].copy(), cluster.held[i]
            for j, m in enumerate(cluster.keys):
                covariance[k, m] = float(found.covariance[0, i, j])
                covariances[k, m] = drawn.covariance[:, i, j].copy()
    tau_s = max((cluster.walk.tau_ns for cluster in groups), default=0) / NS
    return Replicates(value, covariance, values, covariances, held, frozenset(alone), by_episode, tau_s)


def episode_replicates(cell: Cell, tau_ns: int, seed: int, boot: int, known: Replicates | None = None) -> Floats:
    """The paper's RMST replicates [boot]: whole episodes drawn within the cell, tails as they were observed.

    Taken from `known` where those are the very same draws.
    """
    if known and cell.timed is cell.observed and (cell.arm, cell.object) in known.alone:
        return known.values[cell.arm, cell.object]
    cluster = _alone(cell, cell.observed, tau_ns, seed)
    return moments(cluster.walk, cluster.draw, range(boot)).rmst[:, 0]


def _alone(cell: Cell, durations: Durations, tau_ns: int, seed: int) -> Cluster:
    key = (cell.arm, cell.object)
    draw = Redraw((stream_key(seed, "boot", *key),), (durations.episodes,))
    return Cluster((key,), event_order([durations], tau_ns), draw, (durations.episodes,), False)


def _together(members: Sequence[Cell], names: Sequence[str], tau_ns: int, key: np.uint64) -> Cluster:
    rows = [_at_blocks(c, c.timed, names) for c in members]
    walk, draw = event_order(rows, tau_ns, shared=True), Redraw((key,), (len(names),))
    held = tuple(len(set(c.blocks)) for c in members)
    return Cluster(tuple((c.arm, c.object) for c in members), walk, draw, held, True)


def by_block(members: Iterable[Cell], names: Sequence[str]) -> list[Durations]:
    """The operations of each cell with its blocks as units; `names` [blocks] are sorted."""
    return [_at_blocks(c, c.durations, names) for c in members]


def _at_blocks(cell: Cell, rows: Durations, names: Sequence[str]) -> Durations:
    return replace(rows, episode=np.searchsorted(names, cell.blocks)[rows.episode], episodes=len(names))


def blocks_of(cell: Cell) -> set[str]:
    """The blocks of a cell; none if an episode has no block."""
    return set() if "" in cell.blocks else set(cell.blocks)


def connected(blocks: Mapping[Key, set[str]]) -> list[list[Key]]:
    """Cells joined by shared blocks, directly or through others; both by object and arm."""
    groups: list[tuple[list[Key], set[str]]] = []
    for key, own in blocks.items():
        joined = [g for g in groups if g[1] & own]
        groups = [g for g in groups if not g[1] & own]
        keys = sorted([key, *(k for g in joined for k in g[0])], key=lambda k: (k[1], k[0]))
        groups.append((keys, own.union(*(g[1] for g in joined))))
    return sorted((keys for keys, _ in groups), key=lambda keys: [(o, a) for a, o in keys])
