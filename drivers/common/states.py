"""Measured states of a real robot on their way from the reading thread to the trace: each once, in order, none lost.

May not: talk to a device, or resample. The host's time of receipt stamps a sample; the device's own time is a column.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labctl.devices import Batch, StreamSpec
from labctl.drivers.common.robot_tables import RobotModel

STATE, DEVICE = "arm/state", "arm/device"
REST_RAD_S = 0.02  # slower than this a robot stands
MOST = 20_000  # samples kept while nobody drains; then the oldest go


@dataclass(frozen=True, slots=True)
class Sample:
    """One state of the device: q, dq, tau (dof,) in rad, rad/s, N m; tool pose tcp (7,); device_s its own clock; `more`
    as the link declares it; wrench (6,) at the tool, N and N m, base frame, of a controller that tells one. Or n of
    them, each with one more axis in front.
    """

    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    tcp: np.ndarray
    device_s: float | np.ndarray
    more: np.ndarray = field(default_factory=lambda: np.empty(0))
    wrench: np.ndarray = field(default_factory=lambda: np.empty(0))


def stacked(samples: Sequence[Sample]) -> Sample:
    """n samples as one of n rows."""
    columns = zip(*((s.q, s.dq, s.tau, s.tcp, s.device_s, s.more, s.wrench) for s in samples), strict=True)
    return Sample(*(np.array(column) for column in columns))


def state_spec(robot_model: RobotModel, rate_hz: float, *, device_clock: bool = True) -> StreamSpec:
    """The declared stream of a robot's states. Where it is may be seen; in speeds, torques and device times the rate of
    a policy's answers stands out. device_clock: the controller has a clock of its own.
    """
    q, dq, tau = (tuple(f"{what}.{name}" for name in robot_model.joint_names) for what in ("q", "dq", "tau"))
    pose = tuple(f"tcp.{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    device_s, unit = (("device_s",), "rad rad/s N.m m s") if device_clock else ((), "rad rad/s N.m m")
    columns = (*q, *dq, *tau, *pose, "gripper", *device_s)
    public, private = (*q, *pose, "gripper"), (*dq, *tau, *device_s)
    return StreamSpec(STATE, columns, unit, rate_hz, private_columns=private, public_columns=public)


def device_spec(more: Mapping[str, str], rate_hz: float) -> StreamSpec:
    """The declared stream of what a controller measures or says of itself beside its state: units by column. None of it
    depends on which arm it is, and all of it on how the arm moves and how busy its computer is: a blind role sees none.
    """
    columns = tuple(more)
    return StreamSpec(DEVICE, columns, " ".join(more.values()), rate_hz, private_columns=columns)


def state_specs(robot_model: RobotModel, rate_hz: float, more: Mapping[str, str]) -> tuple[StreamSpec, ...]:
    """All streams of a robot whose controller tells `more`."""
    return (state_spec(robot_model, rate_hz), *([device_spec(more, rate_hz)] if more else []))


class States:
    """A ring between two threads; what nobody collects for so long that it is full is a gap in the trace.

    `opening` tells the gripper's opening in m, which every sample gets. `table` makes one Sample of n rows of n states
    that were added, when somebody wants it: whoever reads a thousand states a second has no time for it.
    """

    def __init__(self, opening: Callable[[], float], table: Callable[[Sequence[Any]], Sample] = stacked) -> None:
        self._opening = opening
        self.table = table
        self._lock = threading.Lock()
        self._kept: deque[tuple[int, Any, float]] = deque(maxlen=MOST)
        self._last: tuple[int, Any] = (0, None)
        self._made: tuple[Any, Sample | None] = (None, None)
        self._turn = np.zeros(4)  # the last quaternion given out

    def add(self, t_ns: int, state: Any) -> None:
        """One more state, received at t_ns. Times that do not ascend are moved on by a nanosecond."""
        with self._lock:
            t_ns = max(t_ns, self._last[0] + 1)
            self._last = (t_ns, state)
            self._kept.append((t_ns, state, self._opening()))

    @property
    def newest(self) -> Sample | None:
        """The last state seen, None before the first."""
        with self._lock:
            state = self._last[1]
            if state is not None and state is not self._made[0]:
                one = self.table([state])
                tcp = self._one_side(one.tcp)
                wrench = one.wrench[0] if len(one.wrench) else one.wrench
                kept = Sample(one.q[0], one.dq[0], one.tau[0], tcp[0], np.ravel(one.device_s)[0], wrench=wrench)
                self._made = (state, kept)
            return self._made[1]

    def restless(self) -> str:
        """Which joint turns how fast, while the robot does not stand; "" when it does."""
        newest = self.newest
        if newest is None:
            return "no state has come yet"
        joint = int(np.argmax(np.abs(newest.dq)))
        speed = abs(float(newest.dq[joint]))
        return f"joint {joint + 1} at {speed:.2f} rad/s" if speed > REST_RAD_S else ""

    def drain(self) -> list[Batch]:
        """All samples since the last call as one batch of the declared columns, and one of what comes beside them."""
        with self._lock:
            kept, self._kept = self._kept, deque[tuple[int, Any, float]](maxlen=MOST)
        if not kept:
            return []
        rows = self.table([state for _, state, _ in kept])
        with self._lock:
            tcp = self._one_side(rows.tcp)
        t_ns = np.array([t_ns for t_ns, _, _ in kept], np.int64)
        opening = np.array([opening for _, _, opening in kept])
        found = [Batch(STATE, t_ns, np.column_stack([rows.q, rows.dq, rows.tau, tcp, opening, rows.device_s]))]
        return [*found, Batch(DEVICE, t_ns, rows.more)] if rows.more.size else found

    def _one_side(self, tcp: np.ndarray) -> np.ndarray:
        """Poses (n, 7) whose quaternions stay on the side of the one before: one rotation has two."""
        turns = tcp[:, 3:]
        before = np.concatenate([self._turn[None, :], turns[:-1]])
        side = np.cumprod(np.where((turns * before).sum(axis=1) < 0, -1.0, 1.0))[:, None]
        self._turn = turns[-1] * side[-1]
        return np.column_stack([tcp[:, :3], turns * side])
