"""Random replicates as a pure function of (seed, names, replicate, draw): order and threads cannot change them.

Holds no generator and no state; knows episodes only as numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_DRAW_BITS = np.uint64(24)
"""Replicates count in the high 40 bits, draws within a replicate in the low 24."""


def stream_key(seed: int, *names: str) -> np.uint64:
    """The 64-bit key of a stream of draws, from the seed and what the draws are for."""
    text = "\x1f".join((str(seed), *names))
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


def hashes(key: np.uint64, replicates: range, draws: int) -> NDArray[np.uint64]:
    """Uniform 64-bit words [len(replicates), draws]: splitmix64 (Steele, Lea & Flood 2014) at a counter."""
    replicate = np.arange(replicates.start, replicates.stop, dtype=np.uint64)
    counter = (replicate[:, None] << _DRAW_BITS) + np.arange(1, draws + 1, dtype=np.uint64)
    z = key + counter * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def multiplicities(key: np.uint64, replicates: range, episodes: int, draws: int) -> NDArray[np.float64]:
    """How often each of `episodes` episodes is drawn in `draws` draws with replacement [len(replicates), episodes]."""
    picked = (hashes(key, replicates, draws) >> np.uint64(32)) * np.uint64(episodes) >> np.uint64(32)
    rows = np.arange(len(replicates))[:, None] * episodes
    counts = np.bincount((picked.astype(np.int64) + rows).ravel(), minlength=len(replicates) * episodes)
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
    key: np.uint64, replicates: range, strata: Sequence[NDArray[np.int64]], chosen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Random relabellings within strata [len(replicates), episodes], each uniform over all of them."""
    words = hashes(key, replicates, len(chosen))
    out = np.zeros(words.shape, dtype=bool)
    shapes = sorted({(len(s), int(chosen[s].sum())) for s in strata})
    for size, count in shapes:
        alike = np.array([s for s in strata if len(s) == size and int(chosen[s].sum()) == count])
        order = np.argsort(words[:, alike], axis=-1, kind="stable")
        picked = np.take_along_axis(np.broadcast_to(alike, order.shape), order[..., :count], axis=-1)
        np.put_along_axis(out, picked.reshape(len(out), -1), True, axis=1)
    return out
