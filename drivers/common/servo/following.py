"""Does a robot go where it is sent? Whichever way setpoints are handed over, its joints stay near what was given.

May not: stop anything, or know a client. The robot goes by its own time: an emulator on a busy machine has less of it
than whoever gives setpoints, and falls behind them by as much without being one that does not follow.
"""

from __future__ import annotations

from collections import deque

import numpy as np

OFF_RAD = 0.15  # beyond all that was given within WINDOW_S
# so far ahead of the robot a policy's step may lie (DROID's longest), and no further is taken for granted
STEP_RAD = 0.2
WINDOW_S = 2.0  # a servo may lag; one that has gone elsewhere lies outside of where it was led for so long
MOST = 4000
JUMP_RAD = 0.05
HOME_RAD = 0.01  # nearer than this a robot is home


class Following:
    """The setpoints of the motion under way, and how far from all of them the robot is."""

    def __init__(self, takes_steps: bool = False, coast_s: float = 0.0) -> None:
        """coast_s: so long a robot that is given nothing goes on at the speed it was given last."""
        self._most_rad, self._coast_s = OFF_RAD + STEP_RAD * takes_steps, coast_s
        self._given: deque[tuple[float, np.ndarray]] = deque(maxlen=MOST)  # by the host's clock
        self._speed = np.zeros(0)
        self._device_s = self._due_s = 0.0  # due: the robot, in the time it had, is where it was led by then

    def reset(self) -> None:
        """The robot stands; the next setpoint begins a motion."""
        self._given.clear()

    def give(self, device_s: float, host_s: float, q: np.ndarray, dq: np.ndarray) -> None:
        """Setpoint q (dof,) rad with the speed dq (dof,) rad/s was given when the device's clock and the host's showed
        that. Where the thread that gives them stood still before, the robot was led on meanwhile by the speed it had.
        """
        if self._given:
            had_s = max(device_s - self._device_s, 0.0)
            self._due_s = min(host_s, self._due_s + had_s)
            if self._coast_s:
                self._given.append((host_s, self._given[-1][1] + min(had_s, self._coast_s) * self._speed))
        else:
            self._due_s = host_s
        self._device_s, self._speed = device_s, dq
        self._given.append((host_s, q))
        while self._due_s - self._given[0][0] > WINDOW_S:
            self._given.popleft()

    def wrong(self, q: np.ndarray) -> str:
        """What is wrong with joints measured at q (dof,) rad, in words; nothing mostly."""
        if not self._given:
            return ""
        rows = np.array([row for _, row in self._given])
        off = np.maximum(rows.min(axis=0) - q, q - rows.max(axis=0))
        joint = int(np.argmax(off))
        if off[joint] <= self._most_rad:
            return ""
        return f"joint {joint + 1} is {off[joint]:.2f} rad from where it was sent; the robot does not follow: stopped"


def jump(q: np.ndarray, start: np.ndarray) -> str:
    """What is wrong with a motion to q (dof,) rad from a robot at start; nothing mostly. It has to begin there,
    whatever the loop believes.
    """
    far = float(np.abs(q - start).max())
    return f"the first setpoint lies {far:.2f} rad from where the robot is; the robot stays" if far > JUMP_RAD else ""


def beside(q: np.ndarray | None, home: np.ndarray | None) -> str:
    """Which joint of a robot at q (dof,) rad is how far from home; nothing for one that is there or has no home."""
    if q is None or home is None:
        return ""
    joint = int(np.argmax(np.abs(q - home)))
    far = abs(float(q[joint] - home[joint]))
    return f"joint {joint + 1} is {far:.3f} rad from home (at most {HOME_RAD:.3f})" if far > HOME_RAD else ""


def not_staged(restless: str, away: str) -> str:
    """Why a robot that was sent home is not where episodes begin, in words; nothing for one that is. restless, away:
    what `States.restless` and `beside` say of it.
    """
    if restless:
        return f"the robot is home, and does not come to rest: {restless}"
    says = f"the robot stands, and {away}: something holds it, or what it carries is not set as its load"
    return says if away else ""
