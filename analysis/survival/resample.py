"""Random replicates as a pure function of (seed, names, replicate, draw): order and threads cannot change them.

May not: hold a generator or any state; handles episodes only as numbers. `kernel_compiled.py` repeats these draws bit
for bit.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
DRAW_BITS = 24
"""Replicates count in the high 40 bits, draws within a replicate in the low 24."""


def stream_key(seed: int, *names: str) -> np.uint64:
    """The 64-bit key of a stream of draws, from the seed and what the draws are for."""
    text = "\x1f".join((str(seed), *names))
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


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
    choices = [list(itertools.combinations(s.tolist(), int(chosen[s].sum()))) for s in strata]
    out = np.zeros((math.prod(map(len, choices)), len(chosen)), dtype=bool)
    for row, picks in enumerate(itertools.product(*choices)):
        out[row, [i for pick in picks for i in pick]] = True
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
