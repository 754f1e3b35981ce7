"""A Robotiq 2F-85 behind either of its wires: targets, faults and activation are the same on both.

May not: activate the fingers without an operator's word: they move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from labctl.devices import Kind, RobotStatus
from labctl.drivers.common.gripping import GripperWorker, WorkedGripper
from labctl.drivers.robotiq.scales import STROKE_M, Scale, fault_words
from labctl.errors import DeviceError, DeviceLost, DeviceRefused
from labctl.plain import DeviceAbout

ACTIVE, ACTIVATING = 3, 1  # gSTA
MOVING = 0  # gOBJ
RESET_FROM = 0x0A  # gFLT: major faults need a rising edge of the activation bit (manual, "Fault status")


@dataclass(frozen=True, slots=True)
class Registers:
    """What the gripper reports, by the names of its manual: gACT, gSTA, gOBJ, gFLT, gPO."""

    activation: bool
    state: int
    object: int
    fault: int
    position: int


class Wire(Protocol):
    """The way to one gripper. Verbs raise DeviceLost or DeviceRefused; `read` is None in an emergency stop."""

    period_s: float
    client: str  # what talks to it, and its version

    def open(self) -> None: ...
    def read(self) -> Registers | None: ...
    def go(self, position: int, speed: int, force: int) -> None: ...
    def halt(self) -> None: ...
    def activate(self, on: bool) -> None: ...
    def close(self) -> None: ...


class RobotiqGripper(WorkedGripper):
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"
    stroke_m = STROKE_M

    def __init__(self, wire: Wire, scale: Scale) -> None:
        self._wire, self._scale = wire, scale
        self._work = GripperWorker("robotiq", self._visit, wire.period_s)
        self._written: int | None = None
        self._seen: Registers | None = None

    def connect(self) -> None:
        self._wire.open()
        try:
            self._look()
            self._work.start()
        except DeviceError:
            self._wire.close()
            raise

    def _look(self) -> None:
        seen = self._wire.read()
        if seen is None:
            self._work.sound = RobotStatus("fault", "the gripper answers '?': the robot is in emergency stop")
            return
        self._seen = seen
        self._work.opening = self._scale.opening(seen.position)
        words = fault_words(seen.state, seen.fault)
        self._work.sound = RobotStatus("fault", words) if words else RobotStatus("idle")

    def _visit(self) -> None:
        work = self._work
        if work.recovering:
            self._activate()
        asked = work.asked
        if asked.stopped and self._written is not None:
            self._wire.halt()
            self._written = None
        if asked.opening_m is not None and work.sound.mode == "idle":
            position = self._scale.position(asked.opening_m)
            if position != self._written:
                self._wire.go(position, self._scale.speed, self._scale.force)
                self._written = position
        self._look()

    def _activate(self) -> None:
        """Reset where it is needed, then activate. The fingers move. A gripper that has been asked to activate and has
        not begun yet is asked again, never reset: on a line that is read every 20 ms it would never begin.
        """
        seen = self._seen
        if seen is not None and seen.state == ACTIVE and not seen.fault:
            self._work.recovering = False
        elif seen is None or not seen.activation or (seen.state == 0 and seen.fault < RESET_FROM):
            self._written = None  # a reset takes back what was written
            self._wire.activate(True)
        elif seen.state != ACTIVATING:
            self._written = None
            self._wire.activate(False)

    def about(self) -> DeviceAbout:
        """Its registers, and the variables of the URCap's manual, tell neither a serial number nor a firmware."""
        return {
            "model": "Robotiq 2F-85",
            "serial": None,
            "firmware": None,
            "client": self._wire.client,
            "limits": {"speed": self._scale.speed, "force": self._scale.force},
        }

    def _moves(self) -> bool:
        return self._seen is not None and self._seen.object == MOVING and self._written is not None

    def recover(self) -> None:
        """Activate the gripper, and connect anew to one that was lost; raises DeviceRefused until it is active. What
        was asked for before a loss is forgotten: connecting moves nothing.
        """
        if self._work.sound.mode == "lost":
            self._connect_again()
        if (sound := self._work.sound).mode == "idle":
            return
        if sound.mode == "fault":
            self._work.recover()
        raise DeviceRefused(f"gripper: {sound.reason}")

    def _connect_again(self) -> None:
        self._work.end()
        self._wire.close()
        self._work.forget()
        self._written = None
        try:
            self.connect()
        except DeviceLost as error:
            raise DeviceRefused(f"gripper: {error}") from error

    def close(self) -> None:
        self._work.end()
        self._wire.close()
