"""Anytime-valid monitoring of paired scores in [-1, 1]: look after every block, stop when you like, the error is kept.

May not: read a table, or forget a look: what has once been excluded stays excluded.

Testing by betting (I. Waudby-Smith & A. Ramdas, J. R. Stat. Soc. B 86 (2024) 1, section 4). Somebody bets against "the
mean difference is m" with a share of their capital in every block; under m the capital is a martingale that starts at
1, and reaches 1 / alpha with probability at most alpha, ever (Ville). The bets are a fixed mixture: capital is spread
evenly over `BETS` constant shares and both directions, and never moved. That is Cover's universal portfolio (T. Cover,
Math. Finance 1 (1991) 1; for means: F. Orabona & K.-S. Jun, IEEE Trans. Inf. Theory 70 (2024) 436), and has no constant
to tune, does not depend on the order of the blocks looked at so far, and excludes a set of m whose rest is an interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.errors import QuestionError

BETS = 32
"""Constant shares in each direction, at the middles of as many equal parts of (0, 1)."""
STEP = 0.01
"""Distance of the means that are tried; ends in between are found to the outside."""
_SHARES = (np.arange(BETS) + 0.5) / BETS


@dataclass(frozen=True)
class Monitor(Result):
    """One pair of arms after each of n blocks.

    `stop_block`: number of blocks, in order, after which the test would have stopped, None if never. `e_value` (n,):
    the capital against "no difference"; a stop is where it first reaches 1 / alpha. `low`, `high` (n,): confidence
    sequence of the mean difference, a score's unit; 0 is outside from the stop on. Both are nan from the block on after
    which no one mean fits all blocks (probability at most alpha, or the mean changed on the way).
    """

    stop_block: int | None
    e_value: Floats
    low: Floats
    high: Floats


def paired_monitor(differences: Floats, alpha: float = 0.05) -> Monitor:
    """Monitor of one pair; `differences` (n,) are first minus second arm in block order, in [-1, 1], nan = one missing.

    A block without a difference changes nothing and is counted. Valid where, given the blocks before, the expected
    difference is 0 (test) or one and the same m (sequence); for the test it is enough that labels within a block may be
    swapped. Stopping for the worse arm has probability at most alpha too. Raises QuestionError for a difference outside
    [-1, 1] and for what is no level.
    """
    d = _checked(differences, alpha)
    if d.ndim != 1:
        raise QuestionError(f"differences have {d.ndim} dimensions; one pair's are one number per block")
    for_first, for_second = _log_mean(_log_capital(d).reshape(len(d), 2, BETS)).T
    with np.errstate(over="ignore"):
        e = np.exp(np.logaddexp(for_first, for_second)) / 2
    reached = np.flatnonzero(e >= 1 / alpha)
    stop = int(reached[0]) + 1 if len(reached) else None
    return Monitor(stop, e, *_sequence(d, alpha))


def _log_capital(d: Floats) -> Floats:
    """Logarithm of what each bet has made after each block, (n, ..., 2 BETS): on the first arm, then the second."""
    known = np.nan_to_num(d, nan=0.0)[..., None]
    return np.cumsum(np.log1p(known * np.concatenate([_SHARES, -_SHARES])), axis=0)


def _sequence(d: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Confidence sequence, intersected over blocks (n,), (n,).

    In x = (1 + d) / 2 and mu = (1 + m) / 2 the capital of a share s is prod(1 - s + s x / mu) for "the mean is above"
    and prod(1 - s + s (1 - x) / (1 - mu)) for "below". The logarithm of each is convex in mu, and so is that of their
    mean, so that what is not excluded is an interval, and a line through two excluded means crosses outside of it.
    """
    tried: Floats = np.arange(1.0, round(2 / STEP)) * STEP - 1.0
    tried[len(tried) // 2] = 0.0
    mu = (1 + tried[:, None]) / 2
    log_capital = np.zeros((len(tried), 2 * BETS))
    low, high = np.full(len(d), -1.0), np.full(len(d), 1.0)
    for i, x in enumerate((1 + d) / 2):
        if not np.isnan(x):
            above = np.log1p(_SHARES * (x / mu - 1))
            below = np.log1p(_SHARES * ((1 - x) / (1 - mu) - 1))
            log_capital += np.concatenate([above, below], axis=1)
        ends, kept = _ends(tried, _log_mean(log_capital) - np.log(1 / alpha))
        low[i], high[i] = ends or (1.0, -1.0)
        tried, mu, log_capital = tried[kept], mu[kept], log_capital[kept]
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high)
    empty = low > high
    low[empty], high[empty] = np.nan, np.nan
    return low, high


def _ends(tried: Floats, over: Floats) -> tuple[tuple[float, float] | None, slice]:
    """Ends, from outside, of where a convex function with these values is negative, and which of them are still needed.

    None where it is not, for sure. What is beyond the values tried may be negative.
    """
    inside = np.flatnonzero(over < 0)
    if len(inside):
        first, last = int(inside[0]), int(inside[-1])
        ends = _crossing(tried, over, first - 1, 1), _crossing(tried, over, last + 1, -1)
        return ends, slice(max(0, first - 2), last + 3)
    least = int(over.argmin())  # negative at most between it and a neighbour
    cells = [(_crossing(tried, over, at, 1), _crossing(tried, over, at + 1, -1)) for at in (least - 1, least)]
    found = [cell for cell in cells if cell[0] < cell[1]]
    kept = slice(max(0, least - 2), least + 3)
    return ((min(c[0] for c in found), max(c[1] for c in found)) if found else None), kept


def _crossing(tried: Floats, over: Floats, at: int, way: int) -> float:
    """Where the line through an excluded mean, the `at`-th, and its neighbour further out crosses 0, going `way`: there
    or further on the function itself does.
    """
    if not 0 <= at < len(tried):
        return -1.0 * way
    if not 0 <= at - way < len(tried):
        return float(tried[at])
    slope = (over[at - way] - over[at]) / STEP
    return float(tried[at] + way * over[at] / slope) if slope > 0 else float(tried[at])


def _log_mean(log_capital: Floats) -> Floats:
    """Logarithm of the mean over the last axis."""
    most = log_capital.max(axis=-1)
    return most + np.log(np.exp(log_capital - most[..., None]).mean(axis=-1))


def _checked(differences: Floats, alpha: float) -> Floats:
    d = np.asarray(differences, dtype=float)
    check_level(alpha)
    known = d[~np.isnan(d)]
    if len(known) and not np.abs(known).max() <= 1 + 1e-12:
        raise QuestionError(
            f"a difference is {known[np.abs(known).argmax()]:g}; allowed is -1 to 1: scores from 0 to 1"
        )
    return np.clip(d, -1.0, 1.0)


def check_level(alpha: float) -> None:
    """Raise QuestionError unless alpha is between 0 and 1."""
    if not 0 < alpha < 1:
        raise QuestionError(f"alpha is {alpha:g}; allowed is more than 0 and less than 1")
