"""Gripper "franka_hand": the Franka Hand through franky.Gripper (TCP 1338 of the robot's host).

May not: home the fingers or open them by itself. Closing is a grasp with a force, opening a move; a new target that
differs by more than CHANGE_M interrupts the one under way. Unverified on hardware: see docs/hardware.md.
"""

from __future__ import annotations

import threading
from typing import Any

import franky
from labctl.drivers.common.gripping import GripperWorker
from labctl.drivers.franka.options import FrankaHandOptions

from labctl.devices import Kind, RobotStatus
from labctl.errors import DeviceLost, DeviceRefused
from labctl.realtime import kept

STROKE_M = 0.08
CHANGE_M = 0.005
PERIOD_S = 0.02
LOST = (franky.NetworkException, franky.ProtocolException, franky.IncompatibleVersionException)
VENDOR = (*LOST, franky.Exception, franky.GripperException, RuntimeError)
JOIN_S = 3.0


def mapped(error: BaseException) -> DeviceLost | DeviceRefused:
    """labctl's error for one of franky's."""
    text = " ".join(str(error).split()) or type(error).__name__
    refused = isinstance(error, (franky.Exception, franky.GripperException)) and not isinstance(error, LOST)
    return DeviceRefused(f"hand: {text}") if refused else DeviceLost(f"hand: {text}")


class FrankaHand:
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"
    stroke_m = STROKE_M

    def __init__(self, host: str, speed_m_s: float, force_n: float) -> None:
        self._host, self._speed, self._force = host, speed_m_s, force_n
        self._hand: Any = None
        self._work = GripperWorker("hand", self._visit, PERIOD_S)
        self._going: float | None = None  # the opening of the command under way
        self._reached: float | None = None
        self._end = threading.Event()
        self._reader: threading.Thread | None = None

    def connect(self) -> None:
        try:
            with kept():  # libfranka raises the calling thread
                self._hand = franky.Gripper(self._host)
            self._work.opening = float(self._hand.width)
        except VENDOR as error:
            raise mapped(error) from error
        self._reader = threading.Thread(target=self._read, name="hand-states", daemon=True)
        self._reader.start()
        self._work.start()

    def _read(self) -> None:
        """Each state the hand sends; interrupts a command that is no longer wanted."""
        while not self._end.is_set():
            try:
                self._work.opening = float(self._hand.width)
                going, wanted = self._going, self._work.wanted
                if going is not None and (wanted is None or abs(wanted - going) > CHANGE_M):
                    self._hand.stop()
            except VENDOR as error:
                if not self._end.is_set():
                    self._work.sound = RobotStatus("lost", str(mapped(error)))
                return

    def _visit(self) -> None:
        wanted = self._work.wanted
        if wanted is None or (self._reached is not None and abs(wanted - self._reached) <= CHANGE_M):
            return
        self._going = wanted
        try:
            if wanted < self._work.opening:
                self._hand.grasp(wanted, self._speed, self._force, epsilon_inner=STROKE_M, epsilon_outer=STROKE_M)
            else:
                self._hand.move(wanted, self._speed)
            self._reached = wanted
        except VENDOR as error:
            found = mapped(error)
            if isinstance(found, DeviceLost):
                raise found from error
            self._reached = None  # interrupted, or refused: the newest target is tried again
        finally:
            self._going = None

    def target(self, opening_m: float) -> None:
        self._work.ask(opening_m)

    def opening(self) -> float:
        return self._work.opening

    def status(self) -> RobotStatus:
        if self._work.sound.mode != "idle":
            return self._work.sound
        return RobotStatus("moving" if self._going is not None else "idle")

    def stop(self) -> None:
        self._work.halt()

    def recover(self) -> None:
        """A refusal is forgotten; the next target is tried. Raises DeviceRefused while the hand is lost."""
        if self._work.sound.mode == "lost":
            raise DeviceRefused(self._work.sound.reason)
        self._work.sound, self._reached = RobotStatus("idle"), None

    def close(self) -> None:
        if self._end.is_set():
            return
        self._end.set()
        if self._hand is not None and self._going is not None:
            self._hand.stop()
        self._work.end()
        if self._reader is not None:
            self._reader.join(JOIN_S)
        self._hand = None


def build(options: FrankaHandOptions, *, host: str) -> FrankaHand:
    """A hand on the robot's host."""
    return FrankaHand(host, options.speed_m_s, options.force_n)
