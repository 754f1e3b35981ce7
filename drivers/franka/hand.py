"""Gripper "franka_hand": the Franka Hand through franky.Gripper (TCP 1338 of the robot's host).

May not: home the fingers or open them by itself. The hand's grasp closes them upon whatever is there, however wide it
was asked to be: an opening is given as a move, and what stops a move that closes is then grasped with the force.
Unverified on hardware: see docs/hardware.md.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import franky

from labctl.devices import Kind, RobotStatus
from labctl.drivers.common.gripping import GripperWorker, WorkedGripper
from labctl.drivers.common.state_timeout import within
from labctl.drivers.common.thread_faults import fault_of
from labctl.drivers.franka.options import CONNECT_S, FrankaHandOptions
from labctl.drivers.franka.versions import client
from labctl.errors import DeviceLost, DeviceRefused
from labctl.plain import DeviceAbout

STROKE_M = 0.08
CLOSED_M = 0.002  # nearer than this the fingers are to close: a grasp from the first
CHANGE_M = 0.005  # a command that would lead so far beyond what is wanted now is interrupted
NEAR_M = 0.001  # of a target: the hand is there
RESOLUTION_M = 5e-4  # of a target: a smaller change is none
HOMED_M = 5e-3  # of its stroke: a hand whose greatest width is less was not homed, or has other fingers
PERIOD_S = 0.02
LOST = (franky.NetworkException, franky.ProtocolException, franky.IncompatibleVersionException)
VENDOR = (*LOST, franky.Exception, franky.GripperException, RuntimeError)
JOIN_S = 3.0
SILENT = f"hand: it took the connection and has not answered for {CONNECT_S:g} s: end any other program that uses it"


def mapped(error: BaseException) -> DeviceLost | DeviceRefused:
    """labctl's error for one of franky's."""
    text = " ".join(str(error).split()) or type(error).__name__
    refused = isinstance(error, (franky.Exception, franky.GripperException)) and not isinstance(error, LOST)
    return DeviceRefused(f"hand: {text}") if refused else DeviceLost(f"hand: {text}")


class FrankaHand(WorkedGripper):
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"
    stroke_m = STROKE_M

    def __init__(self, host: str, speed_m_s: float, force_n: float) -> None:
        self._host, self._speed, self._force = host, speed_m_s, force_n
        self._hand: Any = None
        self._work = GripperWorker("hand", self._visit, PERIOD_S)
        self._going: float | None = None  # the opening of the command under way
        self._reached: float | None = None
        self._version: str | None = None
        self._holding = False  # the last command ended upon something
        self._end = threading.Event()
        self._reader: threading.Thread | None = None

    def connect(self) -> None:
        try:
            # libfranka raises the thread that connects to the highest priority, if it can, and waits for ever
            self._hand = within(CONNECT_S, lambda: franky.Gripper(self._host), SILENT)
            self._work.opening, most = float(self._hand.width), float(self._hand.max_width)
            self._version = f"gripper server {self._hand.server_version}"
        except VENDOR as error:
            raise mapped(error) from error
        if most < STROKE_M - HOMED_M:
            self._hand = None
            found, remedy = f"{1e3 * most:.0f} mm at most, and not {1e3 * STROKE_M:.0f}", "home it in Desk"
            raise DeviceRefused(f"hand: by its own word its fingers open {found}: {remedy}, nothing between them")
        try:
            self._work.start()
        except DeviceLost:
            self._hand = None
            raise
        self._reader = threading.Thread(target=self._read, name="hand-states", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Each state the hand sends; interrupts a command that is no longer wanted."""
        while not self._end.is_set():
            try:
                self._work.opening = float(self._hand.width)
                going, wanted = self._going, self._work.wanted
                if going is not None and (wanted is None or self._beyond(going, wanted)):
                    self._hand.stop()
            except VENDOR as error:
                if not self._end.is_set():
                    self._work.sound = RobotStatus("lost", str(mapped(error)))
                return
            except Exception as error:  # a bug: nobody would know how wide the fingers are
                if not self._end.is_set():
                    self._work.sound = RobotStatus("lost", f"hand: {fault_of('reading the hand', error)}")
                return

    def _beyond(self, going: float, wanted: float) -> bool:
        """Does what is under way lead beyond what is wanted now? What falls short of it is ended first."""
        return (wanted - going if going < self._work.opening else going - wanted) > CHANGE_M

    def _visit(self) -> None:
        wanted = self._work.wanted
        if wanted is None or (self._reached is not None and abs(wanted - self._reached) <= RESOLUTION_M):
            return
        if self._holding and wanted < self._work.opening:
            self._reached = wanted  # it is held with the force already; a move would let go of that
            return
        self._going = wanted
        try:
            self._holding = self._give(wanted)
            self._reached = wanted
        except VENDOR as error:
            found = mapped(error)
            if isinstance(found, DeviceLost):
                raise found from error
            self._reached, self._holding = None, False  # interrupted, or refused: the newest target is tried again
        finally:
            self._going = None

    def _give(self, wanted: float) -> bool:
        """Bring the fingers there; is something held that kept them from it?"""
        closes = wanted < self._work.opening
        if wanted > CLOSED_M:
            self._hand.move(wanted, self._speed)  # what it returns for a move that something stopped is not documented
            if not closes or float(self._hand.width) - wanted <= NEAR_M or self._work.wanted is None:
                return False
        self._hand.grasp(wanted, self._speed, self._force, epsilon_inner=STROKE_M, epsilon_outer=STROKE_M)
        return float(self._hand.width) - wanted > NEAR_M

    def about(self) -> DeviceAbout:
        return {
            "model": "Franka Hand",
            "serial": None,
            "firmware": self._version,
            "client": client(),
            "limits": {"speed_m_s": self._speed, "force_n": self._force},
        }

    def _moves(self) -> bool:
        return self._going is not None

    def recover(self) -> None:
        """A refusal is forgotten; the next target is tried. A hand that was lost is connected anew, and what was asked
        for before is forgotten: connecting moves nothing. Raises DeviceRefused for one that is still lost.
        """
        if self._work.sound.mode == "lost":
            self._connect_again()
        self._work.sound, self._reached, self._holding = RobotStatus("idle"), None, False

    def _connect_again(self) -> None:
        self._let_go()
        self._work.forget()
        self._going = None
        self._end.clear()
        try:
            self.connect()
        except DeviceLost as error:
            raise DeviceRefused(str(error)) from error

    def close(self) -> None:
        if not self._end.is_set():
            self._let_go()

    def _let_go(self) -> None:
        self._end.set()
        if self._hand is not None and self._going is not None:
            with contextlib.suppress(*VENDOR):  # it may be gone
                self._hand.stop()
        self._work.end()
        if self._reader is not None:
            self._reader.join(JOIN_S)
        self._hand = None


def build(options: FrankaHandOptions, *, host: str) -> FrankaHand:
    """A hand on the robot's host."""
    return FrankaHand(host, options.speed_m_s, options.force_n)
