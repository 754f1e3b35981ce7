"""Emulator "fr3": a Franka FR3 with its hand, speaking the FCI to libfranka's clients, on loopback.

May not: take a slow machine for a lost packet. While a client is in control the robot's time waits for its answers
(paced lock-step); `message_id` is the only clock. Packet loss is a scripted fault. How long it waits is the time in
which it was there to read: a machine that runs neither it nor the client for a while stops no robot.
"""

from __future__ import annotations

import contextlib
import queue
import select
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from labctl.clock import MonotonicClock
from labctl.config.cell_schema import Fixture
from labctl.drivers.common.robot_tables import FR3, with_tool
from labctl.drivers.franka import state as fci
from labctl.drivers.franka.emulator import wire
from labctl.drivers.franka.emulator.hand import FciHand
from labctl.drivers.franka.emulator.robot import FciRobot
from labctl.drivers.franka.options import Fr3EmulatorOptions
from labctl.drivers.sim.control_link import loopback
from labctl.drivers.sim.control_port import Arguments, Number, Words, checked_fault, not_bound
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.realtime import CONTROLLER, urgent

CLOCK = MonotonicClock()
MS = 1_000_000
BEHIND_NS = 5 * MS
ANSWERS = 100_000  # of the client in control, whose times are kept
LISTEN_NS = 5 * MS  # at a time to a client that owes an answer: no more counts than that, whenever this machine goes on
FIRST_NS = 20 * MS  # for the first command of a motion, at most, after each state
CLOSEST_NS = 600_000  # no two states follow each other closer, however late the first was
FAULTS = {
    "reflex": "the robot stops itself; name = an error's name (default cartesian_reflex)",
    "latched_reflex": "mode Reflex with no error named, as seen in the field",
    "user_stop": "the external activation device is pressed, until cleared",
    "safety_stop": "the safety system ends the motion and refuses others, until cleared",
    "packet_loss": "n = how many commands in a row get lost (20 stop the robot)",
    "state_loss": "share = of states that are not sent, until cleared",
    "silence": "seconds = time without states (default 2)",
    "tcp_close": "the connection is cut",
    "refuse_version": "version = what the robot claims to speak, until cleared (default 9)",
    "brakes_closed": "the brakes close, until cleared",
}
ARGUMENTS: Arguments = {
    "reflex": {"name": Words(fci.ERRORS)},
    "packet_loss": {"n": Number(whole=True)},
    "state_loss": {"share": Number(most=1.0)},
    "silence": {"seconds": Number()},
    "refuse_version": {"version": Number(least=1, most=0xFFFF, whole=True)},
}


class Fr3:
    """See `labctl.drivers.sim.control_port.Emulator`."""

    name = "fr3"
    faults: Mapping[str, str] = FAULTS
    ports: Mapping[str, int] = {"robot": wire.ROBOT_PORT, "gripper": wire.HAND_PORT}
    in_cell: Mapping[str, int] = {}

    def __init__(self, host: str, fixture: Fixture, options: Fr3EmulatorOptions) -> None:
        self.plant = SimulatedPlant(with_tool(FR3, options.tool()), fixture, 0.001, now_ns=CLOCK.now_ns())
        self._opened, port = contextlib.ExitStack(), wire.ROBOT_PORT
        try:
            self._robot = FciRobot(self.plant, host, options.tool_kg)
            self._opened.callback(self._robot.close)
            port = wire.HAND_PORT
            self._hand = FciHand(self.plant, host)
            self._opened.callback(self._hand.close)
        except OSError as error:
            self.close()
            raise not_bound(f"{host}:{port}", error) from error
        self._echo_ns, self._paced, self._ahead = round(options.echo_s * 1e9), options.paced, options.ahead
        self._asked: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._late = self._obeyed = 0
        self._answers: deque[int] = deque(maxlen=ANSWERS)

    def inject(self, name: str, args: Mapping[str, Any]) -> None:
        self._asked.put((name, checked_fault(name, args, FAULTS, ARGUMENTS)))

    def clear(self) -> None:
        self._asked.put(("", {}))

    def _obey(self, name: str, args: Mapping[str, Any]) -> None:
        robot = self._robot
        match name:
            case "":
                robot.release()
            case "reflex":
                robot.reflex([args.get("name", "cartesian_reflex")])
            case "latched_reflex":
                robot.reflex([])
            case "user_stop":
                robot.user_stop()
            case "safety_stop":
                robot.safety_stop()
            case "packet_loss":
                robot.drop_commands = args.get("n", 25)
            case "state_loss":
                robot.drop_states = args.get("share", 0.05)
            case "silence":
                robot.silent_until = robot.number + round(args.get("seconds", 2.0) * 1000)
            case "tcp_close":
                robot.cut_tcp()
            case "refuse_version":
                robot.refused_version = args.get("version", 9)
            case "brakes_closed":
                robot.close_brakes()

    def stats(self) -> dict[str, Any]:
        answers = sorted(self._answers) or [0]
        slow = {
            f"answer_us_{share}": answers[min(len(answers) * share // 1000, len(answers) - 1)]
            for share in (500, 990, 999)
        }
        late = sum(one > 1000 for one in answers)
        mine = {
            **slow,
            "answers": len(self._answers),
            "answers_late": late,
            "late_ticks": self._late,
            "obeyed": self._obeyed,
        }
        return {**self._robot.stats(), **mine, "q": self.plant.q.tolist()}

    def run(self, until: Callable[[], bool]) -> None:
        if self._ahead:
            urgent(CONTROLLER)
        due = CLOCK.now_ns()
        while not (self._robot.number % 50 == 0 and until()):
            while not self._asked.empty():
                self._obey(*self._asked.get())
                self._obeyed += 1
            now = CLOCK.now_ns()
            self._robot.cycle(now)
            self._hand.cycle(now)
            due += MS
            if now - due > BEHIND_NS:
                self._late += 1
                due = now
            self._serve(due if self._paced else now)

    def _serve(self, due: int) -> None:
        """Answer sockets until the next millisecond is due and the client in control has answered this one."""
        robot, sent, asked = self._robot, CLOCK.now_ns(), self._robot.waits_for_echo
        due = max(due, sent + CLOSEST_NS) if self._paced else due
        patience_ns = self._echo_ns
        while True:
            now = CLOCK.now_ns()
            waits = robot.waits_for_echo
            if asked and not waits:
                asked = False
                self._answers.append((now - sent) // 1000)
            if waits and patience_ns <= 0:
                robot.reflex(["communication_constraints_violation"])  # the client's process has stopped or died
                waits = False
            until = max(due, sent + FIRST_NS) if robot.waits_for_first else due
            if not waits and now >= until:
                self._poll(0.0)
                return
            listen_ns = min(LISTEN_NS, patience_ns) if waits else max(0, until - now)
            self._poll(listen_ns / 1e9)
            if waits:
                self._hand.wait(CLOCK.now_ns())
                patience_ns -= min(listen_ns, CLOCK.now_ns() - now)

    def _poll(self, seconds: float) -> None:
        sockets = [*self._robot.sockets(), *self._hand.sockets()]
        for sock in select.select(sockets, [], [], seconds)[0]:
            self._robot.read(sock)
            self._hand.read(sock)

    def close(self) -> None:
        self._opened.close()


def build(options: Fr3EmulatorOptions, *, host: str, fixture: Fixture) -> Fr3:
    """An FR3 on `host`. Raises InputError for a host that is not loopback, or ports in use."""
    return Fr3(loopback(host), fixture, options)
