"""What is drawn together: whole episodes of a cell, or whole blocks of the arms that ran in them.

May not: estimate an effect; it lays out event orders, keys and the RMST replicates that every interval shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Durations, Floats
from labctl.analysis.survival.event_order import EventOrder, event_order
from labctl.analysis.survival.kernel import Given, Moments, Redraw, moments
from labctl.analysis.survival.resample import stream_key

Key = tuple[str, str]


@dataclass(frozen=True)
class Cluster:
    """Cells at one object whose units are drawn together: one cell's episodes, or blocks that several arms ran in.

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
    """

    value: Mapping[Key, float]
    covariance: Mapping[tuple[Key, Key], float]
    values: Mapping[Key, Floats]
    covariances: Mapping[tuple[Key, Key], Floats]
    held: Mapping[Key, int]
    alone: frozenset[Key]


def clusters(cells: Mapping[Key, Cell], tau_ns: int, seed: int) -> list[Cluster]:
    """The sets of cells that are drawn together (methodology §3, 4: with blocks, whole blocks are resampled).

    Cells of one object belong together when each names the block of every episode and they share a block; a single
    block cannot be drawn, so its episodes are.
    """
    out = []
    for obj in sorted({o for _, o in cells}):
        arms = [a for a, o in cells if o == obj]
        for group in _connected({a: blocks_of(cells[a, obj]) for a in arms}):
            members = [cells[a, obj] for a in group]
            names = sorted(set().union(*(c.blocks for c in members)))
            if len(names) > 1 and all(blocks_of(c) for c in members):
                out.append(_together(members, names, tau_ns, stream_key(seed, "blocks", obj, *group)))
            else:
                out += [_alone(c, c.durations, tau_ns, seed) for c in members]
    return out


def rmst_replicates(groups: Iterable[Cluster], boot: int) -> Replicates:
    """RMST(tau) of every cell under `boot` draws of its units."""
    value, covariance, values, covariances, held = {}, {}, {}, {}, {}
    alone: set[Key] = set()
    for cluster in groups:
        found = moments(cluster.walk, Given(np.ones((1, cluster.walk.units))), range(1))
        drawn: Moments = moments(cluster.walk, cluster.draw, range(boot))
        alone |= set() if cluster.by_block else set(cluster.keys)
        for i, k in enumerate(cluster.keys):
            value[k], values[k], held[k] = float(found.rmst[0, i]), drawn.rmst[:, i].copy(), cluster.held[i]
            for j, m in enumerate(cluster.keys):
                covariance[k, m] = float(found.covariance[0, i, j])
                covariances[k, m] = drawn.covariance[:, i, j].copy()
    return Replicates(value, covariance, values, covariances, held, frozenset(alone))


def episode_replicates(cell: Cell, tau_ns: int, seed: int, boot: int, known: Replicates | None = None) -> Floats:
    """The paper's RMST replicates [boot]: whole episodes drawn within the cell, tails as they were observed.

    Taken from `known` where those are the very same draws.
    """
    if known and cell.durations is cell.observed and (cell.arm, cell.object) in known.alone:
        return known.values[cell.arm, cell.object]
    cluster = _alone(cell, cell.observed, tau_ns, seed)
    return moments(cluster.walk, cluster.draw, range(boot)).rmst[:, 0]


def _alone(cell: Cell, durations: Durations, tau_ns: int, seed: int) -> Cluster:
    key = (cell.arm, cell.object)
    draw = Redraw((stream_key(seed, "boot", *key),), (durations.episodes,))
    return Cluster((key,), event_order([durations], tau_ns), draw, (durations.episodes,), False)


def _together(members: Sequence[Cell], names: Sequence[str], tau_ns: int, key: np.uint64) -> Cluster:
    walk, draw = event_order(by_block(members, names), tau_ns, shared=True), Redraw((key,), (len(names),))
    held = tuple(len(set(c.blocks)) for c in members)
    return Cluster(tuple((c.arm, c.object) for c in members), walk, draw, held, True)


def by_block(members: Iterable[Cell], names: Sequence[str]) -> list[Durations]:
    """The operations of each cell with its blocks as units; `names` [blocks] are sorted."""
    return [
        Durations(
            c.durations.time_ns, c.durations.event, np.searchsorted(names, c.blocks)[c.durations.episode], len(names)
        )
        for c in members
    ]


def blocks_of(cell: Cell) -> set[str]:
    """The blocks of a cell; none if an episode has no block."""
    return set() if "" in cell.blocks else set(cell.blocks)


def _connected(blocks: Mapping[str, set[str]]) -> list[list[str]]:
    """Arms joined by shared blocks, directly or through others; both sorted by name."""
    groups: list[tuple[list[str], set[str]]] = []
    for arm in sorted(blocks):
        joined = [g for g in groups if g[1] & blocks[arm]]
        groups = [g for g in groups if not g[1] & blocks[arm]]
        arms = sorted([arm, *(a for g in joined for a in g[0])])
        groups.append((arms, blocks[arm].union(*(g[1] for g in joined))))
    return sorted(arms for arms, _ in groups)
