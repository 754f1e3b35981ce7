"""Exchanging two arms' labels within units: the two-sided permutation p of a sum of paired differences.

May not: know what is compared. Dividing by the standard error would change nothing: the sum of squares is the same
under every exchange.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.resample import hashes, stream_key

FINEST = 10_000
"""Steps per unit on which differences may lie for their law to be listed."""
MOST_STEPS = 100_000_000
"""Of work on that law; about a second."""
TIE = 1e-9
CHUNK = 1000


def sign_flip_p(differences: Floats, seed: int, perm: int, name: str) -> float | None:
    """P(|sum of ±d| >= |sum of d|), every sign with probability one half; None without a difference [units].

    Exact wherever the differences lie on a lattice (points of a rubric, shares of stages, yes or no): the law of the
    sum is convolved step by step. Else (b + 1) / (B + 1) over `perm` random exchanges, ties within 1e-9 relative.
    """
    known = differences[np.isfinite(differences)]
    if not len(known):
        return None
    moved = known[np.abs(known) > TIE]
    if not len(moved):
        return 1.0
    steps = _lattice(moved)
    if steps is not None and len(steps) * int(np.abs(steps).sum()) <= MOST_STEPS:
        return _exact(steps)
    return _random(moved, seed, perm, name)


def _lattice(values: Floats) -> np.ndarray | None:
    """The differences as whole numbers of one step, None where there is no step of 1 / FINEST or more."""
    step = 1
    for value in np.unique(np.abs(values)).tolist():
        near = Fraction(value).limit_denominator(FINEST)
        if abs(float(near) - value) > TIE:
            return None
        step = math.lcm(step, near.denominator)
        if step > FINEST:
            return None
    whole = np.rint(values * step).astype(np.int64)
    return whole // math.gcd(*whole.tolist())


def _exact(steps: np.ndarray) -> float:
    total = int(np.abs(steps).sum())
    law = np.zeros(2 * total + 1)
    law[total] = 1.0
    reach = 0
    for step in np.sort(np.abs(steps)).tolist():
        here = slice(total - reach, total + reach + 1)
        now = law[here].copy() / 2
        law[here] = 0.0
        law[total - reach + step : total + reach + step + 1] += now
        law[total - reach - step : total + reach - step + 1] += now
        reach += step
    seen = abs(int(steps.sum()))
    if seen == 0:
        return 1.0
    return min(1.0, float(law[: total - seen + 1].sum() + law[total + seen :].sum()))


def _random(moved: Floats, seed: int, perm: int, name: str) -> float:
    key = stream_key(seed, "flip", name)
    least = abs(float(moved.sum())) * (1 - TIE)
    as_far = 1
    for start in range(0, perm, CHUNK):
        words = hashes(key, range(start, min(start + CHUNK, perm)), range(len(moved)))
        signs = np.where(words >> np.uint64(63), 1.0, -1.0)
        as_far += int((np.abs(np.einsum("ru,u->r", signs, moved)) >= least).sum())
    return as_far / (perm + 1)
