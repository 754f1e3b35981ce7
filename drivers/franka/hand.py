"""Gripper "franka_hand": the Franka Hand through franky.Gripper (TCP 1338 of the robot's host).

May not: home the fingers or open them by itself. The hand's grasp closes them upon whatever is there, however wide it
was asked to be: an opening is given as a move, and what stops a move that closes is then grasped with the force. Such
a move does not return by itself (docs/hardware.md): fingers that stand still short of where they close to are stopped.
Unverified on hardware: see docs/hardware.md.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Any

import franky

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import Kind, RobotStatus
from labctl.drivers.common.gripping import GripperWorker, WorkedGripper
from labctl.drivers.common.state_timeout import Silence, within
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
STILL_NS = 300 * MILLISECOND  # fingers that moved, and have not for so long, were stopped by something
START_NS = 1_000 * MILLISECOND  # those that have not moved since they were sent; how late they begin is not known
STOP_NS = 3_000 * MILLISECOND  # a command that has not ended for so long since it was to be stopped is a fault
AGAIN_NS = 200 * MILLISECOND  # between two stops of one command, and after a command that was refused
REFUSALS = 5  # in a row: the hand does not do what it is asked for
SILENCE_NS = 2 * SECOND
SILENT = f"hand: it took the connection and has not answered for {CONNECT_S:g} s: end any other program that uses it"


def mapped(error: BaseException) -> DeviceLost | DeviceRefused:
    """labctl's error for one of franky's."""
    text = " ".join(str(error).split()) or type(error).__name__
    refused = isinstance(error, (franky.Exception, franky.GripperException)) and not isinstance(error, LOST)
    return DeviceRefused(f"hand: {text}") if refused else DeviceLost(f"hand: {text}")


@dataclass(slots=True)
class _Command:
    """What the hand was given and has not answered yet, and what is seen of its fingers meanwhile."""

    going: float  # the opening it leads to
    seen: float  # the opening at which the fingers were seen to move last, or began
    seen_ns: int
    watched: bool  # a move that closes: something may stop it
    moved: bool = False
    stopped: bool = False  # by labctl

    def stands_still(self, opening: float, now_ns: int) -> bool:
        """Have the fingers of a move that closes stopped before they are there?"""
        if abs(opening - self.seen) > RESOLUTION_M:
            self.seen, self.seen_ns, self.moved = opening, now_ns, True
        for_ns = STILL_NS if self.moved else START_NS
        return self.watched and opening - self.going > NEAR_M and now_ns - self.seen_ns >= for_ns


class FrankaHand(WorkedGripper):
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"
    stroke_m = STROKE_M

    def __init__(self, host: str, speed_m_s: float, force_n: float) -> None:
        self._host, self._speed, self._force = host, speed_m_s, force_n
        self._hand: Any = None
        self._work = GripperWorker("hand", self._visit, PERIOD_S)
        self._clock = MonotonicClock()
        self._lock = threading.Lock()  # of the next four, between the worker and the thread that reads
        self._command: _Command | None = None  # under way
        self._stop: threading.Thread | None = None  # it waits for the hand to answer a stop
        self._stop_ns, self._stopping_ns = 0, 0  # when a stop was given last; first for what is to end now, or 0
        self._upon = False  # something stopped fingers that closed: it is grasped next
        self._refused, self._again_ns = 0, 0  # commands in a row; no other is given before
        self._silence, self._seen_ns = Silence(), 0
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
        self._seen_ns = self._clock.now_ns()
        self._reader = threading.Thread(target=self._read, name="hand-states", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Each state the hand sends."""
        while not self._end.is_set():
            try:
                self._see(float(self._hand.width))
            except VENDOR as error:
                self._is_lost(str(mapped(error)))
                return
            except Exception as error:  # a bug: nobody would know how wide the fingers are
                self._is_lost(f"hand: {fault_of('reading the hand', error)}")
                return

    def _is_lost(self, why: str) -> None:
        if not self._end.is_set():
            self._work.sound = RobotStatus("lost", why)

    def _see(self, opening: float) -> None:
        """Stops a command that is no longer wanted, or whose fingers something has stopped."""
        now_ns = self._clock.now_ns()
        self._work.opening, self._seen_ns = opening, now_ns
        with self._lock:
            command, wanted = self._command, self._work.wanted
            if command is not None:
                still = not command.stopped and command.stands_still(opening, now_ns)
                if still or command.stopped or wanted is None or self._beyond(command.going, wanted):
                    self._upon = still or self._upon
                    self._stopped(command, now_ns)
            stuck = self._stops() and now_ns - self._stopping_ns > STOP_NS
        if stuck and self._work.sound.mode == "idle":
            self._work.sound = RobotStatus(
                "fault",
                f"hand: it has not taken a stop for {STOP_NS / SECOND:g} s, and its fingers may move on: look at it, "
                "take away what they press upon, then acknowledge",
            )

    def _stopped(self, command: _Command, now_ns: int) -> None:
        """Give a stop, again and again until the command has ended: on real hands not each one is obeyed. It may be
        answered only once the fingers stand (docs/hardware.md), so a thread of its own waits for that.
        """
        command.stopped = True
        self._stopping_ns = self._stopping_ns or now_ns
        lately = self._stop_ns >= self._stopping_ns and now_ns - self._stop_ns < AGAIN_NS
        if lately or self._answering():
            return
        self._stop_ns = now_ns
        self._stop = threading.Thread(target=self._send_stop, args=(self._hand,), name="hand-stop", daemon=True)
        self._stop.start()

    def _send_stop(self, hand: Any) -> None:
        try:
            hand.stop()
        except VENDOR as error:
            if isinstance(found := mapped(error), DeviceLost) and hand is self._hand:
                self._is_lost(str(found))
        except Exception as error:  # a bug
            self._is_lost(f"hand: {fault_of('stopping the hand', error)}")

    def _answering(self) -> bool:
        return self._stop is not None and self._stop.is_alive()

    def _stops(self) -> bool:
        """Is a command to be stopped that has not ended, or a stop not answered? Under the lock."""
        if self._command is None and not self._answering():
            self._stopping_ns = 0
        return self._stopping_ns != 0

    def _beyond(self, going: float, wanted: float) -> bool:
        """Does what is under way lead beyond what is wanted now? What falls short of it is ended first."""
        return (wanted - going if going < self._work.opening else going - wanted) > CHANGE_M

    def _visit(self) -> None:
        wanted, now_ns = self._work.wanted, self._clock.now_ns()
        with self._lock:
            if self._stops():
                return  # it would end what is given now
        if wanted is None:
            self._reached, self._upon, self._refused = None, False, 0
            return
        if self._reached is not None and abs(wanted - self._reached) <= RESOLUTION_M:
            return
        if self._holding and wanted < self._work.opening:
            self._reached = wanted  # it is held with the force already; a move would let go of that
            return
        if now_ns < self._again_ns:
            return
        closes = wanted < self._work.opening
        grasps = wanted <= CLOSED_M or (closes and self._upon)
        command = _Command(wanted, self._work.opening, now_ns, watched=closes and not grasps)
        self._holding, self._reached = False, None
        with self._lock:
            self._command, self._upon = command, False
        try:
            short = self._give(command, grasps=grasps)
        except VENDOR as error:
            self._refusal(command, error)
            return
        finally:
            with self._lock:
                self._command = None
        self._refused = 0
        if command.stopped:
            return  # the newest target is given next
        if grasps:
            self._holding, self._reached = short, wanted
        elif closes and short:
            self._upon = True  # a hand that says so by itself
        else:
            self._reached = wanted

    def _give(self, command: _Command, *, grasps: bool) -> bool:
        """Have the hand do it; returns once it has: are the fingers wider open than they were sent?"""
        hand, wanted = self._hand, command.going
        if grasps:
            hand.grasp(wanted, self._speed, self._force, epsilon_inner=STROKE_M, epsilon_outer=STROKE_M)
        else:
            hand.move(wanted, self._speed)  # what it returns for a move that something stopped is not documented
        return float(hand.width) - wanted > NEAR_M

    def _refusal(self, command: _Command, error: Exception) -> None:
        """The newest target is tried again: at once where labctl ended the command. Raises what says that the hand is
        lost, or DeviceRefused for one that has refused again and again.
        """
        found = mapped(error)
        if isinstance(found, DeviceLost):
            raise found from error
        if command.stopped:
            return
        self._refused, self._again_ns = self._refused + 1, self._clock.now_ns() + AGAIN_NS
        if self._refused >= REFUSALS:
            self._refused = 0
            raise DeviceRefused(f"{found} ({REFUSALS} commands in a row): see its state in Desk") from error

    def about(self) -> DeviceAbout:
        return {
            "model": "Franka Hand",
            "serial": None,
            "firmware": self._version,
            "client": client(),
            "limits": {"speed_m_s": self._speed, "force_n": self._force},
        }

    def _moves(self) -> bool:
        return self._command is not None

    def status(self) -> RobotStatus:
        if self._reader is not None and self._work.sound.mode != "lost":
            age_ns = self._silence.age_ns(self._seen_ns, self._clock.now_ns())
            if age_ns > SILENCE_NS:
                self._is_lost(f"hand: no state from it for {age_ns / SECOND:.1f} s: network or power")
        return super().status()

    def recover(self) -> None:
        """A refusal is forgotten; the next target is tried. A hand that was lost is connected anew, and what was asked
        for before is forgotten: connecting moves nothing. Raises DeviceRefused for one that is still lost, or has
        not taken a stop yet.
        """
        if self._work.sound.mode == "lost":
            self._connect_again()
        elif self._work.sound.mode == "fault":
            with self._lock:
                if self._stops():
                    raise DeviceRefused(self._work.sound.reason)
        self._work.sound, self._reached, self._holding = RobotStatus("idle"), None, False

    def _connect_again(self) -> None:
        self._let_go()
        self._work.forget()
        with self._lock:
            self._command, self._stop, self._stopping_ns = None, None, 0
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
        hand = self._hand
        if hand is not None and self._command is not None and not self._answering():
            with contextlib.suppress(DeviceLost, *VENDOR):  # it may be gone
                within(STOP_NS / SECOND, hand.stop, "hand: it does not answer a stop")
        self._work.end()
        if self._reader is not None:
            self._reader.join(JOIN_S)
            self._reader = None
        self._hand = None


def build(options: FrankaHandOptions, *, host: str) -> FrankaHand:
    """A hand on the robot's host."""
    return FrankaHand(host, options.speed_m_s, options.force_n)
