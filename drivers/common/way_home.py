"""The way of an arm to where episodes begin: the tool straight up first, then over, inside the box or not at all.

May not: move anything, or know a client. The way is rows of joints one control period apart, from rest to rest; no row
is faster than asked for, beyond the cell's limits, or outside its box. An arm that stands outside the box may come
back: on its way it never lies further outside than where it began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import AHEAD_S, Limits
from labctl.drivers.common.robot_tables import Arm

from labctl.errors import DeviceRefused

NEAR_RAD = 0.02  # nearer to home than this nothing is lifted
LIFT_M = 0.005  # nor for less than this
OFF_M = 2e-3  # the lifted tool stays this close to its line
ENOUGH_M = 0.15  # clears the rim of a tote
LOOK = 120  # rows at which a part of the way is looked at before its time is known
SHARE = 0.9  # of the cell's accelerations and of what the ends of the joints allow
INSIDE_M = 1e-3
JUMP_RAD, TURN_RAD = 0.05, 5.0  # between two rows of a lift, and over all of it
GUIDE = "lead it by hand to where its way home is free, or change home_rad or the box"

Part = Callable[[np.ndarray], np.ndarray]


def way_home(
    arm: Arm, limits: Limits, start: np.ndarray, home: np.ndarray, speed: float, period_s: float
) -> np.ndarray:
    """Joints (n, dof) rad that lead from start (dof,) to home (dof,) at up to `speed` rad/s, n at least 1.

    Raises DeviceRefused, in words for a person, for a way that leaves the box or that the arm cannot go.
    """
    parts: list[Part] = []
    low = kinematics.positions(arm.chain, start[None, :])[2, 0]
    high = kinematics.positions(arm.chain, home[None, :])[2, 0]
    at = start
    if high - low > LIFT_M and float(np.abs(home - start).max()) > NEAR_RAD:
        lift, at = _highest(arm, limits, start, min(high, float(limits.box_max[2]) - INSIDE_M) - low)
        parts.append(lift)
    parts.append(lambda s, at=at: at + s[:, None] * (home - at))
    return np.concatenate([_timed(arm, limits, part, start, speed, period_s) for part in parts])


def _highest(arm: Arm, limits: Limits, start: np.ndarray, by_m: float) -> tuple[Part, np.ndarray]:
    """The lift by by_m, or by as much of it as the arm can, ENOUGH_M at least; and the joints (dof,) at its end."""
    for share in (1.0, 0.75, 0.5, 0.25):
        if share < 1.0 and share * by_m < ENOUGH_M:
            break
        part = _lift(arm, limits, start, share * by_m)
        try:
            return part, part(np.linspace(0.0, 1.0, 20))[-1]
        except DeviceRefused:
            continue
    raise DeviceRefused(f"the tool cannot be lifted straight up by {by_m:.2f} m, to the height of home; {GUIDE}")


def _lift(arm: Arm, limits: Limits, start: np.ndarray, by_m: float) -> Part:
    pose = np.array(kinematics.pose(arm.chain, start.tolist()))

    def rows(s: np.ndarray) -> np.ndarray:
        poses = np.repeat(pose[None, :], len(s), axis=0)
        poses[:, 2] += s * by_m
        q = kinematics.solve(arm.chain, poses, start, np.minimum(limits.lower, start), np.maximum(limits.upper, start))
        missed = float(np.abs(kinematics.positions(arm.chain, q) - poses[:, :3].T).max())
        steps = np.abs(np.diff(q, axis=0, prepend=start[None, :])).max(axis=1)
        if missed > OFF_M or (steps > JUMP_RAD + TURN_RAD * np.diff(s, prepend=0.0)).any():
            raise DeviceRefused(f"the tool cannot be lifted straight up by {by_m:.2f} m; {GUIDE}")
        return q

    return rows


def _gentle(s: np.ndarray) -> np.ndarray:
    """From 0 to 1 with speed and acceleration zero at both ends (the polynomial of least jerk)."""
    return s**3 * (10 - 15 * s + 6 * s * s)


def _timed(arm: Arm, limits: Limits, part: Part, start: np.ndarray, speed: float, period_s: float) -> np.ndarray:
    """The rows of one part, as soon after each other as the limits allow."""
    q = part(_gentle(np.linspace(0.0, 1.0, LOOK + 1)))
    step, places = np.diff(q, axis=0) * LOOK, kinematics.positions(arm.chain, q)
    _check_box(limits, places, kinematics.positions(arm.chain, start[None, :])[:, 0])
    tool = np.linalg.norm(np.diff(places, axis=1), axis=0) * LOOK
    needs = [float((np.abs(step) / np.minimum(limits.velocity, speed)).max()), float(tool.max()) / limits.tool_speed]
    kick = np.abs(np.diff(step, axis=0, prepend=step[:1] * 0)) * LOOK
    needs.append(math.sqrt(float((kick / (SHARE * limits.acceleration)).max())))
    if limits.ends is not None:
        low, high = limits.ends.most(q[1:], AHEAD_S)
        most = np.where(step > 0, high, -low) * SHARE
        needs.append(float((np.abs(step) / np.maximum(most, 0.02)).max()))
    n = max(1, math.ceil(max(needs) * 1.02 / period_s))
    return part(_gentle(np.arange(1, n + 1) / n))


def _check_box(limits: Limits, places: np.ndarray, first: np.ndarray) -> None:
    """Raises DeviceRefused where places (3, n) lie outside, and further than `first` (3,), where the way began."""
    for axis, at, low, high, began in zip("xyz", places, limits.box_min, limits.box_max, first, strict=True):
        lowest, highest = min(low, began) - INSIDE_M, max(high, began) + INSIDE_M
        if at.min() < lowest or at.max() > highest:
            worst = at.min() if at.min() < lowest else at.max()
            where = f"at {axis} = {worst:.2f} m (the box: {low:g} to {high:g})"
            raise DeviceRefused(f"the way home leaves the workspace box {where}; {GUIDE}")


class WayHome:
    """A way home, found in a thread of its own while the arm stands, then given row by row.

    A watchdog on a robot that is not told within a tenth of a second that somebody is there ends its program.
    """

    def __init__(self, arm: Arm, limits: Limits, start: np.ndarray, home: np.ndarray, speed: float, hz: float) -> None:
        self._at = start
        self._pool = ThreadPoolExecutor(1, "way-home")
        self._found = self._pool.submit(way_home, arm, limits, start, home, speed, 1.0 / hz)
        self._pool.shutdown(wait=False)
        self._rows: Iterator[np.ndarray] | None = None

    def ready(self) -> bool:
        """Has it been looked for to the end?"""
        return self._found.done()

    def step(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The next joints (dof,) and those before them; None at the end. Raises DeviceRefused where there is no way."""
        if self._rows is None:
            self._rows = iter(self._found.result())
        row, before = next(self._rows, None), self._at
        if row is None:
            return None
        self._at = row
        return row, before
