"""Beyond which limits of the cell a sensor's values are, sample by sample. Pure.

May not: decide what that means for an episode, or take what is no number for a value within a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.clock import SECOND
from labctl.config.sensors import SensorLimit

Change = tuple[int, tuple[int, ...]]  # the time of a sample, and the limits that its sensor is beyond from then on


class SensorLimits:
    """The limits of one sensor. columns: of its stream, in order; beyond: the limits that it is beyond now, by their
    places in the list.
    """

    def __init__(self, limits: Sequence[SensorLimit], columns: Sequence[str]) -> None:
        self._limits = tuple(limits)
        self._at = [[columns.index(name) for name in limit.columns] for limit in limits]
        self._since_ns: list[int | None] = [None] * len(self._limits)
        self.beyond: tuple[int, ...] = ()

    def look(self, t_ns: np.ndarray, values: np.ndarray) -> list[Change]:
        """Every change in samples t_ns (n,), values (n, columns), in order: a limit exceeded for a moment is two."""
        if not self._limits:
            return []
        outside = np.column_stack(
            [_outside(limit, values[:, at]) for limit, at in zip(self._limits, self._at, strict=True)]
        )
        changes: list[Change] = []
        for at_ns, row in zip(t_ns.tolist(), outside.tolist(), strict=True):
            beyond = tuple(i for i, out in enumerate(row) if self._lasts(i, at_ns, out=out))
            if beyond != self.beyond:
                self.beyond = beyond
                changes.append((at_ns, beyond))
        return changes

    def lost(self) -> None:
        """Nothing is measured: how long a value has been outside counts anew, and what the sensor is beyond stays."""
        self._since_ns = [since if i in self.beyond else None for i, since in enumerate(self._since_ns)]

    def _lasts(self, number: int, at_ns: int, *, out: bool) -> bool:
        if not out:
            self._since_ns[number] = None
            return False
        since_ns = self._since_ns[number]
        if since_ns is None:
            since_ns = self._since_ns[number] = at_ns
        return at_ns - since_ns >= round(self._limits[number].for_s * SECOND)


def _outside(limit: SensorLimit, values: np.ndarray) -> np.ndarray:
    """Which rows of the limit's own columns (n, k) are outside; one that is no number is within no limit."""
    size = values[:, 0] if values.shape[1] == 1 else np.sqrt((values * values).sum(axis=1))
    within = np.isfinite(size)
    if limit.above is not None:
        within &= size <= limit.above
    if limit.below is not None:
        within &= size >= limit.below
    return ~within
