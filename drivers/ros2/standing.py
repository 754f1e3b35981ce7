"""A robot that is led and stands: it takes commands, and nothing comes of them.

May not: take for that a robot that has moved since it was home, which something may hold where it is, or one whose
setpoints lie near one another, however long.

A controller that is loaded and inactive hears each command as an active one does (ros2_controllers subscribes in
`on_configure`), so that somebody listens says nothing.
"""

from __future__ import annotations

import numpy as np

LED_RAD = 0.02  # between two setpoints of a joint: beyond what any robot takes for standing
MOVED_RAD = 1e-3  # of any joint
STANDS_S = 1.0  # of the robot's own time


class Standing:
    """What was asked of a robot since it was home, until it first moves."""

    def __init__(self) -> None:
        self.again()

    def again(self) -> None:
        """It is opened, recovered, or led home: from here on it has not moved yet."""
        self._begin: np.ndarray | None = None  # where it stood
        self._low = self._high = np.zeros(0)
        self._since_s: float | None = None  # when it had been led so far
        self._moved = False

    def led(self, to: np.ndarray, at: np.ndarray, device_s: float) -> bool:
        """A setpoint `to` (dof,) rad is to be given to a robot seen at `at` (dof,) at device_s: has it stood all along,
        though it was led?
        """
        if self._begin is None:
            self._begin, self._low, self._high = at, to, to
        self._moved = self._moved or float(np.abs(at - self._begin).max()) > MOVED_RAD
        if self._moved:
            return False
        self._low, self._high = np.minimum(self._low, to), np.maximum(self._high, to)
        if self._since_s is None and float((self._high - self._low).max()) > LED_RAD:
            self._since_s = device_s
        return self._since_s is not None and device_s - self._since_s > STANDS_S
