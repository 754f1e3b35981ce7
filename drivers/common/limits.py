"""Keeps setpoints inside position, velocity, acceleration and workspace limits, and brakes within them.

May not: know a robot's driver, time or a scene. One setpoint is one servo cycle: a late setpoint earns no larger step.

Three stages. Setpoints pass a moving average over 0.1 s, so that knots 0.1 s apart joined by straight lines become motion of
bounded acceleration (an average of points inside convex limits stays inside them). The whole tick is then checked at once. Only if
a check fails, or the arm could not brake inside the limits from the end of the tick, each cycle is limited in turn; every state
that path leaves behind can brake inside the limits, so it never has to break one to keep another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from labctl.drivers.common.arms import Arm
from labctl.drivers.common.kinematics import positions

from labctl.errors import InputError

SMOOTHING_S = 0.1
_MARGIN = 1.0 - 1e-9  # differences of rounded positions must not exceed a limit in the last bit


@dataclass(frozen=True, slots=True)
class Limits:
    """Joint limits (dof,) in rad, rad/s, rad/s2 and the box the tool centre point stays in, base frame, m."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    box_min: np.ndarray
    box_max: np.ndarray


def limits_of(arm: Arm, wanted: Mapping[str, Any]) -> Limits:
    """The cell's `[robot.limits]` narrowed onto the arm's published ones.

    Raises InputError for a missing list, a wrong length, a limit that is not positive or is wider than published, or a box that does
    not hold the arm's home.
    """
    velocity = _row(wanted, "velocity_rad_s", arm.dof)
    acceleration = _row(wanted, "acceleration_rad_s2", arm.dof)
    for name, row, most in (
        ("velocity_rad_s", velocity, arm.velocity),
        ("acceleration_rad_s2", acceleration, arm.acceleration),
    ):
        if (row <= 0).any() or (row > most).any():
            allowed = ", ".join(f"{value:g}" for value in most)
            raise InputError(f"robot.limits.{name} must be above 0 and at most what the {arm.name} allows: {allowed}")
    low, high = _row(wanted, "box_min_m", 3), _row(wanted, "box_max_m", 3)
    home = positions(arm.chain, arm.home[None, :])[:, 0]
    if (home <= low).any() or (home >= high).any():
        raise InputError(f"robot.limits: the box must hold the home of the {arm.name} at {home.round(2).tolist()} m")
    return Limits(arm.lower, arm.upper, velocity, acceleration, low, high)


def _row(wanted: Mapping[str, Any], name: str, length: int) -> np.ndarray:
    value = wanted.get(name)
    if not isinstance(value, Sequence) or len(value) != length:
        raise InputError(f"robot.limits.{name} must be a list of {length} numbers, found {value!r}")
    return np.array([float(number) for number in value])


class Limiter:
    """The limits applied to one arm over time. State: the last setpoint q (dof,), its velocity (dof,), and the averaging window."""

    def __init__(self, arm: Arm, limits: Limits, period_s: float) -> None:
        self.arm, self.limits, self.period = arm, limits, period_s
        self._step = limits.velocity * (period_s * _MARGIN)
        self._kick = limits.acceleration * (period_s * period_s * _MARGIN)
        self._low, self._high = limits.box_min[:, None], limits.box_max[:, None]
        self._width = max(1, round(SMOOTHING_S / period_s))
        # no point of the arm is further than this from any of its axes
        self._reach = sum(math.hypot(a, d) for a, _, d in arm.chain.rows) + arm.chain.tool_z
        self.reset(arm.home)

    def reset(self, q: np.ndarray) -> None:
        """Stand still at q (dof,)."""
        self.q = np.array(q, dtype=float)
        self.move = np.zeros(self.arm.dof)  # difference of the last two setpoints
        self._window = np.repeat(self.q[None, :], self._width, axis=0)
        self._tip = positions(self.arm.chain, self.q[None, :])
        self._settled = True

    @property
    def tip(self) -> np.ndarray:
        """Tool position (3,) of the last setpoint."""
        return self._tip[:, 0]

    @property
    def still(self) -> bool:
        return not self.move.any()

    def follow(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Setpoints (n, dof) within the limits that follow `wanted` (n, dof), and their tool positions (3, n) in m.

        A row that is not finite is read as the row before it.
        """
        n = wanted.shape[0]
        if self._settled and (wanted == self.q).all():
            return np.repeat(self.q[None, :], n, axis=0), np.repeat(self._tip, n, axis=1)
        q = self._smooth(self._finite(wanted))
        moves = np.empty_like(q)
        moves[0] = q[0] - self.q
        np.subtract(q[1:], q[:-1], out=moves[1:])
        kicks = np.empty_like(q)
        kicks[0] = moves[0] - self.move
        np.subtract(moves[1:], moves[:-1], out=kicks[1:])
        at = positions(self.arm.chain, q)
        if not (
            (np.abs(kicks) <= self._kick).all()
            and (np.abs(moves) <= self._step).all()
            and self._inside(q, at)
            and self._can_brake(q[-1], moves[-1], at[:, -1])
        ):
            q = np.array([self._cycle(row) for row in q])
            at = positions(self.arm.chain, q)
        else:
            self.q, self.move = q[-1].copy(), moves[-1].copy()
        self._tip = at[:, -1:]
        self._settled = not self.move.any() and bool((self._window == self.q).all())
        return q, at

    def brake(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The next n setpoints (n, dof) of a stop: a straight ramp of all joints together, then standing still; and tool positions (3, n)."""
        ramp = _ramp(self.move, self._kick)
        moves = np.zeros((n, self.arm.dof))
        moves[: len(ramp)] = ramp[:n]
        q = self.q + np.cumsum(moves, axis=0)
        self.q, self.move = q[-1].copy(), moves[-1].copy()
        self._window[:] = self.q
        self._settled = not self.move.any()
        at = positions(self.arm.chain, q)
        self._tip = at[:, -1:]
        return q, at

    def at(self, q: np.ndarray, before: np.ndarray, at: np.ndarray) -> None:
        """Take q (dof,), reached from `before` (dof,), with its tool position (3,), as the present state: what follows was cut off."""
        self.q, self.move, self._tip = q.copy(), q - before, at[:, None]

    def _finite(self, wanted: np.ndarray) -> np.ndarray:
        if math.isfinite(float(wanted.sum())):
            return wanted
        rows, last = wanted.copy(), self._window[-1]
        for row in rows:
            if np.isfinite(row).all():
                last = row
            else:
                row[:] = last
        return rows

    def _smooth(self, wanted: np.ndarray) -> np.ndarray:
        width = self._width
        rows = np.concatenate([self._window, wanted])
        sums = np.cumsum(rows - self.q, axis=0)
        self._window = rows[-width:]
        return self.q + (sums[width:] - sums[:-width]) / width

    def _inside(self, q: np.ndarray, at: np.ndarray) -> bool:
        limits = self.limits
        return bool(
            (at >= self._low).all()
            and (at <= self._high).all()
            and (q >= limits.lower).all()
            and (q <= limits.upper).all()
        )

    def _can_brake(self, q: np.ndarray, move: np.ndarray, tip: np.ndarray) -> bool:
        """Whether a stop from q with the last step `move` stays inside: by a bound on its length, else by looking at it."""
        cycles = float((np.abs(move) / self._kick).max())
        if cycles == 0.0:
            return True
        far = np.abs(move) * (cycles / 2 + 1)
        limits = self.limits
        room = min(float((tip - limits.box_min).min()), float((limits.box_max - tip).min()))
        if (
            room > self._reach * float(far.sum())
            and (q - far >= limits.lower).all()
            and (q + far <= limits.upper).all()
        ):
            return True
        path = q + np.cumsum(_ramp(move, self._kick), axis=0)
        return self._inside(path, positions(self.arm.chain, path))

    def _cycle(self, wanted: np.ndarray) -> np.ndarray:
        """One limited servo cycle towards `wanted` (dof,), braking in time for it; falls back on the stop already known to be safe."""
        gap = wanted - self.q
        approach = np.sqrt(2 * self._kick * np.abs(gap)) - self._kick / 2
        speed = np.minimum(np.minimum(np.abs(gap), np.maximum(approach, 0.0)), self._step)
        move = np.clip(np.copysign(speed, gap), self.move - self._kick, self.move + self._kick)
        q = self.q + move
        tip = positions(self.arm.chain, q[None, :])
        if not (self._inside(q[None, :], tip) and self._can_brake(q, move, tip[:, 0])):
            ramp = _ramp(self.move, self._kick)
            move = ramp[0] if len(ramp) else np.zeros_like(move)
            q = self.q + move
        self.q, self.move = q, move
        return q


def _ramp(move: np.ndarray, kick: np.ndarray) -> np.ndarray:
    """Steps (k, dof) that bring a step `move` per cycle to zero in a straight line, none changing by more than `kick`; (0, dof) if at rest."""
    cycles = math.ceil(float((np.abs(move) / kick).max()))
    return move * (np.arange(cycles - 1, -1, -1) / max(cycles, 1))[:, None]
