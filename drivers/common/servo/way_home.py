"""The way of a robot to where episodes begin: the tool straight up first, then over, inside the box or not at all.

Where the tool cannot be lifted with the hand as it is, the hand may turn; where it cannot be lifted at all, the joints
go straight home.

May not: move anything, or know a client. The way is rows of joints one control period apart, from rest to rest; no row
is faster than asked for, beyond the cell's limits, or outside its box. A robot that stands outside the box may come
back: on its way it never lies further outside than where it began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import AHEAD_S, Limits
from labctl.drivers.common.robot_tables import RobotModel
from labctl.errors import DeviceRefused

NEAR_RAD = 0.02  # nearer to home than this nothing is lifted
LIFT_M = 0.005  # nor for less than this
OFF_M = 2e-3  # the lifted tool stays this close to its line
ENOUGH_M = 0.15  # clears the rim of a tote
LOOK = 120  # rows at which a part of the way is looked at before its time is known
SHARE = 0.9  # of the cell's accelerations and of what the ends of the joints allow
INSIDE_M = 1e-3
SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)  # of the way up to the height of home
TURN_RAD = 15.0  # no joint turns faster, for each unit of a lift
SOLVED, DEGREE = 40, 8  # joints found along a lift, and the polynomial through them
END_RAD = 0.01  # a lift keeps this far from the ends of the joints, so that the polynomial stays inside
GUIDE = "lead it by hand to where its way home is free, or change home_rad or the box"

Part = Callable[[np.ndarray], np.ndarray]


def way_home(
    robot_model: RobotModel, limits: Limits, start: np.ndarray, home: np.ndarray, speed: float, period_s: float
) -> np.ndarray:
    """Joints (n, dof) rad that lead from start (dof,) to home (dof,) at up to `speed` rad/s, n at least 1.

    Raises DeviceRefused, in words for a person, where even the way straight by the joints leaves the box.
    """
    points = [*_links(robot_model), robot_model.chain]
    for lift in _lifts(robot_model, limits, start, home):
        at = start if lift is None else lift(np.ones(1))[0]
        parts = [*([] if lift is None else [lift]), _straight(at, home)]
        try:
            return np.concatenate([_timed(points, limits, part, start, speed, period_s) for part in parts])
        except DeviceRefused:
            if lift is None:
                raise
    raise AssertionError("the last way has no lift")


def _straight(start: np.ndarray, end: np.ndarray) -> Part:
    """Straight by the joints, each (dof,) rad."""
    return lambda s: start + s[:, None] * (end - start)


def _lifts(robot_model: RobotModel, limits: Limits, start: np.ndarray, home: np.ndarray) -> Iterator[Part | None]:
    """The lifts that the robot can do, the best first: the hand kept as it is, then free to turn; at last none.

    A lift of ENOUGH_M clears a tote, so any of these comes before any lower one.
    """
    low = kinematics.positions(robot_model.chain, start[None, :])[2, 0]
    high = kinematics.positions(robot_model.chain, home[None, :])[2, 0]
    by_m = min(high, float(limits.box_max[2]) - INSIDE_M) - low
    if by_m > LIFT_M and float(np.abs(home - start).max()) > NEAR_RAD:
        heights = [share * by_m for share in SHARES if share == 1.0 or share * by_m > LIFT_M]
        for group in ([h for h in heights if h >= ENOUGH_M], [h for h in heights if h < ENOUGH_M]):
            for turns in (False, True):
                yield from filter(None, (_lift(robot_model, limits, start, height, turns) for height in group))
    yield None


def _lift(robot_model: RobotModel, limits: Limits, start: np.ndarray, by_m: float, turns: bool) -> Part | None:
    """The tool straight up by by_m, its orientation kept unless it turns; None where the robot cannot.

    A polynomial through the joints found on the line: rows that are solved one by one have bends in them, which a robot
    can only follow beyond its accelerations.
    """
    s = np.linspace(0.0, 1.0, SOLVED)
    pose = np.array(kinematics.pose(robot_model.chain, start.tolist()))[: 3 if turns else 7]
    poses = np.repeat(pose[None, :], SOLVED, axis=0)
    poses[:, 2] += s * by_m
    lower, upper = np.minimum(limits.lower, start), np.maximum(limits.upper, start)
    inset = np.minimum(END_RAD, (upper - lower) / 4)
    found = kinematics.solve(
        robot_model.chain, poses, start, np.minimum(lower + inset, start), np.maximum(upper - inset, start)
    )
    powers = np.arange(1, DEGREE + 1)
    factors = np.linalg.lstsq(s[:, None] ** powers, found - start, rcond=None)[0]

    def rows(s: np.ndarray) -> np.ndarray:
        return start + s[:, None] ** powers @ factors

    s = np.linspace(0.0, 1.0, LOOK + 1)
    q = rows(s)
    line = np.repeat(pose[:3, None], LOOK + 1, axis=1)
    line[2] += s * by_m
    missed = float(np.abs(kinematics.positions(robot_model.chain, q) - line).max())
    fast = float(np.abs(np.diff(q, axis=0)).max()) * LOOK
    if missed > OFF_M or fast > TURN_RAD or (q < lower - 1e-9).any() or (q > upper + 1e-9).any():
        return None
    return rows


def _links(robot_model: RobotModel) -> list[kinematics.Chain]:
    """Chains that end where a link does: the elbow, the wrist, the flange."""
    rows = robot_model.chain.rows
    return [replace(robot_model.chain, rows=rows[:k], tool_z=0.0, tool_xy=(0.0, 0.0)) for k in range(2, len(rows) + 1)]


def _gentle(s: np.ndarray) -> np.ndarray:
    """From 0 to 1 with speed and acceleration zero at both ends (the polynomial of least jerk)."""
    return s**3 * (10 - 15 * s + 6 * s * s)


def _timed(
    points: list[kinematics.Chain], limits: Limits, part: Part, start: np.ndarray, speed: float, period_s: float
) -> np.ndarray:
    """The rows of one part, as soon after each other as the limits allow. The last of the points is the tool."""
    q = part(_gentle(np.linspace(0.0, 1.0, LOOK + 1)))
    step, places = np.diff(q, axis=0) * LOOK, kinematics.positions(points[-1], q)
    _check_box(limits, places, kinematics.positions(points[-1], start[None, :])[:, 0])
    for link in points[:-1]:
        _check_floor(limits, kinematics.positions(link, q)[2], kinematics.positions(link, start[None, :])[2, 0])
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


def _check_floor(limits: Limits, z: np.ndarray, began: float) -> None:
    """Raises DeviceRefused where a link's heights z (n,), m, fall below the box, and below where it began."""
    if (lowest := float(z.min())) < min(float(limits.box_min[2]), began) - INSIDE_M:
        where = f"at z = {lowest:.2f} m (the box begins at {limits.box_min[2]:g})"
        raise DeviceRefused(f"on the way home the robot itself comes below the workspace box {where}; {GUIDE}")


class WayHome:
    """A way home, found in a thread of its own while the robot stands, then given row by row.

    Finding it takes longer than a UR's watchdog waits for the servo thread.
    """

    def __init__(
        self, robot_model: RobotModel, limits: Limits, start: np.ndarray, home: np.ndarray, speed: float, hz: float
    ) -> None:
        self._at = start
        self._pool = ThreadPoolExecutor(1, "way-home")
        self._found = self._pool.submit(way_home, robot_model, limits, start, home, speed, 1.0 / hz)
        self._pool.shutdown(wait=False)
        self._rows: Iterator[np.ndarray] | None = None
        self._step: tuple[np.ndarray, np.ndarray] | None = None
        self._given = True

    def ready(self) -> bool:
        """Has it been looked for to the end?"""
        return self._found.done()

    def step(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The next joints (dof,) and those before them; None at the end. Raises DeviceRefused where there is no way."""
        if not self._given:
            self._given = True
            return self._step
        if self._rows is None:
            self._rows = iter(self._found.result())
        row, before = next(self._rows, None), self._at
        if row is None:
            return None
        self._at = row
        self._step = row, before
        return self._step

    def again(self) -> None:
        """The last step was not given: it is the next one."""
        self._given = False
