"""Random replicates as a pure function of (seed, names, replicate, draw): order and threads cannot change them; and the
relabellings of two arms, free within strata or as their schedule could have drawn them.

May not: hold a generator or any state, or know how a schedule is drawn: what it allows comes as a value (`Exchange`).
`compiled/kernel.h` repeats the draws bit for bit.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labctl.analysis.survival.verdicts import smallest_p

GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
DRAW_BITS = 24
"""Replicates count in the high 40 bits, draws within a replicate in the low 24."""

PART = 1024
"""Replicates that are drawn together where all of them would need much memory for a moment."""


def stream_key(seed: int, *names: str) -> np.uint64:
    """The 64-bit key of a stream of draws, from the seed and what the draws are for."""
    text = "\x1f".join((str(seed), *names))
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


def parts_of(replicates: int) -> list[range]:
    """The replicates 0 … replicates - 1, a thousand at a time: what a part of them needs of memory is given back."""
    return [range(start, min(start + PART, replicates)) for start in range(0, replicates, PART)]


def hashes(key: np.uint64, replicates: range, draws: range) -> NDArray[np.uint64]:
    """Uniform 64-bit words [len(replicates), len(draws)]: splitmix64 (Steele, Lea & Flood 2014) at a counter."""
    replicate = np.arange(replicates.start, replicates.stop, dtype=np.uint64)
    counter = (replicate[:, None] << np.uint64(DRAW_BITS)) + np.arange(draws.start + 1, draws.stop + 1, dtype=np.uint64)
    z = key + counter * np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX_2)
    return z ^ (z >> np.uint64(31))


def below(words: NDArray[np.uint64], bound: int | NDArray[np.uint64]) -> NDArray[np.int64]:
    """Words as whole numbers 0 … bound - 1: the high half of a 64-bit product, uniform to bound / 2^32."""
    return ((words >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def multiplicities(
    key: np.uint64, replicates: range, episodes: int, draws: int, *, first_draw: int = 0
) -> NDArray[np.float64]:
    """How often each of `episodes` episodes is drawn in `draws` draws with replacement [len(replicates), episodes]."""
    picked = below(hashes(key, replicates, range(first_draw, first_draw + draws)), episodes)
    rows = np.arange(len(replicates))[:, None] * episodes
    counts = np.bincount((picked + rows).ravel(), minlength=len(replicates) * episodes)
    return counts.reshape(len(replicates), episodes).astype(np.float64)


def swap_count(strata: Sequence[NDArray[np.int64]], chosen: NDArray[np.bool_]) -> int:
    """In how many ways the chosen episodes can be chosen again with the same number per stratum."""
    return math.prod(math.comb(len(s), int(chosen[s].sum())) for s in strata)


def all_swaps(strata: Sequence[NDArray[np.int64]], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Every relabelling within strata [swap_count, episodes], the given one included."""
    choices = [np.array(list(itertools.combinations(range(len(s)), int(chosen[s].sum())))) for s in strata]
    sizes = [len(ways) for ways in choices]
    out = np.zeros((math.prod(sizes), len(chosen)), dtype=bool)
    for s, ways, way in zip(strata, choices, np.unravel_index(np.arange(len(out)), sizes), strict=True):
        picked = np.zeros((len(ways), len(s)), dtype=bool)
        picked[np.arange(len(ways))[:, None], ways.astype(np.int64)] = True
        out[:, s] = picked[way]
    return out


def random_swaps(
    key: np.uint64, replicates: range, strata: Sequence[NDArray[np.int64]], counts: Sequence[int], episodes: int
) -> NDArray[np.bool_]:
    """Random choices of `counts[i]` members of `strata[i]` [len(replicates), episodes], each uniform over all of them.

    The first draws of a Fisher–Yates shuffle in every stratum; draw j of a stratum is number j past the members of the
    strata before it.
    """
    out = np.zeros((len(replicates), episodes), dtype=bool)
    starts = np.cumsum([0, *(len(s) for s in strata)])
    row = np.arange(len(replicates))
    for size, count in sorted({(len(s), c) for s, c in zip(strata, counts, strict=True) if c}):
        alike = [i for i, s in enumerate(strata) if (len(s), counts[i]) == (size, count)]
        pool = np.broadcast_to(np.array([strata[i] for i in alike]), (len(row), len(alike), size)).copy()
        words = hashes(key, replicates, range(int(starts[alike[0]]), int(starts[alike[-1]]) + count))
        offset = starts[alike] - starts[alike[0]]
        place = np.arange(len(alike))
        for j in range(count):
            pick = j + below(words[:, offset + j], size - j)
            chosen = pool[row[:, None], place, pick]
            pool[row[:, None], place, pick] = pool[:, :, j]
            out[row[:, None], chosen] = True
    return out


Exchange = tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]
"""Blocks that were drawn together, by name, and every way in which the labels of two arms could have stood in them.

A way has one number per block: 1 where the two arms would have stood in each other's places, 0 where as they did; the
first is all 0. All ways are equally likely and every exchange is independent of the others.
"""
Design = Mapping[tuple[str, str], Sequence[Exchange]]
"""The exchanges of every pair of arms, by name, in alphabetical order."""
FINE = 5
"""The design's relabellings are drawn from where their smallest p, times the pairs of the family, is at most alpha / 5:
too few of them could tell nothing apart, whatever the arms did."""

BY_DESIGN, BY_BLOCK, BY_EPISODE = "schedule", "free within blocks", "free among episodes"


def exchanges_of(
    design: Design | None, a: str, b: str, blocks: Iterable[str], pairs: int, alpha: float
) -> tuple[Exchange, ...]:
    """The exchanges of a pair if its test is to draw from them, cut to the blocks it met; empty where labels are to
    be swapped freely.

    Free: without a design, where a block of the pair is not in it, or where it leaves too few relabellings (`FINE`).
    Nothing here depends on an outcome.
    """
    drawn = list((design or {}).get((min(a, b), max(a, b))) or ())
    met, known = set(blocks), {block for names, _ in drawn for block in names}
    if not drawn or not known.issuperset(met):
        return ()
    found = [_cut(exchange, met) for exchange in drawn if met.intersection(exchange[0])]
    return tuple(found) if smallest_by_design(found) * pairs <= alpha / FINE else ()


def _cut(exchange: Exchange, met: set[str]) -> Exchange:
    """An exchange in those of its blocks that were met; all its ways stay equally likely."""
    names, options = exchange
    kept = [i for i, name in enumerate(names) if name in met]
    cut = [tuple(way[i] for i in kept) for way in options]
    alike = len(set(Counter(cut).values())) == 1
    return tuple(names[i] for i in kept), tuple(dict.fromkeys(cut)) if alike else tuple(cut)


def smallest_by_design(exchanges: Sequence[Exchange]) -> float:
    """The smallest two-sided p: the relabelling that is most extreme and, where it can be drawn, its mirror image."""
    share = math.prod(options.count(options[0]) / len(options) for _, options in exchanges)
    mirror = math.prod(options.count((1,) * len(blocks)) / len(options) for blocks, options in exchanges)
    return min(1.0, share + mirror)


def smallest_attainable(
    exchanges: Sequence[Exchange], strata: Sequence[NDArray[np.int64]], is_a: NDArray[np.bool_]
) -> float:
    """The smallest p that a pair's relabellings can give, all of them listed."""
    if exchanges:
        return smallest_by_design(exchanges)
    return smallest_p([(int(is_a[s].sum()), int((~is_a[s]).sum())) for s in strata])


def ways_of(exchanges: Sequence[Exchange]) -> int:
    """How many relabellings the design has."""
    return math.prod(len(options) for _, options in exchanges)


def design_labels(
    exchanges: Sequence[Exchange],
    blocks: Sequence[str],
    is_a: NDArray[np.bool_],
    key: np.uint64,
    replicates: range | None = None,
) -> NDArray[np.bool_]:
    """Labels [replicates, units] drawn from the design; without `replicates`, every way once, the observed one first.

    `blocks` [units] names the block of every unit.
    """
    if replicates is None:
        sizes = [len(options) for _, options in exchanges]
        picked = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)
    else:
        words = hashes(key, replicates, range(len(exchanges)))
        picked = np.stack([below(words[:, i], len(options)) for i, (_, options) in enumerate(exchanges)], axis=1)
    out = np.broadcast_to(is_a, (len(picked), len(is_a))).copy()
    units: dict[str, list[int]] = {}
    for unit, block in enumerate(blocks):
        units.setdefault(block, []).append(unit)
    for i, (names, options) in enumerate(exchanges):  # each touches its own blocks alone
        own = [(unit, place) for place, name in enumerate(names) for unit in units.get(name, ())]
        moved = np.array([[way[place] for _, place in own] for way in options], dtype=bool)
        out[:, [unit for unit, _ in own]] ^= moved[picked[:, i]]
    return out
