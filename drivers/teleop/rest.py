"""Has every stick, trigger and axis of a device been seen at rest? Until then a hand may not have the robot. Pure.

May not: read a device, or forget what it has seen: a part that rested once is known to be read.

A library can give half of its way for a trigger that has sent nothing yet (SDL does until the first event), a pad can
be of another layout than believed, a puck can lie under a book. All of these look like a wish.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from labctl.drivers.teleop.gate import AXES, Reading


class Rest:
    """What of a device has rested since it was opened. deadband: share of full deflection that counts as rest."""

    def __init__(self, deadband: float) -> None:
        self._deadband = deadband
        self._rested: set[str] = set()
        self._away: dict[str, float] = {}

    def see(self, reading: Reading) -> None:
        """One more reading. Of a leader arm there is nothing to see: it is aligned instead."""
        for name, value in parts_of(reading).items():
            if name in self._rested:
                continue
            if abs(value) <= self._deadband:
                self._rested.add(name)
                self._away.pop(name, None)
            else:
                self._away[name] = value

    @property
    def missing(self) -> str:
        """What a person has to let go of, "" once all of it has rested."""
        away = dict(self._away)
        if not away:
            return ""
        text = ", ".join(
            f"{name} has sent nothing yet" if math.isnan(value) else f"{name} is at {value:.2f}"
            for name, value in away.items()
        )
        return f"let go of everything but the clutch: {text}; at rest it is within {self._deadband:g} (deadband)"


def parts_of(reading: Reading) -> Mapping[str, float]:
    """The deflections of a reading's parts by name, from -1 to 1; not a number is not known yet."""
    if reading.parts is not None:
        return reading.parts
    return {} if reading.axes is None else dict(zip(AXES, np.asarray(reading.axes, dtype=float).tolist(), strict=True))
