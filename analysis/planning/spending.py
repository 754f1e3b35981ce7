"""Group-sequential looks: alpha spent by an O'Brien–Fleming-type function, boundaries by recursive integration.

May not: offer any other rule, or a look that was not planned; peeking outside the plan is a recorded deviation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from labctl.analysis.survival.curves import Floats
from labctl.errors import QuestionError

NODES = 400
"""Gauss–Legendre nodes per look: boundaries then agree with closed forms and with R's ldbounds to 1e-4 and better."""
FURTHEST = 9.0
"""Standard deviations beyond which the density is left out (below 1e-18)."""


@dataclass(frozen=True)
class Look:
    """One planned look: after `blocks` complete blocks; a p-value at or below `level` (two-sided) stops the campaign.

    `information` is the share of the planned blocks, `z` the boundary, `spent` the alpha spent up to here.
    """

    number: int
    blocks: int
    information: float
    z: float
    level: float
    spent: float


def spent(information: float, alpha: float) -> float:
    """Two-sided alpha spent at an information fraction, 4 (1 - Phi(z_{1 - alpha/4} / sqrt t)).

    Lan & DeMets, Biometrika 70 (1983) 659: alpha/2 on either side, each by the function that resembles the boundaries
    of O'Brien and Fleming.
    """
    return 4.0 * float(stats.norm.sf(stats.norm.isf(alpha / 4) / math.sqrt(information)))


def check_fractions(fractions: Sequence[float]) -> None:
    """Raise QuestionError unless the fractions rise strictly from above 0 to exactly 1."""
    rising = all(a < b for a, b in zip((0.0, *fractions), fractions, strict=False))
    if not fractions or not rising or fractions[-1] != 1.0:
        listed = ", ".join(f"{f:g}" for f in fractions)
        raise QuestionError(f"looks at {listed or 'nothing'}; allowed are rising fractions above 0 that end with 1")


def boundaries(fractions: Sequence[float], alpha: float) -> tuple[float, ...]:
    """|Z| at or beyond which each look stops, for statistics with independent increments.

    C. Jennison & B. W. Turnbull, Group Sequential Methods (2000), ch. 19: the density of what went on is carried from
    look to look, and each boundary spends exactly what the function allows. Raises QuestionError.
    """
    check_fractions(fractions)
    found: list[float] = []
    so_far = 0.0
    density: _Density | None = None
    for at, before in zip(fractions, (0.0, *fractions), strict=False):
        allowed = spent(at, alpha)
        found.append(_boundary(density, at - before, at, allowed - so_far))
        density, so_far = _carried(density, at - before, found[-1] * math.sqrt(at)), allowed
    return tuple(found)


def looks(after: Sequence[int], alpha: float) -> tuple[Look, ...]:
    """The looks of a campaign after these numbers of complete blocks, the last being all of them.

    The information fraction of a look is its share of the blocks, so the levels are those of the looks as they are
    taken. Raises QuestionError unless the counts rise.
    """
    shares = [blocks / after[-1] for blocks in after]
    bounds = boundaries(shares, alpha)
    return tuple(
        Look(i + 1, blocks, share, z, 2.0 * float(stats.norm.sf(z)), spent(share, alpha))
        for i, (blocks, share, z) in enumerate(zip(after, shares, bounds, strict=True))
    )


def standing(planned: Sequence[Look], complete: int) -> tuple[float, str]:
    """The level to judge by after `complete` blocks, and the sentence a report must carry.

    What was not a planned look is held to the strictest level of the plan, and the sentence states it.
    """
    look = next((look for look in planned if look.blocks == complete), None)
    total = planned[-1].blocks
    if look is not None:
        place = f"look {look.number} of {len(planned)}, after {complete} of {total} blocks"
        return look.level, f"{place}: by the plan's alpha spending a p-value counts at or below {look.level:.3g}"
    after = ", ".join(str(each.blocks) for each in planned)
    strictest = min(each.level for each in planned)
    found = f"not a planned look: {complete} of {total} blocks are complete, looks were planned after {after}"
    return strictest, f"{found}; p-values are held to the strictest planned level, {strictest:.3g}"


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(NODES)


@dataclass(frozen=True)
class _Density:
    """Sub-density of the score process among those that went on, at Gauss–Legendre nodes with their weights."""

    nodes: Floats
    mass: Floats


def _carried(density: _Density | None, step: float, bound: float) -> _Density:
    """The density one look later, inside (-bound, bound)."""
    reach = min(bound, FURTHEST * math.sqrt(step) + (0.0 if density is None else float(np.abs(density.nodes).max())))
    x, w = _quadrature()
    nodes = x * reach
    start, mass = (np.zeros(1), np.ones(1)) if density is None else (density.nodes, density.mass)
    kernel = np.exp(-((nodes[:, None] - start[None, :]) ** 2) / (2 * step))
    return _Density(nodes, (kernel @ mass) * w * (nodes[-1] / x[-1]) / math.sqrt(2 * math.pi * step))


def _crossed(density: _Density | None, step: float, bound: float) -> float:
    """The probability of reaching the bound, either side, one look later."""
    start, mass = (np.zeros(1), np.ones(1)) if density is None else (density.nodes, density.mass)
    spread = math.sqrt(step)
    beyond = special.ndtr((start - bound) / spread) + special.ndtr((-bound - start) / spread)
    return float(beyond @ mass)


def _boundary(density: _Density | None, step: float, at: float, allowed: float) -> float:
    """The boundary in |Z| that spends `allowed` at this look."""

    def over(z: float) -> float:
        crossed = _crossed(density, step, z * math.sqrt(at))
        return math.log(max(crossed, 1e-300) / allowed)

    highest = float(stats.norm.isf(allowed / 2))  # alone, without looks before it, it would need no more than this
    if density is None or over(highest) >= 0.0:
        return highest
    return float(optimize.root_scalar(over, bracket=(0.0, highest), xtol=1e-12).root)
