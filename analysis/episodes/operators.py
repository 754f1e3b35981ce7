"""The human reference, person by person: how fast each was, learning over episodes, fatigue within a session, practice.

May not: correct the reference for any of it, or let a practice episode into a number of the reference.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.episode_facts import Driven, Practised
from labctl.analysis.episodes.sensitivity import part_of
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import IDENTITY, LOG, Interval, t_interval
from labctl.analysis.survival.items_moved import moved_share
from labctl.analysis.table import NS, UNKNOWN, Table


@dataclass(frozen=True)
class Operator(Result):
    """One person (or crew) of the reference: items moved of staged, and per hour, with 95 % intervals.

    `rate` and `moved_ci` as for an arm; `rate_ci` is t on the log scale with the episode-clustered error of the ratio.
    """

    operator: str
    episodes: int
    sessions: int
    moved: int
    staged: int | None
    share: float | None
    moved_ci: Interval | None
    rate: float | None
    rate_ci: Interval | None


@dataclass(frozen=True)
class Slope(Result):
    """Items per hour gained with each further episode: least squares within groups, t interval on `df`.

    `value` is None where no group has two places, `ci` where there is no degree of freedom or no spread.
    """

    value: float | None
    ci: Interval | None
    episodes: int
    df: int


@dataclass(frozen=True)
class People(Result):
    """Every operator of the reference in the table's order. `learning`: slope over an operator's reference episodes,
    within operator and object; `fatigue`: over the episodes of one session, within operator, session and object, None
    where nobody had two sessions: the two could not be told apart.
    """

    reference: str
    operators: tuple[Operator, ...]
    learning: Slope
    fatigue: Slope | None


def people(table: Table, reference: str | None, rig: str = "") -> People | None:
    """The reference by who operated; None without a reference or where the table names no operator of it. rig: in the
    robot's cell of that name alone.
    """
    of = [i for i, e in enumerate(table.episodes) if e.arm == reference and not e.void]
    own = [i for i in of if not rig or table.episodes[i].cell == rig]
    names = list(dict.fromkeys(table.episodes[i].operator for i in own))
    if not own or "" in names:
        return None
    cells, members = cells_of(table), {k: found for k, found in table.cells().items() if k[0] == reference}
    rate, made = np.full(len(table.episodes), math.nan), []
    for name in names:
        parts = []
        for key, found in members.items():
            mine = np.array([table.episodes[i].operator == name for i in found])
            if mine.any():
                parts.append(part := part_of(cells[key], mine))
                known = (part.charged_ns != UNKNOWN) & (part.charged_ns > 0)
                hours = np.where(known, part.charged_ns, 1) / NS / 3600
                rate[np.array(found)[mine]] = np.where(known, part.moved / hours, math.nan)
        moved, staged, charged_ns = (
            np.concatenate([getattr(p, a) for p in parts]) for a in ("moved", "staged", "charged_ns")
        )
        share, share_ci = moved_share(parts)
        sessions = {table.episodes[i].session for i in own if table.episodes[i].operator == name}
        total = None if (staged == UNKNOWN).any() else int(staged.sum())
        speed = _per_hour(moved, charged_ns)
        made.append(Operator(name, len(moved), len(sessions), int(moved.sum()), total, share, share_ci, *speed))
    members = [table.episodes[i] for i in own]
    who = [(e.operator, e.object) for e in members]
    when = [(e.operator, e.object, e.session) for e in members]
    many = any(one.sessions > 1 for one in made) and all(e.session for e in members)
    return People(
        str(reference),
        tuple(made),
        slope(_places([e.operator for e in members]), rate[own], who),
        slope(_places([(e.operator, e.session) for e in members]), rate[own], when) if many else None,
    )


def _places(groups: Sequence[Hashable]) -> Floats:
    """The number of each entry within its group, from 0, in the order given."""
    seen: dict[Hashable, int] = {}
    found = []
    for group in groups:
        found.append(seen.get(group, 0))
        seen[group] = found[-1] + 1
    return np.array(found, dtype=float)


def _per_hour(moved: np.ndarray, charged_ns: np.ndarray) -> tuple[float | None, Interval | None]:
    """3600 × sum(moved) / sum(seconds), and its interval from the residuals of the ratio, one episode a unit."""
    if (charged_ns == UNKNOWN).any() or not charged_ns.sum():
        return None, None
    hours, n = charged_ns / NS / 3600, len(moved)
    ratio = float(moved.sum() / hours.sum())
    if n < 2 or ratio <= 0:
        return ratio, None
    spread = math.sqrt(float(((moved - ratio * hours) ** 2).sum()) * n / (n - 1)) / float(hours.sum())
    return ratio, t_interval(ratio, spread, n - 1, LOG)


def slope(place: Floats, value: Floats, groups: Sequence[Hashable]) -> Slope:
    """Least squares of `value` on `place`, each centred within its group (fixed effects); rows that are NaN are left
    out. Arrays (n,), one group each.
    """
    known = np.isfinite(value)
    names = [group for group, here in zip(groups, known, strict=True) if here]
    x, y = place[known].astype(float), value[known].astype(float)
    for name in set(names):
        mine = np.array([group == name for group in names])
        x[mine] -= x[mine].mean()
        y[mine] -= y[mine].mean()
    df, across = len(x) - len(set(names)) - 1, float((x**2).sum())
    if across <= 0:
        return Slope(None, None, len(x), max(df, 0))
    found = float((x * y).sum()) / across
    if df < 1:
        return Slope(found, None, len(x), 0)
    error = math.sqrt(float(((y - found * x) ** 2).sum()) / df / across)
    return Slope(found, t_interval(found, error, df, IDENTITY), len(x), df)


def plateau(rates: Sequence[float], *, last: int, within: float) -> int | None:
    """The first episode, from 1, at which a straight line through the last `last` rates rises or falls by less than
    the share `within` of their mean, from its first to its last; None if there is none.
    """
    for end in range(last, len(rates) + 1):
        window = np.asarray(rates[end - last : end], dtype=float)
        steps = np.arange(last) - (last - 1) / 2
        change = abs(float((steps * window).sum() / (steps**2).sum())) * (last - 1)
        if window.mean() > 0 and change < within * window.mean():
            return end
    return None


def practised(entries: Sequence[Driven], *, last: int, within: float) -> list[Practised]:
    """One entry per person. entries: in order of time; rate_at_end: the mean of the `last` rates at the end."""
    rates: dict[str, list[float]] = {}
    for entry in entries:
        rates.setdefault(entry["person"], []).append(3600.0 * entry["moved"] / entry["duration_s"])
    return [
        {
            "person": person,
            "episodes": len(found),
            "rates": found,
            "plateau": plateau(found, last=last, within=within),
            "rate_at_end": sum(found[-last:]) / len(found[-last:]),
        }
        for person, found in rates.items()
    ]
