"""What an anytime-valid test costs and keeps: stopping times for stated differences, and its error by swapped labels.

May not: be read as data. Every share here comes from random draws and carries its Monte-Carlo error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from labctl.analysis.blocks.anytime import BETS, check_level
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.errors import QuestionError

_SHARES = (np.arange(BETS) + 0.5) / BETS
_MOST = 1e200  # capital beyond any 1 / alpha


@dataclass(frozen=True)
class Stops(Result):
    """When the test of one pair stops, over `runs` simulated campaigns of at most `most` blocks.

    `stopped` (most,): share of campaigns that have stopped after each block, `errors` (most,) its Monte-Carlo standard
    errors. `blocks`: mean number of blocks run (a campaign that does not stop runs all), with `blocks_error`. `median`:
    blocks after which half have stopped, None where fewer do. `wrong`: share that stopped for the worse arm.
    """

    most: int
    runs: int
    stopped: Floats
    errors: Floats
    blocks: float
    blocks_error: float
    median: int | None
    wrong: float


@dataclass(frozen=True)
class SwapError(Result):
    """Share of `relabellings` of each pair (pairs,) in which the test stops at all, with Monte-Carlo errors (pairs,).

    The labels were swapped in random blocks, so that no arm is better: each stop is an error.
    """

    relabellings: int
    share: Floats
    error: Floats


@dataclass(frozen=True)
class FamilyMonitor(Result):
    """All pairs after each of n blocks: `adjusted` (n, pairs) e-values, and where each first reached 1 / alpha.

    The probability that any pair without a difference is ever stopped for is at most alpha.
    """

    stop_blocks: tuple[int | None, ...]
    adjusted: Floats


def e_values(differences: Floats) -> Floats:
    """Capital against "no difference" after each block; differences (n, ...) along the first axis, nan = missing.

    The mean over both directions and all shares s of prod(1 ± s d), in logarithms, so that it may be inf and not nan.
    """
    with np.errstate(over="ignore"):
        known = np.nan_to_num(np.asarray(differences, dtype=float), nan=0.0)[..., None]
        capital = np.cumsum(np.log1p(known * np.concatenate([_SHARES, -_SHARES])), axis=0)
        return np.exp(logsumexp(capital, axis=-1) - math.log(2 * BETS))


def family_monitor(e: Floats, alpha: float = 0.05) -> FamilyMonitor:
    """Family-wise over pairs, from their `e` (n, pairs) of the same blocks: closed testing with the mean of e-values.

    V. Vovk & R. Wang (Ann. Stat. 49 (2021) 1736, algorithm 1): the mean of any set of e-values of true hypotheses is an
    e-value, however they depend, and the mean of martingales of the same blocks is a martingale, so that the error
    holds at every block at once. At least as large as Bonferroni's e / pairs.
    """
    e = np.minimum(np.asarray(e, dtype=float), _MOST)
    if e.ndim != 2:
        raise QuestionError(f"e-values have {e.ndim} dimensions; a family's are blocks by pairs")
    adjusted = closed_e_values(e)
    hits = np.maximum.accumulate(adjusted, axis=0) >= 1 / alpha if len(e) else adjusted >= 1 / alpha
    return FamilyMonitor(
        tuple((int(np.argmax(hits[:, k])) + 1 if hits[:, k].any() else None) for k in range(e.shape[1])), adjusted
    )


def closed_e_values(e: Floats) -> Floats:
    """Adjusted e-values (..., hypotheses): the least mean of any set that holds the hypothesis.

    For each it is enough to look at itself with the 0, 1, 2 … smallest of the others.
    """
    order = np.argsort(e, axis=-1, kind="stable")
    rising = np.take_along_axis(e, order, axis=-1)
    n = e.shape[-1]
    sums = np.concatenate([np.zeros((*e.shape[:-1], 1)), np.cumsum(rising, axis=-1)], axis=-1)
    found = np.empty_like(rising)
    for k in range(n):
        own = rising[..., k : k + 1]
        sets = (own + sums[..., : k + 1]) / np.arange(1, k + 2)  # itself and the j smallest, all of them below it
        found[..., k] = np.minimum(sets.min(axis=-1), (sums[..., k + 1 :] / np.arange(k + 1, n + 1)).min(axis=-1))
    out = np.empty_like(e)
    np.put_along_axis(out, order, found, axis=-1)
    return out


def stopping_times(
    values: Floats, probabilities: Floats, alpha: float = 0.05, most: int = 300, runs: int = 2000, seed: int = 0
) -> Stops:
    """Stopping times where a block's difference is one of `values` (k,) in [-1, 1] with `probabilities` (k,).

    Success by itself: values -1, 0, 1 with the shares of blocks in which the second arm alone, none or both, or the
    first alone succeeds. Scores: the differences of a pilot, each as likely, or those that an effect is stated by.
    For one of `pairs` pairs that must each hold by itself give alpha / pairs. Raises QuestionError for no distribution.
    """
    check_level(alpha)
    values, probabilities = np.asarray(values, dtype=float), np.asarray(probabilities, dtype=float)
    fits = values.shape == probabilities.shape and values.ndim == 1 and len(values) > 0
    if not fits or probabilities.min() < 0 or not math.isclose(probabilities.sum(), 1.0, abs_tol=1e-9):
        raise QuestionError("a distribution of differences needs values, and as many probabilities that add up to 1")
    if not np.abs(values).max() <= 1:
        raise QuestionError(f"a difference is {values[np.abs(values).argmax()]:g}; allowed is -1 to 1")
    if most < 1 or runs < 1:
        raise QuestionError(f"{most} blocks and {runs} runs cannot be simulated; at least one of each is needed")
    rng = np.random.default_rng(seed)
    capital = np.ones((runs, 2 * BETS))
    factors = _factors(values)
    stop, favours, left = np.full(runs, most + 1), np.zeros(runs), np.arange(runs)
    for block in range(most):
        drawn = rng.choice(len(values), size=runs, p=probabilities)[left]
        capital *= factors[drawn]
        over = capital.mean(axis=1) >= 1 / alpha
        if over.any():
            stop[left[over]] = block + 1
            favours[left[over]] = np.sign(capital[over, :BETS].sum(axis=1) - capital[over, BETS:].sum(axis=1))
            left, capital = left[~over], capital[~over]
        if not len(left):
            break
    share = np.array([(stop <= block + 1).mean() for block in range(most)])
    run = np.minimum(stop, most)
    median = int(np.searchsorted(share, 0.5)) + 1 if share[-1] >= 0.5 else None
    wrong = float((favours == -np.sign(values @ probabilities)).mean()) if abs(values @ probabilities) > 1e-12 else 0.0
    return Stops(
        most,
        runs,
        share,
        np.array([share_error(one, runs) for one in share]),
        float(run.mean()),
        float(run.std() / math.sqrt(runs)),
        median,
        wrong,
    )


def swap_error(differences: Floats, alpha: float = 0.05, relabellings: int = 2000, seed: int = 0) -> SwapError:
    """The test's error within real blocks: `differences` (blocks, pairs) in order, nan = missing, signs at random.

    Swapping the labels of a block changes the sign of its difference; the test sees each relabelled campaign from its
    first block to its last.
    """
    check_level(alpha)
    d = np.nan_to_num(np.asarray(differences, dtype=float), nan=0.0)
    if d.ndim != 2:
        raise QuestionError(f"differences have {d.ndim} dimensions; blocks by pairs are needed")
    rng = np.random.default_rng(seed)
    share = np.zeros(d.shape[1])
    for pair in range(d.shape[1]):
        own = d[d[:, pair] != 0, pair]
        factors = _factors(np.stack([own, -own], axis=1))
        capital, stopped = np.ones((relabellings, 2 * BETS)), 0
        for both in factors:
            capital *= both[rng.integers(0, 2, size=len(capital))]
            over = capital.mean(axis=1) >= 1 / alpha
            if over.any():
                stopped += int(over.sum())
                capital = capital[~over]
            if not len(capital):
                break
        share[pair] = stopped / relabellings
    return SwapError(relabellings, share, np.array([share_error(one, relabellings) for one in share]))


def _factors(values: Floats) -> Floats:
    """What each bet's capital is multiplied by at each difference, (..., 2 BETS): on the first arm, then the second."""
    return 1 + values[..., None] * np.concatenate([_SHARES, -_SHARES])
