"""How the joints stand, of what comes on a topic of joint states: those of one publisher, at times that go on.

May not: hear anything itself, or decide what is done about what is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.clock import SECOND
from labctl.drivers.ros2.messages import JointState
from labctl.drivers.ros2.network import publisher_of
from labctl.drivers.ros2.publishers import OnePublisher, several_in_words

DECIDED_NS = SECOND * 3 // 10  # in so long, stamps that go on have done so
SPEED_S = 0.05  # over which speeds are taken by the times of receipt: messages come in bunches


@dataclass(frozen=True, slots=True)
class Joints:
    """One message: received at host_ns; device_s its own clock, or this computer's; q, dq, tau (dof,) in rad, rad/s and
    N m, not numbers where nothing is said.
    """

    host_ns: int
    device_s: float
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray


class JointStates:
    """See the module. topic: named in words; names: of the joints, from the base on.

    `newest` is the last message that was taken. `stamped`: do its stamps go on (else the times of receipt are its
    clock); None until that is known, which takes DECIDED_NS at most. `missing`: joints that are not in it, `sent_names`
    those that are.
    """

    def __init__(self, topic: str, names: Sequence[str], silence_ns: int) -> None:
        self._topic, self._names, self._silence_ns = topic, names, silence_ns
        self.newest: Joints | None = None
        self.stamped: bool | None = None
        self.missing: Sequence[str] = ()
        self.sent_names: tuple[str, ...] = ()
        self._places: list[int] | None = None  # of our joints in the names that are sent
        self._publisher = OnePublisher()
        self._first: tuple[int, float] | None = None  # host ns, stamp
        self._stamp, self._went_on_ns = 0.0, 0  # the last stamp, and when it was another than the one before
        self._way: deque[tuple[float, np.ndarray]] = deque()

    def read(self, message: JointState, now: int) -> Joints | None:
        """What one message says that came at `now`, ns; None for one that is not taken."""
        names = tuple(message.name)
        if names != self.sent_names:
            self.sent_names = names
            self.missing = [name for name in self._names if name not in names]
            self._places = None if self.missing else [names.index(name) for name in self._names]
        if self._places is None or len(message.position) != len(names):
            return None  # of another part of the robot: each may publish its own joints
        at = self._places
        q = np.array(message.position)[at]
        if not np.isfinite(q).all():
            return None  # a hardware interface that has not read its robot yet says NaN
        if not self._publisher.takes(publisher_of(message), now):
            return None
        device_s = self._time(message.header.stamp.ns / SECOND, now)
        dq = np.array(message.velocity)[at] if len(message.velocity) == len(names) else np.full(len(q), np.nan)
        dq = dq if np.isfinite(dq).all() else self._speed(q, device_s)
        tau = np.array(message.effort)[at] if len(message.effort) == len(names) else np.full(len(q), np.nan)
        self.newest = Joints(now, device_s, q, dq, tau)
        return self.newest

    def _time(self, stamp: float, now: int) -> float:
        """The device's time of a message, s: its stamp, unless stamps do not go on."""
        if stamp != self._stamp or not self._went_on_ns:
            self._stamp, self._went_on_ns = stamp, now
        if self.stamped is None:
            since_ns, first = self._first = self._first or (now, stamp)
            if stamp != first:
                self.stamped = True
            elif now - since_ns >= DECIDED_NS:
                self.stamped = False
                self._way.clear()
        return now / SECOND if self.stamped is False else stamp

    def _speed(self, q: np.ndarray, device_s: float) -> np.ndarray:
        """Of a robot that does not say how fast its joints are: from one state to the next by its own clock, or over
        SPEED_S by this computer's.
        """
        span_s = 0.0 if self.stamped else SPEED_S
        self._way.append((device_s, q))
        while len(self._way) > 2 and device_s - self._way[1][0] >= span_s:
            self._way.popleft()
        begin_s, begin = self._way[0]
        went_s = device_s - begin_s
        return (q - begin) / went_s if went_s > span_s / 2 else np.zeros(len(q))

    def decided(self) -> bool:
        """Is it known by which clock the joints' times are?"""
        return self.stamped is not None

    def wrong(self, now: int) -> str:
        """Why the joints cannot be led by what is said of them, in words; "" while they can."""
        if self._publisher.several(now):
            return several_in_words(f"how joint {self._names[0]} stands", self._topic)
        newest = self.newest
        if self.stamped and newest and (stood_ns := newest.host_ns - self._went_on_ns) > self._silence_ns:
            return (
                f"the stamps on {self._topic} have stood still for {stood_ns / 1e9:.1f} s: is the clock of its node "
                "(use_sim_time, /clock) going?"
            )
        return ""
