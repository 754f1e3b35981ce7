"""What a perturbation costs: the drop of each axis against its base in the same set, by axis, category and composition.

May not: sum a drop with a published table, or compare conditions that were not run in one set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.binary.paired import tango
from labctl.analysis.binary.pooling import UNPERTURBED, category
from labctl.analysis.blocks.means import Draws, mean_over_units
from labctl.analysis.blocks.swaps import PERM, Swapped, swapped
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import Interval
from labctl.analysis.survival.verdicts import holm, holm_errors, holm_levels

BOOT = 999


@dataclass(frozen=True)
class Perturbed:
    """One episode: its arm, `score` (a success is 0 or 1), condition, the condition it perturbs ("" for none), its axes
    ("V-SC", "V-SC+S-LANG", "" or "in-distribution" for a base) and the `set` of blocks that belong together ("" for
    none).
    """

    arm: str
    score: float
    condition: str
    base: str
    axis: str
    set: str


@dataclass(frozen=True)
class Drop(Result):
    """Mean score of the base less that with the axis, over `pairs` sets that hold both; positive = worse with it.

    `axis` is "" for a whole category. `p` by swapping base and perturbed within sets, `p_holm` adjusted over the axes
    (or the categories) of the arm, `error` its Monte-Carlo error. `ci` is at the level of Holm's step, so that it
    excludes 0 exactly where p_holm is at most alpha (`_interval`); None where so few sets exclude nothing
    (`smallest_p`).
    """

    axis: str
    category: str
    arm: str
    base: float
    perturbed: float
    drop: float
    ci: Interval | None
    p: float
    p_holm: float
    error: float
    smallest_p: float
    pairs: int


@dataclass(frozen=True)
class Composition(Result):
    """An axis made of several against those by themselves, over `pairs` sets that hold the base and all of them.

    `drop` of the composition, `singles` the sum of the single drops, `beyond` the difference: above 0 they cost more
    together than one by one added up. `p` and `ci` of `beyond` by swaps within sets, not adjusted.
    """

    axis: str
    arm: str
    drop: float
    singles: float
    beyond: float
    ci: Interval | None
    p: float
    pairs: int


def axis_drops(rows: Sequence[Perturbed], alpha: float = 0.05, perm: int = PERM, seed: int = 0) -> list[Drop]:
    """Drops by arm and axis, adjusted over the axes of an arm; scores that are nan are left out.

    Of several episodes of an arm at one axis of a base within a set the mean counts once. Raises TableError for what is
    no axis code.
    """
    return _families(_pairs(rows, lambda axis: axis), alpha, perm, seed, by_axis=True)


def category_drops(rows: Sequence[Perturbed], alpha: float = 0.05, perm: int = PERM, seed: int = 0) -> list[Drop]:
    """Drops by arm and category of axes, adjusted over the categories of an arm; a set counts once in each."""
    return _families(_pairs(rows, lambda axis: category(axis, "axis")), alpha, perm, seed, by_axis=False)


def compositions(rows: Sequence[Perturbed], alpha: float = 0.05, perm: int = PERM, seed: int = 0) -> list[Composition]:
    """Every composition of axes whose single axes were run in the same sets, by arm."""
    scores = _scores(rows, _tidy)
    found: list[Composition] = []
    arms_axes = dict.fromkeys((arm, axis) for arm, axis, _, _ in scores if "+" in axis)
    for arm, axis in arms_axes:
        parts = axis.split("+")
        whole, singles = [], []
        for _, _, group, base in (key for key in scores if key[:2] == (arm, axis)):
            at_base = scores.get((arm, "", group, base))
            alone = [scores.get((arm, part, group, base)) for part in parts]
            if at_base is not None and all(one is not None for one in alone):
                whole.append(at_base - scores[arm, axis, group, base])
                singles.append(sum(at_base - one for one in alone if one is not None))
        differences = np.array(whole) - np.array(singles)
        beyond = swapped(differences, perm, seed)
        if beyond is not None:
            means, most = (float(np.mean(whole)), float(np.mean(singles))), 1.0 + len(parts)
            wide = mean_over_units(differences, np.arange(beyond.pairs), -most, most, Draws(seed, BOOT), 1 - alpha)
            ci = _interval(beyond.interval(1 - alpha), wide.interval)
            found.append(Composition(axis, arm, *means, beyond.mean, ci, beyond.p, beyond.pairs))
    return found


_Key = tuple[str, str, str, str]


def _tidy(axis: str) -> str:
    """An axis as a key: "" for a base, the parts of a composition in order of the alphabet."""
    if category(axis, "axis") == UNPERTURBED:
        return ""
    return "+".join(sorted(code.strip() for code in axis.split("+")))


def _scores(rows: Sequence[Perturbed], name: Callable[[str], str]) -> dict[_Key, float]:
    """Mean score by arm, axis ("" for the base), set and base condition."""
    gathered: dict[_Key, list[float]] = {}
    for row in rows:
        if not row.set or math.isnan(row.score):
            continue
        axis = _tidy(row.axis)
        key = (row.arm, name(axis), row.set, row.base) if axis else (row.arm, "", row.set, row.condition)
        gathered.setdefault(key, []).append(row.score)
    return {key: math.fsum(own) / len(own) for key, own in gathered.items()}


def _pairs(rows: Sequence[Perturbed], name: Callable[[str], str]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """(base, perturbed) by arm and axis, one for each set and base condition that both were run in."""
    scores = _scores(rows, name)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (arm, axis, group, base), score in scores.items():
        if axis and (arm, "", group, base) in scores:
            found.setdefault((arm, axis), []).append((scores[arm, "", group, base], score))
    return found


def _of_unseen(both: Floats, level: float, seed: int) -> Interval | None:
    """An interval of the mean of base less perturbed, pairs (n, 2), that leaves room for what did not come: Tango's of
    successes, else that of `mean_over_units`.
    """
    if np.isin(both, (0.0, 1.0)).all():
        lost, gained = int((both[:, 0] > both[:, 1]).sum()), int((both[:, 0] < both[:, 1]).sum())
        return tango(lost, gained, len(both), level)
    return mean_over_units(both[:, 0] - both[:, 1], np.arange(len(both)), -1.0, 1.0, Draws(seed, BOOT), level).interval


def _interval(swaps: Interval | None, unseen: Interval | None) -> Interval | None:
    """The outer ends of the means that swaps do not reject and of `_of_unseen`, on the side of 0 that swaps leave.

    That no axis costs anything is what swaps test exactly. Of any other mean they take differences to be symmetric
    about it, so that eight sets in which nothing changed would exclude a drop of .01: the other interval does not.
    """
    if swaps is None or unseen is None:
        return swaps
    low, high = min(swaps[0], unseen[0]), max(swaps[1], unseen[1])
    if swaps[0] > 0:
        low = low if low > 0 else swaps[0]
    if swaps[1] < 0:
        high = high if high < 0 else swaps[1]
    return low, high


def _families(
    pairs: Mapping[tuple[str, str], Sequence[tuple[float, float]]], alpha: float, perm: int, seed: int, *, by_axis: bool
) -> list[Drop]:
    found: list[Drop] = []
    for arm in dict.fromkeys(arm for arm, _ in pairs):
        tests: dict[str, Swapped] = {}
        for (own, axis), both in pairs.items():
            test = swapped(np.array([base - perturbed for base, perturbed in both]), perm, seed) if own == arm else None
            if test is not None:
                tests[axis] = test
        p = {axis: test.p for axis, test in tests.items()}
        adjusted, levels = holm(p), holm_levels(p, alpha)
        errors = holm_errors(p, {axis: test.error for axis, test in tests.items()})
        for axis, test in tests.items():
            both = np.array(pairs[arm, axis])
            base, perturbed = (float(mean) for mean in both.mean(axis=0))
            level = 1 - levels[axis]
            found.append(
                Drop(
                    axis if by_axis else "",
                    category(axis, "axis") if by_axis else axis,
                    arm,
                    base,
                    perturbed,
                    test.mean,
                    _interval(test.interval(level), _of_unseen(both, level, seed)),
                    test.p,
                    adjusted[axis],
                    errors[axis],
                    test.smallest_p,
                    test.pairs,
                )
            )
    return found
