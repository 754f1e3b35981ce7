"""One arm on one object: its operations, counts and clock, taken out of the operations table once.

Estimates nothing; every number here is a count or a time that stands in the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labctl.analysis.early_ends import CARRIED, ENDED_EARLY
from labctl.analysis.survival.curves import KAPLAN_MEIER, NEVER_NS, WANG_CHANG, Durations, Ints, marginal
from labctl.analysis.table import CENSORED, GHOST, SUCCESS, UNKNOWN, Table


@dataclass(frozen=True)
class Cell:
    """Episodes of one (arm, object), in table order; per-episode arrays [episodes], `UNKNOWN` where silent.

    `durations` carries the tail of an episode ended for lack of progress, or by an interlock, to the full budget
    (methodology §3, 5b); `observed` keeps the tail as it was seen, as the paper does. Rows are parallel in both.
    `charged_ns` is what items per hour are divided by: from go to the end, or to the budget where the tail is carried.
    `estimator` says what RMSTs are made of (`timed`).
    """

    arm: str
    object: str
    durations: Durations
    observed: Durations
    kind: np.ndarray
    cause: tuple[str, ...]
    ghost_ns: Ints
    blocks: tuple[str, ...]
    moved: Ints
    staged: Ints
    charged_ns: Ints
    budget_ns: Ints
    ended_early: int
    futile_without_budget: int
    interventions: Ints
    estimator: str = KAPLAN_MEIER

    @property
    def timed(self) -> Durations:
        """The rows that RMST, and all that is made of it, rests on: all of `durations`, or Wang & Chang's."""
        return marginal(self.durations) if self.estimator == WANG_CHANG else self.durations

    @property
    def episodes(self) -> int:
        """How many episodes."""
        return self.durations.episodes


def cells_of(table: Table, estimator: str = KAPLAN_MEIER) -> dict[tuple[str, str], Cell]:
    """Every (arm, object) of the table with at least one episode that is not void, sorted by name."""
    rows = table.rows_by_episode()
    return {key: _cell(table, key, episodes, rows, estimator) for key, episodes in table.cells().items()}


def _cell(
    table: Table, key: tuple[str, str], episodes: tuple[int, ...], rows: list[np.ndarray], estimator: str
) -> Cell:
    taken = np.concatenate([rows[e] for e in episodes])
    kind, time = table.kind[taken], table.time_ns[taken]
    local = np.repeat(np.arange(len(episodes)), [len(rows[e]) for e in episodes])
    members = [table.episodes[e] for e in episodes]
    budget = np.array([e.budget_ns for e in members])
    walked = np.bincount(local, np.where(kind == SUCCESS, time, 0), len(episodes)).astype(np.int64)
    cause = tuple(table.cause[r] for r in taken)
    tail = kind == CENSORED
    futile = np.array([c in CARRIED for c in cause]) & tail
    early = np.array([c in ENDED_EARLY for c in cause]) & tail
    carried = np.where(futile & (budget[local] != UNKNOWN), np.maximum(time, (budget - walked)[local]), time)
    event = kind != CENSORED
    observed = Durations(np.where(kind == GHOST, NEVER_NS, time), event, local, len(episodes))
    return Cell(
        *key,
        Durations(np.where(kind == GHOST, NEVER_NS, carried), event, local, len(episodes))
        if futile.any()
        else observed,
        observed,
        kind,
        cause,
        np.where(kind == GHOST, time, UNKNOWN),
        tuple(e.block for e in members),
        np.bincount(local[kind == SUCCESS], minlength=len(episodes)),
        np.array([e.items_staged for e in members]),
        _charged(_ends(np.array([e.end_ns for e in members]), walked, kind, time, local), budget, local[futile]),
        budget,
        int(early.sum()),
        int((futile & (budget[local] == UNKNOWN)).sum()),
        np.array([e.interventions for e in members]),
        estimator,
    )


def _ends(stated: Ints, walked: Ints, kind: np.ndarray, time: Ints, local: Ints) -> Ints:
    """`end_s`, or else successes plus the time of a last row that is not one; unknown after a ghost without time."""
    last = np.searchsorted(local, np.arange(len(stated)), side="right") - 1
    tail = np.where(kind[last] == SUCCESS, 0, time[last])
    derived = np.where(tail == UNKNOWN, UNKNOWN, walked + tail)
    return np.where(stated != UNKNOWN, stated, derived)


def _charged(ends: Ints, budget: Ints, carried: Ints) -> Ints:
    """The ends, of the episodes `carried` their budget where it is stated: one is not quicker for having been ended."""
    charged = ends.copy()
    charged[carried] = np.maximum(ends, budget)[carried]
    return charged
