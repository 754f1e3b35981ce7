"""A servoed robot on a link that is at once where it is sent, for tests of what labctl does with one.

May not: pretend a robot of any vendor: it lags, slips and trembles as a test says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import RobotStatus, Setpoints
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.drivers.common.states import Sample, States
from support.robots.cells import cell_named

CLOCK = MonotonicClock()
HOME = FR3.home + 0.05


class Hand:
    """A gripper that is where it was last asked to be."""

    kind, stroke_m = "sim", 0.08

    def __init__(self) -> None:
        self.at, self.sound, self.stops, self.closed = 0.08, RobotStatus("idle"), 0, False
        self.asked: list[float] = []
        self.told: list[float | str] = []  # targets and stops
        self.stuck = False  # it is where a test puts it

    def connect(self) -> None: ...
    def target(self, opening_m: float) -> None:
        self.asked.append(opening_m)
        self.told.append(opening_m)
        self.at = self.at if self.stuck else opening_m

    def opening(self) -> float:
        return self.at

    def status(self) -> RobotStatus:
        return self.sound

    def stop(self) -> None:
        self.stops += 1
        self.told.append("stop")

    def recover(self) -> None: ...
    def close(self) -> None:
        self.closed = True


class Link:
    """A robot that is at once where a setpoint sends it."""

    more: Mapping[str, str] = {}
    measured = None
    law = None
    coast_s = 0.0
    news: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.q = FR3.home.copy()
        self.given: list[np.ndarray] = []
        self.halts = self.recoveries = self.rests = self.idles = 0
        self.settled, self.closed = True, False
        self.fail: Exception | None = None
        self.sound = RobotStatus("idle")
        self.off, self.trembling = np.zeros(7), np.zeros(7)  # how it differs from what it is told
        self.by_joints: list[bool] = []
        self.states: States | None = None
        self.ends_first = 0  # so many setpoints come before the motion under way has ended
        self.on_setpoint: Callable[[], object] | None = None  # what another thread does while one is given

    def open(self, states: States) -> None:
        self.states = states
        self._tell()

    def _tell(self) -> None:
        assert self.states is not None
        zero, now_ns = np.zeros(7), CLOCK.now_ns()
        tcp = np.array([0.4, 0, 0.3, 1, 0, 0, 0.0])
        self.states.add(now_ns, Sample(self.q + self.off, self.trembling.copy(), zero, tcp, now_ns / SECOND))

    def start_q(self) -> np.ndarray:
        return self.q.copy()

    def send_setpoint(self, q: np.ndarray, dq: np.ndarray, *, by_joints: bool = False) -> bool:
        if self.ends_first:
            self.ends_first -= 1
            return False
        self.by_joints.append(by_joints)
        if self.fail is not None:
            raise self.fail
        self.q = q.copy()
        self.given.append(q.copy())
        self._tell()
        if self.on_setpoint is not None:
            self.on_setpoint()
        return True

    def hold(self, q: np.ndarray) -> bool:
        self.rests += 1
        self._tell()
        return self.settled

    def keep_alive(self) -> None:
        self.idles += 1
        self._tell()

    def halt(self) -> None:
        self.halts += 1

    def recover(self) -> bool:
        self.recoveries += 1
        self.fail = None
        return True

    def lost(self) -> str:
        return self.sound.reason if self.sound.mode == "lost" else ""

    def health(self) -> RobotStatus:
        return self.sound

    def close(self) -> None:
        self.closed = True


class Bench:
    def __init__(self) -> None:
        cell = cell_named("emulated_fr3")
        self.link, self.hand = Link(), Hand()
        self.arm = ServoedRobot(FR3, self.link, self.hand, cell, HOME, 0.3)
        self.arm.connect(CLOCK.now_ns())
        self.events: list[Any] = []

    def play(self, q: np.ndarray) -> Any:
        """Give setpoints of the last tick and wait until they are decided."""
        n = len(q)
        t_ns = CLOCK.now_ns() + (np.arange(n) - n + 1) * 10 * MILLISECOND
        first = self.arm.follow(Setpoints(t_ns, q, np.full(n, 0.04)))
        parts = [first]
        self.until(lambda: sum(self._asked(part) for part in parts + self._more(parts)) >= n)
        return parts

    @staticmethod
    def _asked(part: Any) -> int:
        return int(np.isfinite(part.requested[:, 0]).sum()) if len(part.t_ns) else 0

    def _more(self, parts: list[Any]) -> list[Any]:
        parts.append(self.arm.follow(Setpoints(np.empty(0, np.int64), np.empty((0, 7)), np.empty(0))))
        return []

    def until(self, found: Callable[[], object]) -> None:
        over = CLOCK.now_ns() + 60 * SECOND
        while not found():
            self.events += self.arm.events()
            assert CLOCK.now_ns() < over, "waited for a minute in vain"
            CLOCK.sleep_until(CLOCK.now_ns() + MILLISECOND)


def near(n: int = 5) -> np.ndarray:
    return FR3.home + 0.001 * np.arange(1, n + 1)[:, None] * np.ones(7)
