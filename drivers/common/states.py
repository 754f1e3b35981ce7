"""Measured states of a real arm on their way from the reading thread to the trace: each once, in order, none lost.

May not: talk to a device, or resample. The host's time of receipt stamps a sample; the device's own time is a column.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from labctl.drivers.common.arms import Arm

from labctl.devices import Batch, StreamSpec

STATE = "arm/state"
MOST = 20_000  # samples kept while nobody drains; then the oldest go, and are counted


@dataclass(frozen=True, slots=True)
class Sample:
    """One state of the device: q, dq, tau (dof,) in rad, rad/s, N m; tool pose tcp (7,); device_s its own clock."""

    t_ns: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    tcp: np.ndarray
    device_s: float


def state_spec(arm: Arm, rate_hz: float) -> StreamSpec:
    """The declared stream of an arm's states."""
    joints = tuple(f"{what}.{name}" for what in ("q", "dq", "tau") for name in arm.joint_names)
    pose = tuple(f"tcp.{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    return StreamSpec(STATE, (*joints, *pose, "gripper", "device_s"), "rad rad/s N.m m s", rate_hz)


class States:
    """A ring between two threads. `newest` is the last state seen; `overrun` counts what nobody collected in time.

    `opening` tells the gripper's opening in m, which every sample gets.
    """

    def __init__(self, opening: Callable[[], float]) -> None:
        self._opening = opening
        self._lock = threading.Lock()
        self._kept: deque[tuple[Sample, float]] = deque()
        self._last_ns = 0
        self.newest: Sample | None = None
        self.overrun = 0
        self.seen = 0

    def add(self, sample: Sample) -> None:
        """One more state. Times that do not ascend are moved on by a nanosecond."""
        with self._lock:
            if sample.t_ns <= self._last_ns:
                sample = Sample(self._last_ns + 1, sample.q, sample.dq, sample.tau, sample.tcp, sample.device_s)
            self._last_ns = sample.t_ns
            self.newest = sample
            self.seen += 1
            if len(self._kept) >= MOST:
                self._kept.popleft()
                self.overrun += 1
            self._kept.append((sample, self._opening()))

    def drain(self) -> list[Batch]:
        """All samples since the last call as one batch of the declared columns."""
        with self._lock:
            kept, self._kept = self._kept, deque()
        if not kept:
            return []
        t_ns = np.array([sample.t_ns for sample, _ in kept], np.int64)
        rows = [(*s.q, *s.dq, *s.tau, *s.tcp, opening, s.device_s) for s, opening in kept]
        return [Batch(STATE, t_ns, np.array(rows))]
