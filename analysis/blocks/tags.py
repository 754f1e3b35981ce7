"""What a task's tag goes with: scores of tasks with it against those without, by permuting the tag over tasks.

May not: judge. An effect, its interval and its p stand together, with the smallest p that so few tasks can give; tasks
differ in more than a tag.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import IDENTITY, LEVEL, Interval, t_interval
from labctl.analysis.survival.resample import all_swaps, swap_count
from labctl.analysis.survival.spread import beyond_rounding, size_of

SHUFFLES = 10_000
ENTANGLED = 0.5
"""Correlation of two tags over tasks from which one is looked at within the other."""


@dataclass(frozen=True)
class TagContrast(Result):
    """One tag and arm: `tasks_with`, `tasks_without` and mean scores of both; `effect` their difference, within strata
    where `within` names another tag, else plain. `p` two-sided by permuting the tag over tasks, `error` its Monte-Carlo
    error, `smallest_p` the least that could have come out. None where nothing is left to compare; `words` say why.
    """

    tag: str
    arm: str
    tasks_with: int
    tasks_without: int
    with_tag: float | None
    without_tag: float | None
    effect: float | None
    ci: Interval | None
    p: float | None
    error: float | None
    smallest_p: float | None
    within: str | None
    words: str


def tag_contrasts(
    scores: Mapping[str, Floats],
    tags: Mapping[str, Sequence[bool]],
    shuffles: int = SHUFFLES,
    seed: int = 0,
    level: float = LEVEL,
) -> list[TagContrast]:
    """Every tag for every arm. `scores`: an arm's mean score of each task (T,), nan for a task it did not run; `tags`:
    which tasks (T,) have a tag.

    A tag that goes with another (phi of 0.5 or more over tasks) is compared within it, where both values occur in a
    stratum; one that always goes with another cannot be told from it, and is said.
    """
    found = []
    for tag in tags:
        for arm, score in scores.items():
            known = ~np.isnan(np.asarray(score, dtype=float))
            own = {name: np.asarray(other, dtype=bool)[known] for name, other in tags.items()}
            found.append(_contrast(tag, arm, np.asarray(score, dtype=float)[known], own, shuffles, seed, level))
    return found


def _contrast(
    tag: str, arm: str, score: Floats, tags: Mapping[str, np.ndarray], shuffles: int, seed: int, level: float
) -> TagContrast:
    has = tags[tag]
    counts = int(has.sum()), int((~has).sum())
    means = _mean(score[has]), _mean(score[~has])
    if not min(counts):
        return TagContrast(
            tag, arm, *counts, *means, None, None, None, None, None, None, "every task is on one side of the tag"
        )
    within, words = _stratum(tag, tags)
    strata = [np.arange(len(score))] if within is None else [np.flatnonzero(tags[within] == x) for x in (True, False)]
    strata = [s for s in strata if has[s].any() and not has[s].all()]
    weight = np.array([has[s].sum() * (~has[s]).sum() / len(s) for s in strata], dtype=float)
    weight /= weight.sum()
    labels, listed = _relabelled(has, strata, shuffles, seed)
    effects = np.zeros(len(labels))
    for w, s in zip(weight, strata, strict=True):
        k = int(has[s].sum())
        with_tag = labels[:, s] @ score[s]
        effects += w * (with_tag / k - (score[s].sum() - with_tag) / (len(s) - k))
    beyond = np.abs(effects) >= abs(effects[0]) * (1 - 1e-9) - 1e-12
    p = float(beyond.mean())
    ways = swap_count(strata, has)
    both_ways = 2 if all(2 * has[s].sum() == len(s) for s in strata) else 1
    return TagContrast(
        tag,
        arm,
        *counts,
        *means,
        float(effects[0]),
        _interval(score, has, strata, weight, float(effects[0]), level),
        p,
        0.0 if listed else share_error(p, len(labels)),
        min(1.0, max(both_ways / ways, 0.0 if listed else 1 / len(labels))),
        within,
        words,
    )


def _mean(score: Floats) -> float | None:
    return float(score.mean()) if len(score) else None


def _stratum(tag: str, tags: Mapping[str, np.ndarray]) -> tuple[str | None, str]:
    """The tag to look within, if one goes with this one; and what cannot be told apart."""
    nearest, most, same = None, ENTANGLED, []
    has = tags[tag]
    for other, own in tags.items():
        if other == tag or own.all() or not own.any():
            continue
        phi = abs(float(np.corrcoef(has, own)[0, 1]))
        if phi > 1 - 1e-9:
            same.append(other)
        elif phi >= most and any(has[own == x].any() and not has[own == x].all() for x in (True, False)):
            nearest, most = other, phi
    return nearest, f"always with or without {', '.join(same)}: cannot be told apart" if same else ""


def _relabelled(has: np.ndarray, strata: Sequence[np.ndarray], shuffles: int, seed: int) -> tuple[Floats, bool]:
    """Labels (R, T) as 0 and 1, the observed first, and whether they are all there are."""
    if swap_count(strata, has) <= shuffles:
        labels = all_swaps(strata, has)
        fixed = np.setdiff1d(np.arange(len(has)), np.concatenate(strata))
        labels[:, fixed] = has[fixed]
        return labels[np.argsort((labels != has).any(axis=1), kind="stable")].astype(float), True
    rng = np.random.default_rng(seed)
    labels = np.repeat(has[None, :].astype(float), shuffles, axis=0)
    for s in strata:
        labels[1:, s] = rng.permuted(labels[1:, s], axis=1)
    return labels, False


def _interval(
    score: Floats, has: np.ndarray, strata: Sequence[np.ndarray], weight: Floats, effect: float, level: float
) -> Interval | None:
    """By t with one variance of tasks on either side of the tag, as the permutation has it."""
    cells = [(w, s[has[s] == side]) for w, s in zip(weight, strata, strict=True) for side in (True, False)]
    df = sum(len(cell) - 1 for _, cell in cells)
    if df < 1:
        return None
    pooled = sum(float(((score[cell] - score[cell].mean()) ** 2).sum()) for _, cell in cells) / df
    se = math.sqrt(beyond_rounding(pooled, size_of(score)) * sum(float(w) ** 2 / len(cell) for w, cell in cells))
    return t_interval(effect, se, df, IDENTITY, level)
