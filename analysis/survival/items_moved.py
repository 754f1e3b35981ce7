"""Items moved out of items staged: the plain number that heads a report, for an arm and for a pair of arms.

May not: need a censoring model or a ghost: an item is on the target at the end of the episode or it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval, widest
from labctl.analysis.survival.ks import Pair, met_in_blocks
from labctl.analysis.survival.permutation import Relabelled, p_error, relabelled, share_at_least
from labctl.analysis.survival.studentised import in_errors, share_columns, share_difference
from labctl.analysis.survival.summed_parts import Summed, drawn_whole, for_a_mean, satterthwaite, summed
from labctl.analysis.table import UNKNOWN


@dataclass(frozen=True)
class MovedDifference(Result):
    """Items moved / items staged of a less that of b, mean over objects; paired where blocks are named.

    `p` is by permutation within block × object, two-sided, `p_error` its Monte-Carlo error; `interval` is t on what
    each block adds to the difference (episodes of either arm where there are none), degrees of freedom over objects
    (and arms) after Satterthwaite, beside an arm that moved everything or nothing no narrower than Wilson's of the
    other; `blocks` those that have both arms, `per_hour` the same difference in items per robot-hour.
    """

    a: str
    b: str
    difference: float
    interval: Interval | None
    p: float
    p_error: float
    paired: bool
    blocks: int
    per_hour: float | None


def moved_share(cells: Sequence[Cell]) -> tuple[float | None, Interval | None]:
    """Items moved / items staged over all episodes, and a Wilson interval at the effective number of items.

    That number is p(1-p) over the episode-clustered variance within objects, at most the items staged; the quantile is
    t on sum(episodes - 1), which matters below ten episodes per cell (docs/statistics-calibration.md). Of a block that
    goes over several objects all episodes together are the cluster, and of such objects t is on their blocks - 1 at
    most. With nothing or everything moved no spread is seen, and every episode counts as one item.
    """
    staged = np.concatenate([c.staged for c in cells])
    if (staged == UNKNOWN).any():
        return None, None
    moved = np.concatenate([c.moved for c in cells])
    total, count = int(staged.sum()), len(staged)
    share = int(moved.sum()) / total
    if (moved > staged).any():  # the table contradicts itself; no interval can be trusted
        return share, None
    within = _within(cells, share)
    spread = math.fsum(part.variance for part in within) / total**2
    effective = min(total, share * (1 - share) / spread) if spread > 0 else count
    return share, _wilson(share, effective, sum(part.most for part in within))


def _wilson(share: float, effective: float, df: float) -> Interval:
    """Of a share of so many items, with t's quantile; the normal one without a degree of freedom."""
    z2 = float(special.stdtrit(df, 0.5 + LEVEL / 2) if df > 0 else special.ndtri(0.5 + LEVEL / 2)) ** 2
    centre = (share + z2 / (2 * effective)) / (1 + z2 / effective)
    reach = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * effective)) / effective) / (1 + z2 / effective)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def moved_macro(cells: Sequence[Cell]) -> float | None:
    """Items moved / items staged with equal weights for objects; None where items staged are unknown."""
    if any((c.staged == UNKNOWN).any() for c in cells):
        return None
    return math.fsum(int(c.moved.sum()) / int(c.staged.sum()) for c in cells) / len(cells)


def moved_difference(
    a: Sequence[Cell],
    b: Sequence[Cell],
    pair: Pair,
    seed: int,
    perm: int,
    made: Relabelled | None = None,
) -> MovedDifference | None:
    """Compare two arms by the plainest number there is; `pair` is `pair_of` the same cells.

    None where items staged are unknown. `made`: `relabellings` of the pair by that seed, with `moved_columns`.
    """
    share = _shares_moved(a, b)
    if share is None:
        return None
    sums = made.sums if made else relabelled(pair, share_columns(pair, share), seed, perm)
    change, variance = share_difference(pair, *sums)
    found, p = float(change[0]), share_at_least(in_errors(change, variance))
    paired, blocks, se, df = _error(pair, share)
    reach = float(special.stdtrit(df, 0.5 + LEVEL / 2)) * se if df > 0 and se > 0 else None
    plain = None if reach is None else (max(-1.0, found - reach), min(1.0, found + reach))
    hourly_a, hourly_b = _hourly(a), _hourly(b)
    return MovedDifference(
        pair.a,
        pair.b,
        found,
        plain and widest(plain, _from_an_end((a, b), pair, share, (found, se, df))),
        p,
        p_error(pair, perm, p),
        paired,
        blocks,
        None if hourly_a is None or hourly_b is None else hourly_a - hourly_b,
    )


def moved_columns(a: Sequence[Cell], b: Sequence[Cell], pair: Pair) -> Floats | None:
    """What `moved_difference` sums by arm under every relabelling; None where items staged are unknown."""
    share = _shares_moved(a, b)
    return None if share is None else share_columns(pair, share)


def _shares_moved(a: Sequence[Cell], b: Sequence[Cell]) -> Floats | None:
    """Items moved / items staged of every unit of a pair."""
    if any((c.staged == UNKNOWN).any() for c in (*a, *b)):
        return None
    return np.concatenate([c.moved / c.staged for both in zip(a, b, strict=True) for c in both])


def _error(pair: Pair, share: Floats) -> tuple[bool, int, float, float]:
    """Whether arms are paired, in how many blocks (units where not), the difference's standard error and its df.

    Paired, which takes two blocks of both arms at every object: a block's part is what its episodes of a, less the mean
    of all of a, add to the difference, less the same of b, so that what both arms share in a block cancels and a block
    that lacks one arm still counts. That is the variance of blocks' differences where every block has both alike often.
    A block whose name goes over several objects has one part, over all of them.
    """
    objects = len(pair.of_a)
    owner = np.repeat(np.arange(objects), pair.of_a + pair.of_b)
    cell = 2 * owner + ~pair.is_a
    block, met, both = met_in_blocks(pair)
    paired = bool((both > 1).all())
    if paired:
        group, otherwise = owner, block
        count = met.min(axis=0)
    else:
        group, otherwise = cell, np.arange(len(share))
        count = np.column_stack((pair.of_a, pair.of_b)).ravel()
    parts = _parts(pair, share, owner) * for_a_mean(count)[group]
    unit = drawn_whole(pair.blocks, owner, cell, otherwise)
    found = summed(parts, group, count - 1, unit, np.ones(len(count)))
    variance = math.fsum(part.variance for part in found)
    df = satterthwaite((part.variance, part.df) for part in found)
    return paired, int(both.sum()) if paired else len(share), math.sqrt(variance) / objects, df


def _from_an_end(
    cells: tuple[Sequence[Cell], Sequence[Cell]], pair: Pair, share: Floats, known: tuple[float, float, float]
) -> Interval | None:
    """The difference from an arm that moved everything, or nothing, whose error is that of the other's share: from
    Wilson's interval of that one at its effective number of items, as the spread of few episodes near an end is mostly
    too small. None where both arms vary. `known` are the difference, its error and its degrees of freedom.
    """
    found, se, df = known
    for fixed, sign, others in ((share[pair.is_a], -1.0, cells[1]), (share[~pair.is_a], 1.0, cells[0])):
        end = float(fixed[0])
        other = end + sign * found
        if end in (0.0, 1.0) and (fixed == end).all() and 0 < other < 1:
            effective = min(sum(int(c.staged.sum()) for c in others), other * (1 - other) / se**2)
            ends = [sign * (bound - end) for bound in _wilson(other, effective, df)]
            return min(ends), max(ends)
    return None


def _parts(pair: Pair, share: Floats, owner: np.ndarray) -> Floats:
    """What every unit [units] adds to its object's difference, about its arm's mean."""
    out = np.empty(len(share))
    for side, sign, count in ((pair.is_a, 1.0, pair.of_a), (~pair.is_a, -1.0, pair.of_b)):
        mean = np.bincount(owner[side], share[side], minlength=len(count)) / count
        out[side] = sign * (share[side] - mean[owner[side]]) / count[owner[side]]
    return out


def _hourly(cells: Sequence[Cell]) -> float | None:
    """Items per robot-hour, mean over objects, as `uph` of a cell."""
    if any((c.charged_ns == UNKNOWN).any() or not c.charged_ns.sum() for c in cells):
        return None
    return math.fsum(3600e9 * int(c.moved.sum()) / int(c.charged_ns.sum()) for c in cells) / len(cells)


def _within(cells: Sequence[Cell], share: float) -> list[Summed]:
    """How the items moved beyond `share` of those staged spread within objects; a block that goes over several objects
    is one unit, else an episode is.
    """
    excess = [c.moved - share * c.staged for c in cells]
    counts = np.array([c.episodes for c in cells])
    group = np.repeat(np.arange(len(cells)), counts)
    places = np.unique([c.object for c in cells], return_inverse=True)[1]
    unit = drawn_whole([name for c in cells for name in c.blocks], places[group], group, np.arange(len(group)))
    size = math.sqrt(math.fsum(float((c.staged**2).sum()) for c in cells))
    parts = np.concatenate([values - values.mean() for values in excess]) * for_a_mean(counts)[group]
    return summed(parts, group, counts - 1, unit, np.full(len(cells), size))
