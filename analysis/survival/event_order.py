"""The order in which a walk meets operations: rows sorted once, steps at their distinct event times.

May not: weigh, draw or estimate; a replicate is a vector of weights that `kernel.py` carries along an event order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.survival.curves import NEVER_NS, Durations, Floats, Ints
from labctl.analysis.table import NS


@dataclass(frozen=True)
class EventOrder:
    """The rows of one or more groups (cells, or objects of a pair of arms) and the steps of one forward walk.

    Rows lie group after group, by time, events before censored at the same instant; `unit` [rows] says which weight a
    row carries. Step s of group `group[s]` happens at `time_ns[s]`: rows `start:mid` have left since the group's step
    before (censored), rows `mid:end` are its events, all still at risk at that time. Steps of all groups stand in one
    order of time; `closes[s]` marks the last at its time. `width_s` is the time from a step to the next of its
    group, cut at tau, `first_s` [groups] the time before its first. `held_*` list, group by group, the units it holds
    and with how many rows, each counted `worth` [rows]; `rows_from` and `held_from` are [groups + 1].
    """

    unit: Ints
    worth: Floats
    rows_from: Ints
    start: Ints
    mid: Ints
    end: Ints
    group: Ints
    time_ns: Ints
    closes: np.ndarray
    width_s: Floats
    first_s: Floats
    held_unit: Ints
    held_rows: Floats
    held_from: Ints
    units: int
    tau_ns: int

    @property
    def groups(self) -> int:
        """How many groups walk together."""
        return len(self.first_s)

    def steps_until(self, time_ns: int) -> int:
        """How many steps happen at or before `time_ns`."""
        return int(np.searchsorted(self.time_ns, time_ns, side="right"))


def event_order(groups: Sequence[Durations], tau_ns: int, *, shared: bool = False) -> EventOrder:
    """The event order of `groups` up to tau.

    Each group has units of its own, numbered on from the group before; with `shared` all groups have the same units
    (an arm's episodes in a block and another arm's in the same block are drawn together). A ghost never makes a step.
    """
    unit, worth, starts, mids, ends, owner, times = [], [], [], [], [], [], []
    rows, units = 0, 0
    for g, durations in enumerate(groups):
        # events before censored rows at one instant; times lie far below half of what 64 bits hold, or are NEVER_NS
        order = np.argsort(np.minimum(durations.time_ns, NEVER_NS // 2) * 2 + ~durations.event, kind="stable")
        time, event = durations.time_ns[order], durations.event[order]
        unit.append(durations.episode[order] + (0 if shared else units))
        worth.append(durations.weight[order])
        happening = np.flatnonzero(event & (time <= tau_ns) & (time < NEVER_NS))
        at, first = np.unique(time[happening], return_index=True)
        mid = happening[first]
        stop = mid + np.diff(np.append(first, len(happening)))
        starts.append(np.append(0, stop)[: len(mid)] + rows)
        mids.append(mid + rows)
        ends.append(stop + rows)
        owner.append(np.full(len(at), g))
        times.append(at)
        rows += len(time)
        units = max(units, durations.episodes) if shared else units + durations.episodes
    rows_from = np.cumsum([0, *(len(s.time_ns) for s in groups)])
    steps = [np.concatenate(parts).astype(np.int64) for parts in (starts, mids, ends, owner, times)]
    return _assembled(np.concatenate(unit), np.concatenate(worth), rows_from, steps, len(groups), units, tau_ns)


def _assembled(
    unit: Ints, worth: Floats, rows_from: Ints, steps: Sequence[Ints], groups: int, units: int, tau_ns: int
) -> EventOrder:
    """Steps, given group after group, put in order of time; widths and holdings counted."""
    start, mid, end, owner, time = steps
    counts = np.bincount(owner, minlength=groups)
    group_from = np.concatenate(([0], np.cumsum(counts)))
    following = np.append(time[1:], tau_ns)
    following[group_from[1:][counts > 0] - 1] = tau_ns
    width = np.maximum(np.minimum(following, tau_ns) - np.minimum(time, tau_ns), 0) / NS
    first = np.full(groups, tau_ns)
    first[counts > 0] = np.minimum(time[group_from[:-1][counts > 0]], tau_ns)
    order = np.argsort(time, kind="stable")
    ordered = time[order]
    closes = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]
    row_group = np.repeat(np.arange(groups), np.diff(rows_from))
    held, place = np.unique(row_group * max(units, 1) + unit, return_inverse=True)
    held_rows = np.bincount(place, worth, len(held))
    held_group = held // max(units, 1)
    start, mid, end, owner, time = (
        np.ascontiguousarray(a[order], dtype=np.int64) for a in (start, mid, end, owner, time)
    )
    return EventOrder(
        np.ascontiguousarray(unit, dtype=np.int64),
        np.ascontiguousarray(worth, dtype=np.float64),
        rows_from.astype(np.int64),
        start,
        mid,
        end,
        owner,
        time,
        closes,
        width[order],
        first / NS,
        (held % max(units, 1)).astype(np.int64),
        held_rows.astype(np.float64),
        np.searchsorted(held_group, np.arange(groups + 1)).astype(np.int64),
        units,
        tau_ns,
    )
