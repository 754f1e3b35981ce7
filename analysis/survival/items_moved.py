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
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.analysis.survival.ks import Pair
from labctl.analysis.survival.permutation import Relabelled, p_error, relabelled, share_at_least
from labctl.analysis.survival.studentised import in_errors, share_columns, share_difference
from labctl.analysis.table import UNKNOWN


@dataclass(frozen=True)
class MovedDifference(Result):
    """Items moved / items staged of a less that of b, mean over objects; paired where blocks are named.

    `p` is by permutation within block × object, two-sided, `p_error` its Monte-Carlo error; `interval` is t on the
    differences of `blocks` blocks (episodes of either arm where there are none), `per_hour` the same difference in
    items per robot-hour.
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
    t on sum(episodes - 1), which matters below ten episodes per cell (docs/statistics-calibration.md). With nothing or
    everything moved no spread is seen, and every episode counts as one item.
    """
    staged = np.concatenate([c.staged for c in cells])
    if (staged == UNKNOWN).any():
        return None, None
    moved = np.concatenate([c.moved for c in cells])
    total, count = int(staged.sum()), len(staged)
    share = int(moved.sum()) / total
    if (moved > staged).any():  # the table contradicts itself; no interval can be trusted
        return share, None
    spread = math.fsum(_within(c.moved - share * c.staged) for c in cells) / total**2
    effective = min(total, share * (1 - share) / spread) if spread > 0 else count
    df = sum(c.episodes - 1 for c in cells)
    z2 = float(special.stdtrit(df, 0.5 + LEVEL / 2) if df > 0 else special.ndtri(0.5 + LEVEL / 2)) ** 2
    centre = (share + z2 / (2 * effective)) / (1 + z2 / effective)
    reach = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * effective)) / effective) / (1 + z2 / effective)
    return share, (max(0.0, centre - reach), min(1.0, centre + reach))


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
    objects = len(a)
    owner = np.repeat(np.arange(objects), pair.of_a + pair.of_b)
    sums = made.sums if made else relabelled(pair, share_columns(pair, share), seed, perm)
    change, variance = share_difference(pair, *sums)
    found, p = float(change[0]), share_at_least(in_errors(change, variance))
    differences, paired = _differences(pair, share, owner)
    se, df = _error(differences)
    se /= objects
    reach = float(special.stdtrit(df, 0.5 + LEVEL / 2)) * se if df > 0 and se > 0 else None
    hourly_a, hourly_b = _hourly(a), _hourly(b)
    return MovedDifference(
        pair.a,
        pair.b,
        found,
        None if reach is None else (max(-1.0, found - reach), min(1.0, found + reach)),
        p,
        p_error(pair, perm, p),
        paired,
        sum(len(d) for d in differences if paired) or len(share),
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


def _differences(pair: Pair, share: Floats, owner: np.ndarray) -> tuple[list[Floats], bool]:
    """Per object, a's mean less b's in every block that has both; or each arm's own shares where nothing is paired."""
    objects = len(pair.of_a)
    by_object: list[list[float]] = [[] for _ in range(objects)]
    first, shares = pair.is_a.tolist(), share.tolist()
    for s in pair.strata:
        if len(s) == 2 and first[s[0]] != first[s[1]]:  # as nearly all are, and this is quicker
            one, other = s.tolist() if first[s[0]] else s.tolist()[::-1]
            by_object[owner[one]].append(shares[one] - shares[other])
            continue
        mine, theirs = s[pair.is_a[s]], s[~pair.is_a[s]]
        if len(mine) and len(theirs):
            by_object[owner[s[0]]].append(float(share[mine].mean() - share[theirs].mean()))
    if all(len(found) > 1 for found in by_object):
        return [np.array(found) for found in by_object], True
    return [share[(owner == o) & (pair.is_a == side)] for o in range(objects) for side in (True, False)], False


def _error(groups: Sequence[Floats]) -> tuple[float, int]:
    """Standard error of the mean over objects, and degrees of freedom (paired: one group an object; else two)."""
    df = sum(len(g) - 1 for g in groups)
    variance = math.fsum(float(g.var(ddof=1)) / len(g) for g in groups if len(g) > 1)
    return math.sqrt(variance), df


def _hourly(cells: Sequence[Cell]) -> float | None:
    """Items per robot-hour, mean over objects."""
    if any((c.end_ns == UNKNOWN).any() or not c.end_ns.sum() for c in cells):
        return None
    return math.fsum(3600e9 * int(c.moved.sum()) / int(c.end_ns.sum()) for c in cells) / len(cells)


def _within(values: Floats) -> float:
    """Sum of squares about the mean, inflated for the mean that was estimated."""
    count = len(values)
    return float(((values - values.mean()) ** 2).sum()) * count / max(count - 1, 1)
