"""How far the headline depends on what cannot be known: timeouts, items by their order, budgets, voids.

May not: replace a headline number. Each of these stands beside it under its own name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from labctl.analysis.early_ends import CARRIED, ENDED_EARLY
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import NEVER_NS, Durations, Floats, Ints, rmst_with_error
from labctl.analysis.table import CENSORED, GHOST, NS, SUCCESS, UNKNOWN, Table

Key = tuple[str, str]


@dataclass(frozen=True)
class Bounds(Result):
    """RMST(tau) in seconds if every timeout were a hard failure (`worst`) or a success at once (`best`)."""

    worst: float
    best: float


@dataclass(frozen=True)
class ByOperation(Result):
    """RMST(tau) of the first, second, … operation of an episode: `index` from 1, episodes that came so far, seconds.

    Later entries hold only episodes fast enough to get there, with what was left of their budget.
    """

    index: Ints
    episodes: Ints
    rmst: Floats
    se: Floats


def timeout_bounds(cell: Cell, tau_ns: int) -> Bounds:
    """What the operations still open at the end could do to RMST at most, either way."""
    tail = cell.kind == CENSORED
    observed = cell.observed
    worst = replace(observed, time_ns=np.where(tail, NEVER_NS, observed.time_ns), event=observed.event | tail)
    best = replace(observed, event=observed.event | tail)
    return Bounds(rmst_with_error(worst, tau_ns)[0], rmst_with_error(best, tau_ns)[0])


def hrt_bounds(reference: Iterable[Cell], arm: Iterable[Cell], tau_ns: int) -> Bounds:
    """HRT of an arm if all its timeouts, and none of the reference's, were hard failures; and the other way round."""
    met = [(timeout_bounds(r, tau_ns), timeout_bounds(a, tau_ns)) for r, a in zip(reference, arm, strict=True)]
    worst, best = ([(r.best, a.worst) for r, a in met], [(r.worst, a.best) for r, a in met])
    return Bounds(*(float(np.mean([r / a if a > 0 else np.inf for r, a in side])) for side in (worst, best)))


def rmst_by_operation(cell: Cell, tau_ns: int) -> ByOperation:
    """RMST by the order of operations within the episode: whether items get harder, and who never reached them.

    A true twofold slowdown on items that get harder can read far less once pooled (methodology §3, 5).
    """
    place = _place(cell.durations.episode)
    found = []
    for i in range(int(place.max()) + 1 if len(place) else 0):
        here = place == i
        part = Durations(
            cell.durations.time_ns[here], cell.durations.event[here], np.arange(here.sum()), int(here.sum())
        )
        found.append((i + 1, part.episodes, *rmst_with_error(part, tau_ns)))
    index, episodes, value, se = (np.array(column) for column in zip(*found, strict=True))
    return ByOperation(index, episodes, value, se)


def truncated(cell: Cell, budget_ns: int) -> Cell:
    """The cell as if every episode had been stopped at `budget_ns` after go.

    Raises ValueError for a lost item without a time: it is unknown whether it was lost before then.
    """
    ghost = cell.kind == GHOST
    if (cell.ghost_ns[ghost] == UNKNOWN).any():
        found = f"{cell.arm} on {cell.object} lost an item at an unknown time"
        raise ValueError(f"{found}; it cannot be cut to {budget_ns / NS:g} s: give time_s for its ghosts")
    own = np.where(ghost, cell.ghost_ns, cell.observed.time_ns)
    episode = cell.observed.episode
    first = np.concatenate(([0], np.cumsum(np.bincount(episode, minlength=cell.episodes))))[episode]
    moved = np.where(cell.kind == SUCCESS, own, 0)
    before = np.cumsum(moved) - moved
    start = before - before[first]
    late = start + own > budget_ns
    so_far = np.cumsum(late) - (np.cumsum(late) - late)[first]
    cut = late & (so_far == 1) & (start < budget_ns)
    keep = (so_far == 0) | cut
    kind = np.where(cut, CENSORED, cell.kind)[keep].astype(np.int8)
    cause = tuple(
        "budget" if c else cause_before for cause_before, c, k in zip(cell.cause, cut, keep, strict=True) if k
    )
    time = np.where(cut, budget_ns - start, own)[keep]
    tail = kind == CENSORED
    futile = tail & np.array([c in CARRIED for c in cause])
    observed = Durations(np.where(kind == GHOST, NEVER_NS, time), ~tail, episode[keep], cell.episodes)
    return replace(
        cell,
        durations=replace(observed, time_ns=np.where(futile, budget_ns - start[keep], observed.time_ns)),
        observed=observed,
        kind=kind,
        cause=cause,
        ghost_ns=np.where(kind == GHOST, time, UNKNOWN),
        moved=np.bincount(episode[keep & ~late & (cell.kind == SUCCESS)], minlength=cell.episodes),
        charged_ns=np.where(cell.charged_ns == UNKNOWN, UNKNOWN, np.minimum(cell.charged_ns, budget_ns)),
        budget_ns=np.full(cell.episodes, budget_ns),
        ended_early=int((tail & np.array([c in ENDED_EARLY for c in cause])).sum()),
        futile_without_budget=0,
    )


def to_common_budget(cells: Mapping[Key, Cell]) -> tuple[dict[Key, Cell], str | None]:
    """All arms cut to the shortest budget of each object, and the sentence that states it; None where nothing was cut.

    The only way to compare arms that had unequal budgets (facts §4.4). Raises ValueError where a budget is not stated.
    """
    silent = [f"{a} on {o}" for (a, o), c in cells.items() if (c.budget_ns == UNKNOWN).any()]
    if silent:
        raise ValueError(f"no budget_s for {', '.join(silent)}; arms cannot be cut to a common budget without")
    least = {o: min(int(c.budget_ns.min()) for (_, p), c in cells.items() if p == o) for _, o in cells}
    longer = sorted({o for (_, o), c in cells.items() if (c.budget_ns != least[o]).any()})
    out = {k: truncated(c, least[k[1]]) if k[1] in longer else c for k, c in cells.items()}
    cut = ", ".join(f"{least[o] / NS:g} s at {o}" for o in longer)
    return out, f"every arm was cut to the shortest budget: {cut}" if longer else None


def teleoperators(table: Table, reference: str | None) -> tuple[str, ...]:
    """The people whose driving the reference is: every HRT is conditional on them. Empty where the table is silent."""
    named = {e.operator for e in table.episodes if e.arm == reference and not e.void and e.operator}
    return tuple(sorted({person for names in named for person in names.split("+")}))


def part_of(cell: Cell, kept: np.ndarray) -> Cell:
    """The cell of the episodes marked in `kept` [episodes] alone."""
    rows, number = kept[cell.durations.episode], np.cumsum(kept) - 1

    def of(durations: Durations) -> Durations:
        return Durations(
            durations.time_ns[rows], durations.event[rows], number[durations.episode[rows]], int(kept.sum())
        )

    return replace(
        cell,
        durations=of(cell.durations),
        observed=of(cell.observed),
        kind=cell.kind[rows],
        cause=tuple(itertools.compress(cell.cause, rows.tolist())),
        ghost_ns=cell.ghost_ns[rows],
        blocks=tuple(itertools.compress(cell.blocks, kept.tolist())),
        moved=cell.moved[kept],
        staged=cell.staged[kept],
        charged_ns=cell.charged_ns[kept],
        budget_ns=cell.budget_ns[kept],
        interventions=cell.interventions[kept],
    )


def _place(episode: Ints) -> Ints:
    """The number of each row within its episode, from 0; rows of an episode stand together."""
    first = np.flatnonzero(np.diff(episode, prepend=-1))
    return np.arange(len(episode)) - np.repeat(first, np.diff(np.append(first, len(episode))))
