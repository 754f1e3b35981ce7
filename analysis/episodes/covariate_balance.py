"""Things that should not matter: the side of the tote and of the camera, the session, the order of blocks.

Each `p_error` is the Monte-Carlo error of a p.
May not: correct for any of them. It prints how balanced they were and whether results moved with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.episodes.sensitivity import part_of
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.curves import Durations, Floats, curve, rmst_with_error
from labctl.analysis.survival.intervals import Interval
from labctl.analysis.survival.items_moved import moved_share
from labctl.analysis.survival.ks import TIE, TINY
from labctl.analysis.survival.resample import hashes, parts_of, random_swaps, stream_key
from labctl.analysis.survival.spread import alike
from labctl.analysis.table import UNKNOWN, Table


@dataclass(frozen=True)
class Configuration(Result):
    """An arm in one spatial configuration; `completion` is F(budget), mean over objects, None without a budget."""

    arm: str
    tote_side: str
    camera_side: str
    episodes: int
    moved: float | None
    moved_ci: Interval | None
    completion: float | None


@dataclass(frozen=True)
class Sides(Result):
    """An arm with tote and camera on the same side against opposite sides: completion, and items moved / staged.

    `p` is by swapping the configurations of the arm's episodes within an object.
    """

    arm: str
    same: float | None
    opposite: float | None
    moved_same: float | None
    moved_opposite: float | None
    p: float | None
    p_error: float | None


@dataclass(frozen=True)
class Spatial(Result):
    """Every arm in every configuration. `imbalance` is the largest gap, in percentage points, between an arm's share
    of episodes in a configuration and that of all arms together (the paper kept it within 8).
    """

    rows: tuple[Configuration, ...]
    sides: tuple[Sides, ...]
    imbalance: float


@dataclass(frozen=True)
class Trend(Result):
    """RMST(tau) of an arm in every block, in the order of the table: learning, fatigue or wear would show as a slope.

    `order` [k] counts blocks from 0 over all objects, `rmst` [k] in seconds; `slope` is seconds per block, within
    objects; `p` by shuffling the blocks of an object, those that go over several objects whole among their like.
    """

    arm: str
    order: np.ndarray
    object: tuple[str, ...]
    block: tuple[str, ...]
    rmst: Floats
    slope: float | None
    p: float | None
    p_error: float | None


@dataclass(frozen=True)
class Sessions(Result):
    """Items moved / staged of an arm by session, in the table's order; `p` by shuffling blocks (episodes
    where there are none) over sessions within objects, those of several episodes whole among their like.
    """

    arm: str
    session: tuple[str, ...]
    episodes: tuple[int, ...]
    moved: tuple[float, ...]
    p: float | None
    p_error: float | None


def spatial(table: Table, seed: int = 0, perm: int = 9999) -> Spatial | None:
    """Completion and items moved by configuration; None where the table names no side (a swap moved one policy of the
    paper by 22 points)."""
    cells = cells_of(table)
    members = {k: [table.episodes[i] for i in found] for k, found in table.cells().items()}
    where = {k: [(e.tote_side, e.camera_side) for e in episodes] for k, episodes in members.items()}
    named = sorted({pair for pairs in where.values() for pair in pairs if all(pair)})
    if not named:
        return None
    rows, sides, gaps = [], [], []
    total = sum(len(pairs) for pairs in where.values())
    for arm in sorted({a for a, _ in cells}):
        keys = [k for k in cells if k[0] == arm]
        count = sum(len(where[k]) for k in keys)
        for pair in named:
            parts = [p for k in keys if (p := _matching(cells[k], [w == pair for w in where[k]]))]
            here = sum(p.episodes for p in parts)
            overall = sum(pairs.count(pair) for pairs in where.values()) / total
            gaps.append(abs(here / count - overall))
            if parts:
                share, interval = moved_share(parts)
                rows.append(Configuration(arm, *pair, here, share, interval, _completion(parts)))
        sides.append(_sides(arm, [cells[k] for k in keys], [where[k] for k in keys], seed, perm))
    return Spatial(tuple(rows), tuple(sides), 100 * max(gaps))


def trend(table: Table, arm: str, tau_ns: int, seed: int = 0, perm: int = 9999, rig: str = "") -> Trend | None:
    """Whether an arm changed as the campaign went on; None for fewer than three blocks (episodes without blocks). rig:
    of the robot's cell of that name alone; of all, blocks are held against others of their own cell.
    """
    cells = cells_of(table)
    met: list[tuple[int, str, str, float]] = []
    for (a, obj), found in table.cells().items():
        if a != arm or (rig and table.episodes[found[0]].cell != rig):
            continue
        places: dict[str, list[int]] = {}
        for place, i in enumerate(found):
            places.setdefault(table.episodes[i].block or table.episodes[i].name, []).append(place)
        parts = _by_episodes(cells[a, obj].durations, places.values())
        for (name, own), part in zip(places.items(), parts, strict=True):
            met.append((min(found[place] for place in own), obj, name, rmst_with_error(part, tau_ns)[0]))
    if len(met) < 3:
        return None
    met.sort()
    order, value = np.arange(len(met)), np.array([m[3] for m in met])
    groups = [np.flatnonzero([m[1] == obj for m in met]) for obj in sorted({m[1] for m in met})]
    x = order - sum(np.where(np.isin(order, g), order[g].mean(), 0.0) for g in groups)
    spread = float((x**2).sum())
    found = float((x * value).sum())
    units = _units([m[2] for m in met], [m[1] for m in met])
    key = stream_key(seed, "trend", arm, *filter(None, (rig,)))
    p = _p(np.abs(_shuffled(value, units, key, perm) @ x), abs(found))
    known = spread > 0 and not alike(value)
    return Trend(
        arm, order, tuple(m[1] for m in met), tuple(m[2] for m in met), value,
        found / spread if known else None, p if known else None, share_error(p, perm + 1) if known else None,
    )  # fmt: skip


def sessions(table: Table, arm: str, seed: int = 0, perm: int = 9999) -> Sessions | None:
    """Whether an arm did otherwise in another session; None for fewer than two sessions or unknown items staged."""
    cells = cells_of(table)
    moved, staged, names, objects, blocks = [], [], [], [], []
    for (a, obj), found in table.cells().items():
        if a == arm:
            moved.append(cells[a, obj].moved)
            staged.append(cells[a, obj].staged)
            names += [table.episodes[i].session for i in found]
            objects += [obj] * len(found)
            blocks += [table.episodes[i].block or table.episodes[i].name for i in found]
    if not names or "" in names or len(set(names)) < 2 or (np.concatenate(staged) == UNKNOWN).any():
        return None
    share, name, obj = np.concatenate(moved) / np.concatenate(staged), np.array(names), np.array(objects)
    first: dict[str, int] = {}
    for place, e in enumerate(table.episodes):
        first.setdefault(e.session, place)
    order = sorted(set(names), key=first.__getitem__)
    members = np.array([name == s for s in order], dtype=float)
    centred = share - sum(np.where(obj == o, share[obj == o].mean(), 0.0) for o in set(objects))

    def spread(values: Floats) -> Floats:
        """Between-session sum of squares [R] of values [R, episodes]."""
        return ((values @ members.T) ** 2 / members.sum(axis=1)).sum(axis=1)

    shuffled = _shuffled(centred, _units(blocks, objects), stream_key(seed, "sessions", arm), perm)
    p = _p(spread(shuffled), float(spread(centred[None, :])[0]))
    counts = members.sum(axis=1).astype(int)
    return Sessions(
        arm,
        tuple(order),
        tuple(counts.tolist()),
        tuple(((members @ share) / counts).tolist()),
        p,
        share_error(p, perm + 1),
    )


def _by_episodes(durations: Durations, wanted: Iterable[Sequence[int]]) -> Iterator[Durations]:
    """The rows of some episodes alone, of each of the sets wanted (places, rising): what all of them cost grows with
    their rows, however many sets there are.
    """
    rows = np.argsort(durations.episode, kind="stable")
    starts = np.searchsorted(durations.episode[rows], np.arange(durations.episodes + 1))
    for places in wanted:
        own = np.sort(np.concatenate([rows[starts[place] : starts[place + 1]] for place in places]))
        number = np.searchsorted(np.array(places), durations.episode[own])
        yield Durations(durations.time_ns[own], durations.event[own], number, len(places))


def _units(names: Sequence[str], objects: Sequence[str]) -> list[np.ndarray]:
    """Places of what goes together by name, like with like: one array [units, values of each] for every set of objects
    that units go over, each unit's values in the order of its objects.
    """
    own: dict[str, list[int]] = {}
    for place in sorted(range(len(names)), key=lambda i: (objects[i], i)):
        own.setdefault(names[place], []).append(place)
    alike: dict[tuple[str, ...], list[list[int]]] = {}
    for places in own.values():
        alike.setdefault(tuple(objects[place] for place in places), []).append(places)
    return [np.array(sorted(units)) for units in alike.values()]


def _shuffled(values: Floats, groups: Sequence[np.ndarray], key: np.uint64, perm: int) -> Floats:
    """The values in random order within each group [perm, len(values)]; `groups` holds the places of each [units,
    values of each], and a unit's values stay together.
    """
    out = np.empty((perm, len(values)))
    for part in parts_of(perm):
        words = hashes(key, part, range(len(values)))
        for g in groups:
            out[part.start : part.stop, g] = values[g][np.argsort(words[:, g[:, 0]], axis=1, kind="stable")]
    return out


def _sides(arm: str, cells: Sequence[Cell], where: Sequence[Sequence[tuple[str, str]]], seed: int, perm: int) -> Sides:
    """Same against opposite sides, over the episodes that name both."""
    named = [[all(pair) for pair in pairs] for pairs in where]
    parts = [_matching(c, n) for c, n in zip(cells, named, strict=True)]
    same = [
        np.array([pair[0] == pair[1] for pair, known in zip(pairs, n, strict=True) if known])
        for pairs, n in zip(where, named, strict=True)
    ]
    met = [(p, s) for p, s in zip(parts, same, strict=True) if p]
    kept = [[part for p, s in met if (part := _matching(p, (s == side).tolist()))] for side in (True, False)]
    same_side, opposite = (_completion(k) if k else None for k in kept)
    if not all(kept) or any((p.staged == UNKNOWN).any() for p, _ in met):
        return Sides(arm, same_side, opposite, None, None, None, None)
    shares = [moved_share(k)[0] for k in kept]
    flags = np.concatenate([s for _, s in met])
    moved, staged = (np.concatenate([getattr(p, name) for p, _ in met]).astype(float) for name in ("moved", "staged"))
    ends = list(itertools.accumulate((p.episodes for p, _ in met), initial=0))
    strata = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    key, counts = stream_key(seed, "sides", arm), [int(flags[s].sum()) for s in strata]
    labels = np.concatenate([random_swaps(key, part, strata, counts, len(flags)) for part in parts_of(perm)])

    def gap(marked: np.ndarray) -> Floats:
        return (marked @ moved) / (marked @ staged) - (~marked @ moved) / (~marked @ staged)

    p = _p(np.abs(gap(labels)), abs(float(gap(flags[None, :])[0])))
    return Sides(arm, same_side, opposite, shares[0], shares[1], p, share_error(p, perm + 1))


def _completion(cells: Sequence[Cell]) -> float | None:
    """F(budget) of cells, mean over objects."""
    found = []
    for c in cells:
        if (c.budget_ns == UNKNOWN).any():
            return None
        _, surviving = curve(c.durations, int(c.budget_ns.min()))
        found.append(1.0 - float(surviving[-1]) if len(surviving) else 0.0)
    return float(np.mean(found))


def _matching(cell: Cell, marked: Sequence[bool]) -> Cell | None:
    """The cell of the marked episodes, None without any."""
    keep = np.array(marked, dtype=bool)
    return part_of(cell, keep) if keep.any() else None


def _p(values: Floats, found: float) -> float:
    return (1 + int((values >= found * (1 - TIE) - TINY).sum())) / (len(values) + 1)
