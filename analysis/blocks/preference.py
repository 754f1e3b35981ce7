"""Which of two episodes was better: strengths with ties and an effect of order, and whether preference goes with score.

May not: read a table, or give a number where the comparisons leave a strength without bound: words say so.

R. R. Davidson (J. Am. Stat. Assoc. 65 (1970) 317) for ties, R. R. Davidson & R. J. Beaver (Biometrics 33 (1977) 693)
for order: the first is preferred, the second, and neither as p_i : g p_j : v sqrt(p_i p_j). A linear model of the
logarithms, so that its likelihood has one maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import LEVEL, Interval, percentile
from labctl.errors import QuestionError

FIRST, TIE, SECOND = 1, 0, -1
"""What was said of a comparison: the episode that ran first was better, neither, the second."""
_ORDER = (FIRST, SECOND, TIE)
_TINY = 1e-6  # weight of a penalty on the squares of all parameters: holds what has no bound at some finite place
_STEPS = 60


@dataclass(frozen=True)
class Strength(Result):
    """An arm's worth p, the worths of all compared arms adding up to 1. None for no comparison.

    `ci` is None where the comparisons leave the worths without bound.
    """

    arm: str
    strength: float | None
    ci: Interval | None


@dataclass(frozen=True)
class Davidson(Result):
    """Strengths of arms, best first. `tie_parameter` v: two equal arms tie with probability v / (2 + v) without an
    order effect. `order_effect` g: odds of the second over the first among equal arms, 1 = none. Intervals by drawing
    blocks anew. `words` say what has no bound and why.
    """

    first: int
    second: int
    tie: int
    davidson: tuple[Strength, ...]
    tie_parameter: float
    tie_ci: Interval | None
    order_effect: float
    order_ci: Interval | None
    words: tuple[str, ...]


def davidson(
    arms: Sequence[str],
    first: Ints,
    second: Ints,
    verdicts: Ints,
    blocks: Ints | None = None,
    boot: int = 1999,
    seed: int = 0,
    level: float = LEVEL,
) -> Davidson:
    """Maximum likelihood over comparisons: `first`, `second` (n,) are places in `arms`, `verdicts` (n,) FIRST, TIE or
    SECOND.

    `blocks` (n,) name the block of each comparison, a block of its own where not given; percentile intervals over
    `boot` draws of whole blocks. Raises QuestionError for no comparison, or one of an arm with itself.
    """
    first, second, verdicts = (np.asarray(x, dtype=np.int64) for x in (first, second, verdicts))
    n = len(verdicts)
    if not n or (first == second).any() or not np.isin(verdicts, _ORDER).all():
        raise QuestionError("a preference needs comparisons of two different arms, each first, second or a tie")
    k = len(arms)
    cells, cell = np.unique(first * k + second, return_inverse=True)
    column = np.select([verdicts == FIRST, verdicts == SECOND], [0, 1], 2)
    _, block = np.unique(np.arange(n) if blocks is None else np.asarray(blocks), return_inverse=True)
    of_block = np.zeros((int(block.max()) + 1, len(cells) * 3))
    np.add.at(of_block, (block, cell * 3 + column), 1.0)
    design = _design(cells // k, cells % k, k)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(of_block), np.full(len(of_block), 1 / len(of_block)), size=boot).astype(float)
    counts = np.concatenate([of_block.sum(axis=0)[None, :], drawn @ of_block]).reshape(boot + 1, len(cells), 3)
    found = _fit(counts, design)
    met = np.isin(np.arange(k), np.r_[first, second])
    worth = np.where(met, np.exp(found[:, :k] - found[:, :k][:, met].max(axis=1)[:, None]), 0.0)
    worth /= worth.sum(axis=1)[:, None]
    words, bounded = _without_bound(arms, met, first, second, verdicts)
    tied, ordered = bool((verdicts == TIE).any()), len({int(x) for x in verdicts} - {TIE}) > 1
    strengths = [
        Strength(
            arm,
            float(worth[0, i]) if met[i] else None,
            percentile(worth[1:, i], level) if met[i] and bounded else None,
        )
        for i, arm in enumerate(arms)
    ]
    ties, order = np.exp(found[:, k]), np.exp(found[:, k + 1])
    return Davidson(
        int((verdicts == FIRST).sum()),
        int((verdicts == SECOND).sum()),
        int((verdicts == TIE).sum()),
        tuple(sorted(strengths, key=lambda s: -(s.strength if s.strength is not None else -1.0))),
        float(ties[0]) if tied else 0.0,
        percentile(ties[1:], level) if tied else None,
        float(order[0]),
        percentile(order[1:], level) if ordered and bounded else None,
        words,
    )


def agreement(verdicts: Ints, first_score: Floats, second_score: Floats) -> float | None:
    """Preference against score: of the comparisons with a preference and unequal scores the share that prefers the
    higher score, None without one. `verdicts` (n,) as in `davidson`, scores (n,) of the two episodes; nan is left out.
    """
    better = np.sign(first_score - second_score)
    decided = (verdicts != TIE) & (np.abs(better) == 1)
    return int((verdicts == better)[decided].sum()) / int(decided.sum()) if decided.any() else None


def _design(i: Ints, j: Ints, k: int) -> Floats:
    """Logarithms of the three weights of each cell as a linear map of (log worths, log v, log g): (cells, 3, k + 2)."""
    cells = np.arange(len(i))
    design = np.zeros((len(i), 3, k + 2))
    design[cells, 0, i] = design[cells, 1, j] = 1.0
    design[cells, 1, k + 1] = design[cells, 2, k] = 1.0
    design[cells, 2, i] = design[cells, 2, j] = 0.5
    return design


def _fit(counts: Floats, design: Floats) -> Floats:
    """Newton's method for every replicate at once: counts (B, cells, 3), design (cells, 3, p), found (B, p).

    The step is halved where it would lower the likelihood; the tiny penalty makes every Hessian regular.
    """
    size, p = len(counts), design.shape[2]
    found, n = np.zeros((size, p)), counts.sum(axis=2)
    active = np.arange(size)
    value = _likelihood(found, counts, design)
    for _ in range(_STEPS):
        own, c = found[active], counts[active]
        shares = _shares(own, design)
        expected = n[active][:, :, None] * shares
        gradient = np.einsum("bcx,cxp->bp", c - expected, design) - _TINY * own
        centred = design[None] - np.einsum("bcx,cxp->bcp", shares, design)[:, :, None, :]
        weighted = (expected[..., None] * centred).reshape(len(active), -1, p)
        hessian = weighted.transpose(0, 2, 1) @ centred.reshape(len(active), -1, p) + _TINY * np.eye(p)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        step *= np.minimum(1.0, 3.0 / np.abs(step).max(axis=1))[:, None]
        better = _likelihood(own + step, c, design)
        for _ in range(30):
            worse = better < value[active] - 1e-9 * np.abs(value[active])
            if not worse.any():
                break
            step[worse] /= 2
            better[worse] = _likelihood(own[worse] + step[worse], c[worse], design)
        found[active], value[active] = own + step, better
        active = active[np.abs(step).max(axis=1) > 1e-9]
        if not len(active):
            break
    return found


def _shares(found: Floats, design: Floats) -> Floats:
    logs = np.einsum("cxp,bp->bcx", design, found)
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)


def _likelihood(found: Floats, counts: Floats, design: Floats) -> Floats:
    logs = np.einsum("cxp,bp->bcx", design, found)
    most = logs.max(axis=2, keepdims=True)
    shares = logs - most - np.log(np.exp(logs - most).sum(axis=2, keepdims=True))
    return (counts * shares).sum(axis=(1, 2)) - _TINY / 2 * (found**2).sum(axis=1)


def _without_bound(
    arms: Sequence[str], met: np.ndarray, first: Ints, second: Ints, verdicts: Ints
) -> tuple[tuple[str, ...], bool]:
    """What has no bound, in words, and whether the strengths have: each arm must be linked to each other by a chain of
    "at least as good as" in both directions (L. R. Ford, Am. Math. Mon. 64 (1957) 28; a tie links both ways).
    """
    k, words = len(arms), [f"{arms[i]} was never compared" for i in np.flatnonzero(~met).tolist()]
    at_least = np.zeros((k, k), dtype=bool)
    at_least[first[verdicts != SECOND], second[verdicts != SECOND]] = True
    at_least[second[verdicts != FIRST], first[verdicts != FIRST]] = True
    count, group = connected_components(at_least, directed=True, connection="strong")
    pieces, _ = connected_components(at_least, directed=False)
    bounded = bool(len(set(group[met])) == 1)
    if not bounded:
        for i in np.flatnonzero(met).tolist():
            never_lost, never_won = not at_least[:, i].any(), not at_least[i].any()
            if never_lost or never_won:
                what = "lost nor tied: its strength has no upper" if never_lost else "won nor tied: it has no lower"
                words.append(f"{arms[i]} never {what} bound")
        together = [" and ".join(arms[i] for i in np.flatnonzero((group == g) & met).tolist()) for g in range(count)]
        named = "; ".join(name for name in together if name)
        apart = "no comparison links" if pieces - int((~met).sum()) > 1 else "all comparisons between"
        rest = "" if apart.startswith("no") else " went one way, so that their strengths are apart without bound"
        words.append(f"{apart} these groups{rest}: {named}")
    if not (verdicts == TIE).any():
        words.append("nobody said that two were level: the tie parameter is 0 and has no interval")
    if len({int(x) for x in verdicts} - {TIE}) < 2:
        words.append("one side was preferred each time: the effect of order has no bound")
    return tuple(words), bounded
