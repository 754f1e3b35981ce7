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

from labctl.analysis.blocks.preference_bounds import Directions, ends_of_replicates, interval, of_logarithms
from labctl.analysis.numerals import listing
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.errors import QuestionError

FIRST, TIE, SECOND = 1, 0, -1
"""What was said of a comparison: the episode that ran first was better, neither, the second."""
_ORDER = (FIRST, SECOND, TIE)
_TINY = 1e-6  # weight of a penalty on the squares of all parameters: holds what has no bound at some finite place
_STEPS = 60


@dataclass(frozen=True)
class Strength(Result):
    """An arm's worth p, the worths of all compared arms adding up to 1. None for no comparison, and where the
    comparisons leave the worths without bound.
    """

    arm: str
    strength: float | None
    ci: Interval | None


@dataclass(frozen=True)
class Davidson(Result):
    """Strengths of arms, best first. `tie_parameter` v: two equal arms tie with probability v / (2 + v) without an
    order effect. `order_effect` g: odds of the second over the first among equal arms, 1 = none. Intervals by drawing
    blocks anew; None for what has no bound, and `words` say why.
    """

    first: int
    second: int
    tie: int
    davidson: tuple[Strength, ...]
    tie_parameter: float | None
    tie_ci: Interval | None
    order_effect: float | None
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
    low, high = ends_of_replicates(found[1:], _information(found, counts, design)[1:], worth[1:])
    known = _known(arms, met, first, second, verdicts, Directions(design, counts[0] > 0))
    tied = bool((verdicts == TIE).any())
    order_ci = of_logarithms(low[:, k + 1], high[:, k + 1], level) if known.order else None
    words = list(known.words)
    if known.order and order_ci is None:
        words.append("the effect of order has no interval: in too many draws of the blocks it has no bound")
    strengths = [
        Strength(
            arm,
            float(worth[0, i]) if met[i] and known.strengths else None,
            interval(low[:, i], high[:, i], level) if met[i] and known.strengths else None,
        )
        for i, arm in enumerate(arms)
    ]
    best = sorted(range(k), key=lambda i: (not met[i], -round(float(worth[0, i]), 9), i))
    return Davidson(
        int((verdicts == FIRST).sum()),
        int((verdicts == SECOND).sum()),
        int((verdicts == TIE).sum()),
        tuple(strengths[i] for i in best),
        (float(np.exp(found[0, k])) if known.ties else None) if tied else 0.0,
        of_logarithms(low[:, k], high[:, k], level) if tied and known.ties else None,
        float(np.exp(found[0, k + 1])) if known.order else None,
        order_ci,
        tuple(words),
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
        hessian = _information(own, c, design) + _TINY * np.eye(p)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        step *= (3.0 / np.maximum(3.0, np.abs(step).max(axis=1)))[:, None]
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


def _information(found: Floats, counts: Floats, design: Floats) -> Floats:
    """Minus the second derivatives of the likelihood, without the penalty (B, p, p)."""
    shares = _shares(found, design)
    expected = counts.sum(axis=2)[:, :, None] * shares
    centred = design[None] - np.einsum("bcx,cxp->bcp", shares, design)[:, :, None, :]
    flat = (len(found), -1, design.shape[2])
    return (expected[..., None] * centred).reshape(flat).transpose(0, 2, 1) @ centred.reshape(flat)


def _shares(found: Floats, design: Floats) -> Floats:
    logs = np.einsum("cxp,bp->bcx", design, found)
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)


def _likelihood(found: Floats, counts: Floats, design: Floats) -> Floats:
    logs = np.einsum("cxp,bp->bcx", design, found)
    most = logs.max(axis=2, keepdims=True)
    shares = logs - most - np.log(np.exp(logs - most).sum(axis=2, keepdims=True))
    return (counts * shares).sum(axis=(1, 2)) - _TINY / 2 * (found**2).sum(axis=1)


@dataclass(frozen=True)
class _Known:
    """Which of strengths, ties and order have a bound, and in words why others have none."""

    strengths: bool
    ties: bool
    order: bool
    words: tuple[str, ...]


def _known(
    arms: Sequence[str], met: np.ndarray, first: Ints, second: Ints, verdicts: Ints, directions: Directions
) -> _Known:
    """What has a bound: of a model with a parameter of ties it is not enough that a chain of "at least as good as"
    links each arm to each other, as where an arm was preferred or tied, but never beaten.
    """
    k, words = len(arms), [f"{arms[i]} was never compared" for i in np.flatnonzero(~met).tolist()]
    decided = {int(x) for x in verdicts} - {TIE}
    tied = bool((verdicts == TIE).any())
    if not decided:
        words.append("nobody preferred one of two: strengths and the effect of order are unknown")
        return _Known(False, False, False, tuple(words))
    groups = directions.groups(np.flatnonzero(met).tolist(), k + 2)
    ties, order = (directions.moves(np.eye(k + 2)[place]) for place in (k, k + 1))
    apart = _apart(arms, met, first, second, verdicts)
    words += apart
    without: list[str] = []
    if len(groups) > 1 and not apart:
        names = "; ".join(listing([arms[i] for i in group]) for group in groups)
        without.append(f"how far these are apart in strength ({names})")
    if not tied:
        words.append("nobody said that two were level: the tie parameter is 0 and has no interval")
    elif any(ties):
        without.append("the tie parameter")
    if len(decided) < 2:
        words.append("one side was preferred each time: the effect of order has no bound")
    elif any(order):
        without.append("the effect of order")
    if without:
        few = "too few preferences beside the ties leave" if tied else "the comparisons leave"
        if len(without) > 1 and (True, True) in (ties, order):
            words.append(f"the comparisons do not tell from each other {listing(without)}")
        else:
            words.append(f"{few} without bound {listing(without)}")
    return _Known(len(groups) == 1, not any(ties), order == (False, False), tuple(words))


def _apart(arms: Sequence[str], met: np.ndarray, first: Ints, second: Ints, verdicts: Ints) -> list[str]:
    """In words, which arms no chain of "at least as good as" links to each other in both directions (L. R. Ford, Am.
    Math. Mon. 64 (1957) 28; a tie links both ways): what bounds strengths without ties and order.
    """
    k, words = len(arms), list[str]()
    at_least = np.zeros((k, k), dtype=bool)
    at_least[first[verdicts != SECOND], second[verdicts != SECOND]] = True
    at_least[second[verdicts != FIRST], first[verdicts != FIRST]] = True
    count, group = connected_components(at_least, directed=True, connection="strong")
    pieces, piece = connected_components(at_least, directed=False)
    if len(set(group[met])) == 1:
        return words
    for i in np.flatnonzero(met).tolist():
        never_lost, never_won = not at_least[:, i].any(), not at_least[i].any()
        if never_lost or never_won:
            what = "lost nor tied: its strength has no upper" if never_lost else "won nor tied: it has no lower"
            words.append(f"{arms[i]} never {what} bound")

    def named(member: np.ndarray, of: int) -> list[str]:
        together = (" and ".join(arms[i] for i in np.flatnonzero((member == n) & met).tolist()) for n in range(of))
        return [name for name in together if name]

    if len(unlinked := named(piece, pieces)) > 1:
        words.append(f"no comparison links these groups: {'; '.join(unlinked)}")
    for one in range(pieces):
        if len(sided := named(np.where(piece == one, group, -1), count)) > 1:
            apart = "went one way, so that their strengths are apart without bound"
            words.append(f"all comparisons between these groups {apart}: {'; '.join(sided)}")
    return words
