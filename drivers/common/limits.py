"""Keeps setpoints inside position, velocity, acceleration, tool-speed and workspace limits, and brakes within them.

May not: know a robot's driver, time or a scene. One setpoint is one servo cycle: a late setpoint earns no larger step.

Three stages. Setpoints pass a moving average over 0.1 s, so that knots 0.1 s apart joined by straight lines become
motion of bounded acceleration (an average of points inside convex limits stays inside them). The whole tick is then
checked at once. Only if a check fails, or the robot could not brake inside the limits from the end of the tick, each
cycle is limited in turn; every state that path leaves behind can brake inside the limits, so it never has to break
one to keep another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labctl.config.cell_schema import Limits as CellLimits
from labctl.drivers.common import kinematics
from labctl.drivers.common.joint_ends import JointEnds
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.common.sweep import Sweep, levers
from labctl.errors import InputError

SMOOTHING_S = 0.1
AHEAD_S = (
    0.15  # a joint's speed fits what is left of its way so much later too: the robot lags, and a driver holds speeds
)
_REST = 1e-9  # rad: nearer than any encoder sees, and far more than the rounding of the average
_MARGIN = 1.0 - 1e-9  # differences of rounded positions must not exceed a limit in the last bit
_TOOL_MARGIN = 0.95  # of the tool's speed: what the bent path of a stop may add to the speed it began with


@dataclass(frozen=True, slots=True)
class Limits:
    """Joint limits (dof,) in rad, rad/s, rad/s2, the box the tool centre point stays in, base frame, m, and its speed,
    m/s. `ends` says how speeds fall near the ends of the joints, None where they do not.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    box_min: np.ndarray
    box_max: np.ndarray
    tool_speed: float = math.inf
    ends: JointEnds | None = None


def limits_of(robot_model: RobotModel, wanted: CellLimits, home: np.ndarray | None) -> Limits:
    """The cell's `[robot.limits]` narrowed onto the robot's published ones; home (dof,) rad is the cell's own, if any.

    Raises InputError for a wrong length, a limit that is wider than published, or a home that is outside the box or
    beyond the joints' ends.
    """
    velocity, acceleration = (np.array(row, dtype=float) for row in (wanted.velocity_rad_s, wanted.acceleration_rad_s2))
    for name, row, most in (
        ("velocity_rad_s", velocity, robot_model.velocity),
        ("acceleration_rad_s2", acceleration, robot_model.acceleration),
    ):
        if len(row) != robot_model.dof:
            found = row.tolist()
            raise InputError(f"robot.limits.{name} must be a list of {robot_model.dof} numbers, found {found}")
        if (row > most).any():
            allowed = ", ".join(f"{value:g}" for value in most)
            raise InputError(
                f"robot.limits.{name} must be above 0 and at most what the {robot_model.name} allows: {allowed}"
            )
    low, high = np.array(wanted.box_min_m, dtype=float), np.array(wanted.box_max_m, dtype=float)
    fastest = math.inf if wanted.tool_speed_m_s is None else wanted.tool_speed_m_s
    lower, upper = robot_model.lower, robot_model.upper
    if robot_model.ends is not None:  # a joint at rest beyond this could not even move
        outermost = robot_model.ends.reachable()
        lower, upper = np.maximum(lower, outermost[0]), np.minimum(upper, outermost[1])
    if home is not None:
        tool = kinematics.positions(robot_model.chain, home[None, :])[:, 0]
        if (tool <= low).any() or (tool >= high).any():
            at = tool.round(2).tolist()
            raise InputError(
                f"robot.limits: the box must hold the home of the {robot_model.name}, where the tool is at {at} m"
            )
        far = np.flatnonzero((home < lower) | (home > upper))
        if len(far):
            i = int(far[0])
            ends = f"{lower[i]:.3f} to {upper[i]:.3f} rad"
            raise InputError(f"home_rad: joint {i + 1} of the {robot_model.name} goes from {ends}, found {home[i]:g}")
    return Limits(lower, upper, velocity, acceleration, low, high, fastest, robot_model.ends)


def slowed(speed: np.ndarray, most: np.ndarray | float) -> np.ndarray:
    """A velocity in its own direction, as fast as it may be: no part beyond `most` (one for all, or one for each)."""
    share = float((np.abs(speed) / most).max())
    return speed / share if share > 1 else speed


def tool_twist(robot_model: RobotModel, q: np.ndarray, speed: np.ndarray, limits: Limits) -> np.ndarray:
    """What the tool does (6,), m/s and rad/s in the base's frame, with its joints at q (dof,) rad moving with speed
    (dof,) rad/s: both slowed, in their own direction, to what the cell allows a joint and the tool.
    """
    jacobian = kinematics.jacobian(robot_model.chain, q[None, :])[0][0]
    twist = jacobian @ slowed(speed, limits.velocity)
    return twist / max(1.0, float(np.linalg.norm(twist[:3])) / limits.tool_speed)


def within_tool_speed(robot_model: RobotModel, q: np.ndarray, speed: np.ndarray, most: float) -> np.ndarray:
    """Speeds (dof,) rad/s of joints at q (dof,) rad, all slowed by one share so that the tool goes at most m/s."""
    if math.isinf(most):
        return speed
    tool = kinematics.jacobian(robot_model.chain, q[None, :])[0][0, :3] @ speed
    return speed / max(1.0, float(np.linalg.norm(tool)) / most)


class Limiter:
    """The limits applied to one arm over time.

    State: the last setpoint `q` (dof,), its difference `move` (dof,) to the one before, the tool pose there, the
    averaging window.
    """

    def __init__(self, robot_model: RobotModel, limits: Limits, period_s: float) -> None:
        self.robot_model = robot_model
        self._step = limits.velocity * (period_s * _MARGIN)
        self._kick = limits.acceleration * (period_s * period_s * _MARGIN)
        self._middle, self._half = _span(limits.lower, limits.upper)
        self._ends, self._period_s, self._share_s = limits.ends, period_s, period_s * _MARGIN
        self._near = None if limits.ends is None else limits.ends.near(self._middle, AHEAD_S)
        self._box_middle, self._box_half = _span(limits.box_min, limits.box_max)
        self._box = list(zip(limits.box_min.tolist(), limits.box_max.tolist(), strict=True))
        self._lever = levers(robot_model.chain)
        self._tool_step = limits.tool_speed * period_s * _TOOL_MARGIN
        self.clipped = ""  # the limit that shaped the last tick, in words; the smoothing alone is none
        self._joints = list(
            zip(*(row.tolist() for row in (self._kick, self._middle, self._half, self._lever)), strict=True)
        )
        self._width = max(1, round(SMOOTHING_S / period_s))
        self._filters: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.reset(robot_model.home)

    def reset(self, q: np.ndarray) -> None:
        """Stand still at q (dof,)."""
        self._take(np.array(q, dtype=float), np.zeros(self.robot_model.dof))
        self._hold()

    def resume(self, q: np.ndarray, move: np.ndarray) -> None:
        """Go on from q (dof,) with the last step `move` (dof,), which a stop has led to."""
        self._take(np.array(q, dtype=float), np.array(move, dtype=float))
        if move.any():
            self._window = np.repeat(self.q[None, :], self._width, axis=0)
        else:
            self._hold()

    def _take(self, q: np.ndarray, move: np.ndarray, pose: tuple[float, ...] | None = None) -> None:
        self.q, self.move = q, move
        self.pose = pose or kinematics.pose(self.robot_model.chain, q.tolist())
        self.still = False

    def _hold(self) -> None:
        self.still = True
        self._window = np.repeat(self.q[None, :], self._width, axis=0)
        self._rest = self.q

    def follow(self, wanted: np.ndarray) -> Sweep:
        """Setpoints within the limits that follow `wanted` (n, dof).

        A row that is not finite is read as the row before it.
        """
        n = wanted.shape[0]
        if self.still and (wanted == self._rest).all():
            self.clipped = ""
            return Sweep(self.robot_model.chain, np.repeat(self.q[None, :], n, axis=0), self.pose, 0.0)
        if not math.isfinite(float(wanted.sum())):
            wanted = _finite(self._window[-1], wanted)
        seen = np.concatenate([self._window, wanted])
        sweep = self._at_once(seen, n)
        self.clipped = "" if sweep is not None else self._why(seen, n)
        if sweep is None:
            rows = np.array([self._cycle(row) for row in self._smooth(seen, n)[:n] + self._middle])
            sweep = Sweep(self.robot_model.chain, rows, self.pose, math.inf)
        self._window = seen[n:]
        if max(map(abs, self.move.tolist())) < _REST and self._arrived(wanted[-1]):
            self.still, self._rest = True, wanted[-1].copy()
            self.move = np.zeros(self.robot_model.dof)
        return sweep

    def _arrived(self, goal: np.ndarray) -> bool:
        return bool((self._window == goal).all()) and float(np.abs(self.q - goal).max()) < _REST

    def _smooth(self, seen: np.ndarray, n: int) -> np.ndarray:
        """Averages of the window and n wanted rows, as one product.

        (3 n, dof): n setpoints measured from the middle of the range, their n steps, the n changes of the step.
        """
        average, _ = self._filter(n)
        width = self._width
        rows = np.empty((width + n + 2, self.robot_model.dof))
        np.subtract(seen, self.q, out=rows[:-2])
        rows[-2] = self.move
        np.subtract(self.q, self._middle, out=rows[-1])
        return average @ rows

    def _filter(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        found = self._filters.get(n)
        if found is None:
            width = self._width
            row, column = np.arange(n)[:, None], np.arange(width + n + 2)[None, :]
            mean = ((column > row) & (column <= row + width)) / width
            before = np.zeros((1, width + n + 2))
            steps = np.diff(mean, axis=0, prepend=before)
            before[0, -2] = 1.0
            kicks = np.diff(steps, axis=0, prepend=before)
            mean[:, -1] = 1.0
            bound = np.repeat(np.stack([self._half, self._step, self._kick]), n, axis=0)
            found = self._filters[n] = (np.concatenate([mean, steps, kicks]), bound)
        return found

    def _at_once(self, seen: np.ndarray, n: int) -> Sweep | None:
        """The whole tick, if it keeps every limit and the robot could brake from its end; else None, nothing
        changed.
        """
        rows = self._smooth(seen, n)
        sizes = np.abs(rows)
        if not (sizes <= self._filter(n)[1]).all():
            return None
        q = rows[:n] + self._middle
        if self._near is not None:
            far, fast = (part.max(axis=0) for part in (sizes[:n], sizes[n : 2 * n] / self._share_s))
            if self._near.any(far.tolist(), fast.tolist()) and not self._slow_at_ends(q, rows[n : 2 * n]):
                return None
        end = kinematics.pose(self.robot_model.chain, q[-1].tolist())
        sweep = Sweep(self.robot_model.chain, q, end, float((sizes[n : 2 * n] @ self._lever).sum()))
        if self._room(end) <= sweep.travel and not self._in_box(sweep.positions):
            return None
        fast = self._tool_step < math.inf and float((sizes[n : 2 * n] @ self._lever).max()) > self._tool_step
        if fast and not self._slow_enough(sweep):
            return None
        move = rows[2 * n - 1]
        if not self._can_brake(q[-1], move, end):
            return None
        self._take(q[-1], move, end)
        return sweep

    def _slow_at_ends(self, q: np.ndarray, moves: np.ndarray) -> bool:
        """Do the steps (n, dof) that led to q (n, dof) keep to what the ends of the joints allow there?"""
        if self._ends is None:
            return True
        low, high = self._ends.most(q, AHEAD_S)
        return bool(((moves >= low * self._share_s) & (moves <= high * self._share_s)).all())

    def _slow_enough(self, sweep: Sweep) -> bool:
        steps = np.diff(sweep.positions, axis=1, prepend=np.array(self.pose[:3])[:, None])
        return bool((np.sqrt((steps * steps).sum(axis=0)) <= self._tool_step).all())

    def _why(self, seen: np.ndarray, n: int) -> str:
        """Which limit the smoothed setpoints would have broken, in words an operator understands."""
        rows = self._smooth(seen, n)
        over = np.argwhere(np.abs(rows) > self._filter(n)[1])
        if len(over):
            row, joint = over[0]
            return f"joint {joint + 1} {('position', 'speed', 'acceleration')[row // n]}"
        sweep = Sweep(self.robot_model.chain, rows[:n] + self._middle, self.pose, math.inf)
        if not self._slow_enough(sweep):
            return "tool speed"
        ramp = _ramp(rows[2 * n - 1], self._kick)
        path = np.concatenate([sweep.q, sweep.q[-1] + np.cumsum(ramp, axis=0)])  # and where it would have come to rest
        moves = np.concatenate([rows[n : 2 * n], ramp])
        for joint in range(self.robot_model.dof):
            if not self._slow_at_ends(
                *(np.where(np.arange(self.robot_model.dof) == joint, row, 0.0) for row in (path, moves))
            ):
                return f"joint {joint + 1} speed near its end"
        far = np.abs(path - self._middle) > self._half
        if far.any():
            return f"joint {int(np.argmax(far.any(axis=0))) + 1} position"
        beyond = np.abs(kinematics.positions(self.robot_model.chain, path).T - self._box_middle) > self._box_half
        return f"workspace box {'xyz'[int(np.argmax(beyond.any(axis=0)))]}"

    def brake_tail(self) -> np.ndarray:
        """The setpoints (k, dof) of a stop from the present state, which stays as it is; none when the robot stands."""
        return self.q + np.cumsum(_ramp(self.move, self._kick), axis=0)

    def brake(self, n: int) -> Sweep:
        """The next n setpoints of a stop: all joints slow down together, none faster than its limit, then stand."""
        moves = np.zeros((n, self.robot_model.dof))
        ramp = _ramp(self.move, self._kick)[:n]
        moves[: len(ramp)] = ramp
        q = self.q + np.cumsum(moves, axis=0)
        if len(ramp):
            self._take(q[-1], moves[-1])
        if not moves[-1].any():
            self._hold()
        return Sweep(self.robot_model.chain, q, self.pose, float((np.abs(moves) @ self._lever).sum()))

    def cut(self, sweep: Sweep, before: np.ndarray, i: int) -> Sweep:
        """Of a tick just followed, which began after `before` (dof,), keep setpoints 0..i and brake from there."""
        kept = sweep.q[: i + 1]
        self._take(kept[-1], kept[-1] - (kept[-2] if i else before))
        rest = len(sweep.q) - i - 1
        if not rest:
            return sweep
        braking = self.brake(rest)
        return Sweep(
            self.robot_model.chain, np.concatenate([kept, braking.q]), self.pose, sweep.travel + braking.travel
        )

    def _room(self, pose: tuple[float, ...]) -> float:
        return min(min(at - low, high - at) for at, (low, high) in zip(pose, self._box, strict=False))

    def _in_box(self, at: np.ndarray) -> bool:
        return bool((np.abs(at.T - self._box_middle) <= self._box_half).all())

    def _can_brake(self, q: np.ndarray, move: np.ndarray, pose: tuple[float, ...]) -> bool:
        """Whether a stop from q, last step `move`, stays inside: by a bound on its length, else by looking at it."""
        steps = move.tolist()
        cycles = max(abs(step) / joint[0] for step, joint in zip(steps, self._joints, strict=True))
        share, travel, out, reached = cycles / 2 + 1, 0.0, False, []
        for at, step, (_, middle, half, lever) in zip(q.tolist(), steps, self._joints, strict=True):
            way = abs(step) * share
            travel += lever * way
            reached.append(abs(at - middle) + way)
            out = out or reached[-1] > half
        near = self._near is not None and self._near.any(reached, [abs(step) / self._share_s for step in steps])
        if not out and not near and self._room(pose) > travel:
            return True
        ramp = _ramp(move, self._kick)
        path = q + np.cumsum(ramp, axis=0)
        return self._inside(path) and (not near or self._slow_at_ends(path, ramp))

    def _inside(self, q: np.ndarray) -> bool:
        return bool((np.abs(q - self._middle) <= self._half).all()) and self._in_box(
            kinematics.positions(self.robot_model.chain, q)
        )

    def _cycle(self, wanted: np.ndarray) -> np.ndarray:
        """One limited servo cycle towards `wanted` (dof,); else one cycle of the stop already known to be safe."""
        gap = wanted - self.q
        kick = self._kick  # the largest step v from which v, v - kick, v - 2 kick ... ends within the gap
        speed = np.minimum(np.sqrt(kick * (kick / 4 + 2 * np.abs(gap))) - kick / 2, self._step)
        move = np.copysign(speed, gap)
        if self._ends is not None:  # asked one step ahead, as the step ends there
            move = self._ends.within(move / self._share_s, self.q, AHEAD_S + self._period_s) * self._share_s
        move = np.clip(move, self.move - self._kick, self.move + self._kick)
        q = self.q + move
        pose = kinematics.pose(self.robot_model.chain, q.tolist())
        far = math.dist(pose[:3], self.pose[:3])
        if far > self._tool_step:
            move = np.clip(move * (0.99 * self._tool_step / far), self.move - self._kick, self.move + self._kick)
            q = self.q + move
            pose = kinematics.pose(self.robot_model.chain, q.tolist())
        too_fast = math.dist(pose[:3], self.pose[:3]) > self._tool_step
        inside = self._inside(q[None, :]) and self._slow_at_ends(q, move)
        if too_fast or not (inside and self._can_brake(q, move, pose)):
            ramp = _ramp(self.move, self._kick)
            move = ramp[0] if len(ramp) else np.zeros_like(move)
            q = self.q + move
            pose = None
        self._take(q, move, pose)
        return q


def _span(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (low + high) / 2, (high - low) / 2 * _MARGIN


def _finite(before: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    rows = wanted.copy()
    for row in rows:
        if np.isfinite(row).all():
            before = row
        else:
            row[:] = before
    return rows


def _ramp(move: np.ndarray, kick: np.ndarray) -> np.ndarray:
    """Steps (k, dof) that bring `move` per cycle to zero evenly, none changing by more than `kick`; none at rest."""
    # a ramp begun must go on as it was planned: without the small number, rounding would now and then add a cycle to
    # the rest of it
    cycles = math.ceil(float((np.abs(move) / kick).max()) - 1e-10)
    return move * (np.arange(cycles - 1, -1, -1) / max(cycles, 1))[:, None]
