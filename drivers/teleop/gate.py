"""From a hand to actions: dead-man, alignment, ramp, caps and stale input, the same for every device. Pure.

May not: read a device or a clock, or let anything through from a hand that has let go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from labctl.clock import SECOND
from labctl.config.cell_schema import Caps
from labctl.errors import InputError
from labctl.plain import Hand, count

HOLD = "hold the clutch"
AXES = ("x", "y", "z", "rx", "ry", "rz")
LEAD_S = 0.5  # of a leader's cap: twice what the way from a target to the measured joints takes
REST_S = 0.25  # of the robot's own speed: so far ahead of it a leader's target stays that is let go
SPEED_NS = SECOND // 10  # the robot's speed is looked at over so long
JUMP_RAD = 0.35  # a leader's joint that turns farther between two readings was knocked or misread


@dataclass(frozen=True, slots=True)
class Reading:
    """What a device said at t_ns (host's monotonic clock): axes (6,) from -1 to 1, or joints (dof,) in rad of a leader.

    engaged: the dead-man or clutch is held. grip: opening from 0 (closed) to 1 (open), None to leave it. presses:
    of a device whose one button opens and closes by turns, how often it was pressed while the clutch was held,
    ever: which of the two the next press does, labctl knows. done: the person says that the task is finished.
    parts: the deflection from -1 to 1 of each stick and trigger by its name, not a number where none is known yet;
    left out, the axes are the parts. waits: what has to happen before this device may drive at all, "" when nothing
    has to. slides: (k,) from -1 to 1, of the axes that are no joints; labctl sets it.
    """

    t_ns: int
    axes: np.ndarray | None = None
    joints: np.ndarray | None = None
    engaged: bool = False
    grip: float | None = None
    presses: int = 0
    done: bool = False
    parts: Mapping[str, float] | None = None
    waits: str = ""
    slides: np.ndarray | None = None


class Device(Protocol):
    """A thing in a hand. `open` raises DeviceLost when it is not there; `poll` waits at most some 20 ms and gives a
    reading, or None when there is no news; it raises DeviceLost once the device is gone. `quiet`: without news nothing
    has changed (a keyboard); others send all the time, and their silence is a loss of input.
    """

    leader: bool
    quiet: bool

    def open(self) -> None: ...
    def poll(self) -> Reading | None: ...
    def close(self) -> None: ...


class Gate:
    """Lets a hand's wish through, or rest. One for an episode; times are monotonic ns."""

    def __init__(self, caps: Caps, *, quiet: bool) -> None:
        self._caps, self._quiet = caps, quiet
        self._since_ns: int | None = None  # engaged since
        self._offset: np.ndarray | None = None
        self._last: np.ndarray | None = None
        self._asked: np.ndarray | None = None  # the last target, due at _asked_ns
        self._asked_ns = 0
        self._way: deque[tuple[int, np.ndarray]] = deque()  # of the robot, lately
        self.why = "waiting for the clutch"

    def ready(self, reading: Reading | None, q: np.ndarray, now_ns: int) -> bool:
        """May the clock start? The clutch is held, the input is fresh and a leader stands near the robot; `why` says
        what is missing.
        """
        self.why = self._missing(reading, q, now_ns)
        return not self.why

    def wants(self, reading: Reading | None, q: np.ndarray, now_ns: int) -> bool:
        """May the hand have the robot? It has taken hold and holds on, or is ready to take hold."""
        if self._since_ns is not None:
            return not self.resting(reading, now_ns)
        return self.ready(reading, q, now_ns)

    def resting(self, reading: Reading | None, now_ns: int) -> str:
        """Why this reading moves nothing; "" when the hand has hold of the robot."""
        if reading is None or self._stale(reading, now_ns):
            return "no fresh input from the device"
        return reading.waits or ("" if reading.engaged else HOLD)

    def _missing(self, reading: Reading | None, q: np.ndarray, now_ns: int) -> str:
        if other := of_another_robot(reading, q):
            return other
        rests, gap = self.resting(reading, now_ns), gap_of(reading, q)
        if rests or gap is None or gap.max() <= self._caps.align_rad:
            return rests
        return f"bring the leader to the robot: joint {int(gap.argmax()) + 1} is {gap.max():.2f} rad away"

    def read(self, reading: Reading | None, q: np.ndarray, now_ns: int, device: str = "") -> Hand:
        """What a screen says of the hand: waits (what is missing, "" when nothing is), engaged, fresh, ramp (share of
        the wish that is let through, 0 to 1), and of a leader gap_rad (dof,) to the robot's joints q and limit_rad.
        """
        since_ns = self._since_ns
        gap = gap_of(reading, q)
        return {
            "device": device,
            "waits": self._missing(reading, q, now_ns) if since_ns is None else self.resting(reading, now_ns),
            "engaged": bool(reading and reading.engaged and not reading.waits),
            "fresh": reading is not None and not self._stale(reading, now_ns),
            "ramp": 0.0 if since_ns is None else round(self._ramp((now_ns - since_ns) / SECOND), 1),
            "gap_rad": None if gap is None else [round(float(joint), 2) for joint in gap],
            "limit_rad": self._caps.align_rad,
        }

    def _stale(self, reading: Reading, now_ns: int) -> bool:
        return not self._quiet and now_ns - reading.t_ns > self._caps.stale_s * SECOND

    def _engaged_s(self, reading: Reading | None, now_ns: int) -> float | None:
        """Seconds since the clutch took hold; None while it does not."""
        if reading is None or self.resting(reading, now_ns):
            self._since_ns = self._offset = self._last = None
            return None
        if self._since_ns is None:
            self._since_ns = now_ns
        return (now_ns - self._since_ns) / SECOND

    def _ramp(self, held_s: float) -> float:
        return 1.0 if self._caps.ramp_s <= 0 else min(1.0, held_s / self._caps.ramp_s)

    def twist(self, reading: Reading | None, now_ns: int) -> np.ndarray:
        """(6,) m/s and rad/s along the base's axes; zero when the hand has let go."""
        held_s = self._engaged_s(reading, now_ns)
        if held_s is None or reading is None or reading.axes is None:
            return np.zeros(6)
        pushed = self._pushed(reading.axes)
        for part, most in ((slice(0, 3), self._caps.linear_m_s), (slice(3, 6), self._caps.angular_rad_s)):
            length = float(np.linalg.norm(pushed[part]))
            pushed[part] *= most / max(1.0, length)
        return self._ramp(held_s) * pushed

    def slides(self, reading: Reading | None, now_ns: int) -> np.ndarray:
        """(k,) from -1 to 1: how fast the axes that are no joints are to go; zero when the hand has let go."""
        held_s = self._engaged_s(reading, now_ns)
        if reading is None or reading.slides is None:
            return np.zeros(0)
        return np.zeros(len(reading.slides)) if held_s is None else self._ramp(held_s) * self._pushed(reading.slides)

    def _pushed(self, axes: np.ndarray) -> np.ndarray:
        pushed, band = np.clip(axes, -1.0, 1.0), self._caps.deadband
        return np.sign(pushed) * np.maximum(np.abs(pushed) - band, 0.0) / (1.0 - band)

    def joints(self, reading: Reading | None, q: np.ndarray, dt_s: float, now_ns: int) -> np.ndarray:
        """(dof,) rad: where to be dt_s from now: after the leader, from where the robot was when the clutch took hold;
        for a hand that has let go, the last target, no farther ahead than the robot goes in `REST_S`. q: the joints as
        measured.

        The target goes on from the last one, not from the joints: those lag behind it by what the way to the robot
        takes, and a target tied to them is as slow as that. It leads them by no more than `LEAD_S` of the cap.
        """
        lead, due_ns = self._caps.joint_rad_s * LEAD_S, now_ns + round(dt_s * SECOND)
        if self._asked is None or np.abs(self._asked - q).max() > lead:
            self._asked = np.array(q, dtype=float)
        held, speed = self._since_ns is not None, self._speed(q, now_ns)
        held_s = self._engaged_s(reading, now_ns)
        if held_s is None or reading is None or reading.joints is None:
            if held:  # a robot that was held back does not go on to where the leader was
                self._asked = np.clip(self._asked, q - speed * REST_S, q + speed * REST_S)
            self._asked_ns = due_ns
            return self._asked
        if self._last is not None and np.abs(reading.joints - self._last).max() > JUMP_RAD:
            self._since_ns, self._offset = now_ns, None
        if self._offset is None:
            self._offset = self._asked - reading.joints
        self._last = reading.joints
        assert self._since_ns is not None
        ramp = self._ramp((now_ns - self._since_ns) / SECOND)
        spare_ns = max(0, due_ns - max(self._asked_ns, now_ns))  # time that passed unasked is not caught up
        most = self._caps.joint_rad_s * ramp * spare_ns / SECOND
        target = self._asked + np.clip(reading.joints + self._offset - self._asked, -most, most)
        self._asked, self._asked_ns = np.clip(target, q - lead, q + lead), due_ns
        return self._asked

    def _speed(self, q: np.ndarray, now_ns: int) -> np.ndarray:
        """How fast the robot's joints go, (dof,) rad/s."""
        self._way.append((now_ns, np.array(q, dtype=float)))
        while len(self._way) > 2 and now_ns - self._way[1][0] >= SPEED_NS:
            self._way.popleft()
        (from_ns, start), (_, here) = self._way[0], self._way[-1]
        return np.abs(here - start) * SECOND / max(now_ns - from_ns, 1)


def of_another_robot(reading: Reading | None, q: np.ndarray) -> str:
    """Why a leader cannot lead a robot of the joints q (dof,), whatever a hand does; "" where it can."""
    if reading is None or reading.joints is None or np.shape(reading.joints) == np.shape(q):
        return ""
    return f"the leader has another number of joints ({np.size(reading.joints)}) than the robot ({np.size(q)})"


def gap_of(reading: Reading | None, q: np.ndarray) -> np.ndarray | None:
    """How far each of a leader's joints is from the robot's, (dof,) rad; None of a device that has not those joints."""
    if reading is None or reading.joints is None or of_another_robot(reading, q):
        return None
    return np.abs(reading.joints - q)


def axis_map(names: Sequence[str]) -> np.ndarray:
    """(6, 6) that turns a device's axes into the base's: names[i] is the device axis, with its sign, that drives base
    axis i, such as ("y", "-x", "z", "rx", "ry", "rz"). Raises InputError.
    """
    if len(names) != 6:
        given = count(len(names), "entry", "entries")
        raise InputError(f"axes has {given}; give six, one for each of {', '.join(AXES)}")
    found = np.zeros((6, 6))
    for row, name in enumerate(names):
        sign, plain = (-1.0, name[1:]) if name.startswith("-") else (1.0, name.removeprefix("+"))
        if plain == "0":
            continue
        if plain not in AXES:
            raise InputError(f"unknown axis {name!r}; axes are {', '.join(AXES)}, with - to turn one round, or 0")
        found[row, AXES.index(plain)] = sign
    return found


def mapped(reading: Reading, axes: np.ndarray, slides: np.ndarray | None = None) -> Reading:
    """A reading along the base's axes; slides: (k, 6) turns the device's axes into those that are no joints."""
    if reading.axes is None:
        return reading
    return replace(reading, axes=axes @ reading.axes, slides=None if slides is None else slides @ reading.axes)
