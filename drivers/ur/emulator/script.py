"""What the script that ur_rtde uploads does, cycle by cycle: reads a command register, acts, answers in another.

May not: interpret URScript. It knows the commands a driver of ours may use; any other ends the program with a popup, as
an unknown function would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labctl.drivers.ur.emulator.body import FLANGE, Body, MoveJ, MoveL, Servo, Speed, Stop
from labctl.drivers.ur.pose import from_ur, joined, to_ur

READY, DONE = 1, 2
STOP_SCRIPT = 255
CONTINUOUS = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
OFFSET = re.compile(r"# int register offset\n\s*(\d+)")
Steps = Iterator[None]


class Registers:
    """Input and output registers of the controller, by number."""

    def __init__(self) -> None:
        self.ints_in, self.doubles_in = [0] * 48, [0.0] * 48
        self.ints_out, self.doubles_out = [0] * 48, [0.0] * 48


class ScriptEnded(Exception):
    """The program ends; the text is what the pendant would show."""


class ControlScript:
    """One uploaded script. `cycle()` is one pass of its loop; it raises ScriptEnded when the program is over."""

    def __init__(self, text: str, body: Body, registers: Registers, watchdog: Callable[[float], None]) -> None:
        found = OFFSET.search(text)
        self._offset = int(found[1]) if found else 0
        self._body, self._registers, self._watchdog = body, registers, watchdog
        self._busy: Steps | None = None
        self._latched = False
        self._writes = self._operation = 0
        self._moving_async = False
        self._solved: tuple[list[float], np.ndarray] = ([], np.empty(0))  # the pose of a servol, and its joints
        self._finished()
        self._status(READY)

    # -- registers

    def _int(self, index: int) -> int:
        return int(self._registers.ints_in[index + self._offset])

    def _double(self, index: int) -> float:
        return float(self._registers.doubles_in[index + self._offset])

    def _six(self, start: int = 0) -> list[float]:
        return [self._double(start + i) for i in range(6)]

    def _put(self, values: Any) -> None:
        for i, value in enumerate(values):
            self._registers.doubles_out[i + self._offset] = float(value)

    def _flag(self, value: int) -> None:
        self._registers.ints_out[1 + self._offset] = int(value)

    def _status(self, value: int) -> None:
        self._registers.ints_out[0 + self._offset] = value

    def _progress(self, value: int) -> None:
        """The asynchronous word: operation id, count of writes, running bit, progress."""
        self._writes = (self._writes + 1) % 128
        if value == 0:
            self._operation = (self._operation + 1) % 128
        word = self._writes << 16 | self._operation << 24
        self._registers.ints_out[2 + self._offset] = word | (value | 1 << 15 if value >= 0 else 0)

    def _finished(self) -> None:
        self._moving_async = False
        self._progress(-1)

    # -- the loop

    def cycle(self) -> None:
        if self._moving_async and self._body.motion is None:
            self._finished()
        if self._busy is not None:
            if not self._go_on():
                return
            self._status(DONE)
            self._busy, self._latched = None, True
            return
        command = self._int(0)
        if command == STOP_SCRIPT:
            raise ScriptEnded("")
        if command in CONTINUOUS:
            self._run(command)
            self._status(READY)
        elif command == 0:
            self._latched = False
            self._status(READY)
        elif not self._latched:
            self._run(command)
            if self._busy is None:
                self._status(DONE)
                self._latched = True

    def _run(self, command: int) -> None:
        act = COMMANDS.get(command)
        if act is None:
            raise ScriptEnded(f"command {command} is not emulated")
        self._busy = act(self)
        if self._busy is not None and self._go_on():
            self._busy = None

    def _go_on(self) -> bool:
        assert self._busy is not None
        try:
            next(self._busy)
        except StopIteration:
            return True
        return False

    def _until_done(self) -> Steps:
        motion = self._body.motion
        while motion is not None and self._body.motion is motion:
            yield
        if motion is not None and motion.failed:
            raise ScriptEnded(motion.failed)

    def _ik(self, pose: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
        q = self._body.joints(pose, self._body.q if near is None else near)
        if q is None:
            raise ScriptEnded("get_inverse_kin: no solution")
        return q

    # -- commands

    def move(self, to_pose: bool, linear: bool) -> Steps | None:
        target, speed, acceleration = self._six(), self._double(6), self._double(7)
        body = self._body
        if linear:
            pose = from_ur(target) if to_pose else body.pose(np.array(target))
            self._ik(pose)
            body.motion = MoveL(body, pose, speed, acceleration)
        else:
            q = self._ik(from_ur(target)) if to_pose else np.array(target)
            body.motion = MoveJ(body, q, speed, acceleration)
        return self._awaited()

    def _awaited(self) -> Steps | None:
        """What a command that may be asynchronous waits for."""
        if self._int(1) != 1:
            return self._until_done()
        self._progress(0)
        self._moving_async = True
        return None

    def servo(self, to_pose: bool) -> None:
        q = self._servoed() if to_pose else np.array(self._six())
        lookahead, gain = self._double(9), self._double(10)
        self._body.motion = Servo(q, lookahead, gain)

    def _servoed(self) -> np.ndarray:
        """Joints for the pose of a servol, which stands in the registers for many cycles."""
        requested = self._six()
        if requested != self._solved[0]:
            self._solved = (requested, self._ik(from_ur(requested)))
        return self._solved[1]

    def speed(self, linear: bool) -> None:
        self._body.motion = Speed(self._six(), self._double(6), linear)

    def stop(self, *, linear: bool) -> Steps | None:
        # Assumption: a tool deceleration slows the joints four times as hard
        self._body.motion = Stop(self._double(0) * (4.0 if linear else 1.0))
        if self._moving_async:
            self._finished()
        return self._until_done()

    def stop_move(self, *, linear: bool) -> Steps | None:
        self.stop(linear=linear)
        return self._awaited()

    def set_tcp(self) -> None:
        self._body.tcp, self._solved = from_ur(self._six()), ([], np.empty(0))

    def forward(self, given: bool) -> None:
        q = np.array(self._six()) if given else self._body.q
        tcp = from_ur(self._six(6)) if given and any(self._six(6)) else None
        self._put(to_ur(self._body.pose(q, tcp)))

    def inverse(self, near: bool) -> None:
        self._put(self._ik(from_ur(self._six()), np.array(self._six(6)) if near else None))

    def has_inverse(self, near: bool) -> None:
        qnear = np.array(self._six(6)) if near else self._body.q
        self._flag(self._body.joints(from_ur(self._six()), qnear) is not None)

    def within(self, pose: bool) -> None:
        q = self._body.joints(from_ur(self._six()), self._body.q) if pose else np.array(self._six())
        robot_model = self._body.robot_model
        self._flag(q is not None and bool(((q >= robot_model.lower) & (q <= robot_model.upper)).all()))

    def transform(self) -> None:
        self._put(to_ur(joined(from_ur(self._six()), from_ur(self._six(6)))))

    def nothing(self) -> None:
        """Accepted without effect: payloads, gravity, force sensor zero have none on a body without dynamics."""


COMMANDS: dict[int, Callable[[ControlScript], Steps | None]] = {
    1: lambda s: s.move(to_pose=False, linear=False),
    2: lambda s: s.move(to_pose=True, linear=False),
    3: lambda s: s.move(to_pose=True, linear=True),
    4: lambda s: s.move(to_pose=False, linear=True),
    8: ControlScript.nothing,
    9: lambda s: s.speed(linear=False),
    10: lambda s: s.speed(linear=True),
    11: lambda s: s.servo(to_pose=False),
    24: lambda s: s.servo(to_pose=True),
    15: lambda s: s.stop(linear=False),
    16: lambda s: s.stop(linear=True),
    17: ControlScript.nothing,
    26: lambda s: s._put([s._body.dt]),
    29: ControlScript.set_tcp,
    30: lambda s: s.inverse(near=True),
    31: lambda s: s._body.protective_stop(),
    33: lambda s: s.stop_move(linear=True),
    34: lambda s: s.stop_move(linear=False),
    35: lambda s: s._watchdog(s._double(0)),
    36: lambda s: s.within(pose=True),
    37: lambda s: s.within(pose=False),
    38: lambda s: s._put([0.0] * 6),
    39: ControlScript.transform,
    40: lambda s: s._put(to_ur(s._body.tcp)),
    43: lambda s: s.forward(given=False),
    44: lambda s: s.forward(given=True),
    46: lambda s: s.inverse(near=False),
    47: lambda s: s._flag(not s._body.qd.any()),
    58: lambda s: s._put(to_ur(s._body.pose(s._body.q, FLANGE))),
    59: ControlScript.nothing,
    60: lambda s: s.has_inverse(near=False),
    61: lambda s: s.has_inverse(near=True),
    65: ControlScript.nothing,
}
