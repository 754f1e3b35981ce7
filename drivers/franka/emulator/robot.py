"""The robot server of an emulated FR3: one client's session, the Move state machine, a state a millisecond.

May not: sleep or read a clock; `fr3` paces it. What only a real controller knows is marked as an
assumption.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FLANGE_M, HAND_KG
from labctl.drivers.franka import state as fci
from labctl.drivers.franka.emulator import wire
from labctl.drivers.franka.emulator.dynamics import Dynamics, hand
from labctl.drivers.franka.emulator.motion import Motion
from labctl.drivers.franka.emulator.one_client import OneClientServer
from labctl.drivers.franka.emulator.urdf import urdf
from labctl.drivers.sim.plant import SimulatedPlant

RECOVERY_MS = 200  # Assumption: how long an automatic error recovery takes
LINGER_MS = 300  # states still sent after the TCP connection was cut by a fault
WINDOW = 100  # commands that the success rate is of (libfranka, RobotState)


@dataclass(slots=True)
class _Move:
    """A Move that was answered with "started"; its second answer is owed on every way out."""

    id: int
    generator: int
    controller: int
    commanded: bool = False
    shown: int = 0  # states of it that were sent
    answered: bool = False  # a command of it came


class FciRobot(OneClientServer):
    """See the module. `cycle(now_ns)` makes the next state; `read(sock)` handles what a socket has to say."""

    HEADER = wire.HEADER

    def __init__(self, plant: SimulatedPlant, host: str, tool_kg: float = HAND_KG) -> None:
        super().__init__(host, wire.ROBOT_PORT)
        self._udp.setblocking(False)
        self.plant, self._tool_kg = plant, tool_kg
        self.motion = Motion(plant.robot_model, tool_kg)
        self._state = wire.StateBuffer()
        self._constants()
        self._model = urdf()
        self.number = 0  # of the last state: the robot's clock in ms
        self.mode = fci.IDLE
        self._errors, self._last_errors = bytearray(41), bytearray(41)
        self._move: _Move | None = None
        self._command: wire.RobotCommand | None = None
        self._recovery: tuple[int, int | None] | None = (
            None  # when it is over, id to answer: None if its client has gone
        )
        self.refused_version = 0
        self.safety_rejects = self.user_stopped = self.brakes_closed = False
        self.drop_commands = 0
        self.drop_states = 0.0
        self.silent_until = self._cut_at = 0
        self._rng = np.random.default_rng(1)
        self._came: deque[bool] = deque(maxlen=WINDOW)  # of the last commands of a motion
        self.counts = dict.fromkeys(("states_sent", "commands", "commands_missed", "moves", "reflexes", "clients"), 0)
        self.sent_to_client = 0

    def _constants(self) -> None:
        unit, chain = wire.matrix((0.0,) * 6 + (1.0,)), self.plant.robot_model.chain
        flange_to_tool = (*chain.tool_xy, chain.tool_z - FLANGE_M)
        tool = wire.matrix((*flange_to_tool, *kinematics.tool_quaternion(chain).tolist()))
        for name in ("F_T_EE", "F_T_NE"):
            self._state.set(name, tool)
        for name in ("EE_T_K", "NE_T_EE"):
            self._state.set(name, unit)
        self._state.set("O_ddP_O", np.array([0.0, 0.0, -9.81]))
        kg, centre, inertia = hand(self._tool_kg)
        for name, value in (("m_ee", kg), ("F_x_Cee", centre), ("I_ee", inertia.ravel())):
            self._state.set(name, np.array(value))

    # -- sockets

    def sockets(self) -> list[socket.socket]:
        return [self._listener, self._udp, *([self._tcp] if self._tcp else [])]

    @property
    def waits_for_echo(self) -> bool:
        """In control, a client answers every state; the robot's time waits for it."""
        return self._move is not None and self._move.commanded and self._command is None

    @property
    def waits_for_first(self) -> bool:
        """The first command of a motion is due: a client leaves its first state unanswered, and how soon it answers the
        next one is this machine's doing. What leads on from states that went by meanwhile begins with a leap.
        """
        return self._move is not None and self._move.shown > 1 and not self._move.answered

    def read(self, sock: socket.socket) -> None:
        if sock is self._listener:
            if self._accept():
                self.sent_to_client = 0
                self.counts["clients"] += 1
        elif sock is self._udp:
            self._read_commands()
        elif sock is self._tcp:
            self._read_requests()

    def _payload_bytes(self, command: int) -> int | None:
        return wire.SIZES.get(command)

    def _read_commands(self) -> None:
        while True:
            try:
                data, source = self._udp.recvfrom(2048)
            except BlockingIOError:
                return
            command = wire.read_command(data)
            if command is None or self._move is None or self._peer is None or source[0] != self._peer[0]:
                continue
            if self.drop_commands > 0:
                self.drop_commands -= 1
                self._miss_on_purpose()
            elif command.id >= self.number - 1:
                self.counts["commands"] += 1
                self._move.commanded = self._move.answered = True
                self._command = command

    def _miss_on_purpose(self) -> None:
        """A lost command: the robot's time goes on without it."""
        self.counts["commands_missed"] += 1
        self._came.append(False)
        self._fail(self.motion.miss())
        if self._move is not None:
            self._move.commanded = False  # do not wait for the echo that was dropped

    def drop_client(self) -> None:
        """The TCP connection is gone. A robot in motion stops itself."""
        if self._tcp is not None:
            self._tcp.close()
        self._tcp = None
        if self._recovery is not None:
            self._recovery = self._recovery[0], None
        if self._move is not None or not self.motion.standing:
            self._fail("communication_constraints_violation")
        self._peer = None

    def cut_tcp(self) -> None:
        """A fault: the connection closes while states go on for a moment, as when a switch resets."""
        if self._tcp is not None:
            self._tcp.close()
            self._tcp = None
            self._cut_at = self.number + LINGER_MS
            self._fail("communication_constraints_violation")

    # -- requests

    def _request(self, command: int, number: int, payload: bytes) -> None:
        match command:
            case wire.CONNECT:
                self._connect(number, payload)
            case wire.MOVE:
                self._begin(number, payload)
            case wire.GET_MODEL:
                self._answer(command, number, b"\0" + self._model)
            case wire.RECOVER:
                self._recover(number)
            case wire.STOP_MOVE:
                self._finish(wire.PREEMPTED)
                self._answer(command, number, bytes([wire.OK]))
            case _:  # a setter: `wire.SIZES` knows no other command
                self._answer(command, number, bytes([self._set(command, payload)]))

    def _set(self, command: int, payload: bytes) -> int:
        """Take what a setter sets, as far as states show it; the status to answer."""
        if self._move is not None:
            return wire.BUSY  # Assumption: every setter is refused in motion
        if command == wire.SET_LOAD:
            load = np.array(wire.LOAD.unpack(payload))
            if not np.isfinite(load).all() or load[0] < 0.0:
                return wire.INVALID_ARGUMENT
            self._state.set("m_load", load[0])
            self._state.set("F_x_Cload", load[1:4])
            self._state.set("I_load", load[4:])
            held = (float(load[0]), load[1:4].tolist(), load[4:].reshape(3, 3))
            self.motion.dynamics = Dynamics([hand(self._tool_kg), held])
        elif command == wire.SET_EE_TO_K:
            self._state.set("EE_T_K", np.array(wire.FRAME.unpack(payload)))
        return wire.OK

    def _connect(self, number: int, payload: bytes) -> None:
        version, port = struct.unpack("<HH", payload)
        mine = self.refused_version or wire.ROBOT_VERSION
        refused = version != mine
        self._answer(wire.CONNECT, number, struct.pack("<BH", int(refused), mine))
        if not refused:
            self._send_states_to(port)

    def _begin(self, number: int, payload: bytes) -> None:
        controller, generator = wire.MOVE_HEAD.unpack_from(payload)
        if self.safety_rejects:
            self._answer(wire.MOVE, number, bytes([wire.REJECTED_SAFETY]))
        elif self.mode != fci.IDLE or self._move is not None or not self.motion.standing or generator > 4:
            self._answer(wire.MOVE, number, bytes([wire.NOT_POSSIBLE]))
        else:
            self._answer(wire.MOVE, number, bytes([wire.STARTED]))
            self._move = _Move(number, generator + 1, controller)
            self.motion.begin(generator + 1)
            self._command = None
            self._came = deque([True] * WINDOW, WINDOW)  # Assumption: none is missing before the first
            self.mode = fci.MOVING
            self.counts["moves"] += 1

    def _finish(self, status: int) -> None:
        """Leave control: the second answer to Move, whatever the way out."""
        move, self._move, self._command = self._move, None, None
        if move is None:
            return
        if self.mode == fci.MOVING:
            self.mode = fci.IDLE
        self.motion.settle()
        self.motion.tau[:] = 0.0
        self._answer(wire.MOVE, move.id, bytes([status]))

    def _recover(self, number: int) -> None:
        if self.user_stopped:
            self._answer(wire.RECOVER, number, bytes([wire.RECOVERY_STOPPED]))
        elif self.brakes_closed:
            self._answer(wire.RECOVER, number, bytes([wire.RECOVERY_NOT_POSSIBLE]))
        elif self.mode != fci.REFLEX:
            self._answer(wire.RECOVER, number, b"\0")
        else:
            self.mode = fci.RECOVERING
            self._recovery = (self.number + RECOVERY_MS, number)

    def _recovered(self) -> None:
        assert self._recovery is not None
        number, self._recovery = self._recovery[1], None
        self._errors = bytearray(41)
        self.mode = fci.IDLE
        self.plant.clear_contact()
        if number is not None:
            self._answer(wire.RECOVER, number, b"\0")

    def _recovery_ends(self, status: int) -> None:
        """What comes in the middle of a recovery ends it: nothing of that is recovered from."""
        recovery, self._recovery = self._recovery, None
        if recovery is not None and recovery[1] is not None:
            self._answer(wire.RECOVER, recovery[1], bytes([status]))

    # -- faults and modes

    def _fail(self, error: str) -> None:
        if error:
            self.reflex([error])

    def reflex(self, errors: list[str]) -> None:
        """The robot stops itself. Without errors: the latched kind that names no cause."""
        self._errors = bytearray(41)
        for name in errors:
            self._errors[fci.BIT[name]] = 1
        self._last_errors = bytearray(self._errors)
        self.mode = fci.REFLEX
        self.counts["reflexes"] += 1
        self._finish(wire.REFLEX_ABORTED)
        self._recovery_ends(wire.RECOVERY_REFLEX)

    def user_stop(self) -> None:
        self.user_stopped = True
        self.mode = fci.USER_STOPPED
        self._finish(wire.EMERGENCY_ABORTED)
        self._recovery_ends(wire.RECOVERY_STOPPED)

    def safety_stop(self) -> None:
        self.safety_rejects = True
        self._finish(wire.PREEMPTED_SAFETY)

    def close_brakes(self) -> None:
        self.brakes_closed = True
        self.mode = fci.OTHER
        self._finish(wire.ABORTED)
        self._recovery_ends(wire.RECOVERY_ABORTED)

    def release(self) -> None:
        """A person at the robot ends what stands; a reflex is not cleared by that."""
        if self.mode in (fci.USER_STOPPED, fci.OTHER):
            self.mode = fci.IDLE
        self.user_stopped = self.brakes_closed = self.safety_rejects = False
        self.refused_version = self.drop_commands = self.silent_until = 0
        self.drop_states = 0.0

    # -- a millisecond

    def cycle(self, now_ns: int) -> None:
        """Move by what was commanded for this millisecond, and send the next state."""
        self.number += 1
        if self._move is None:
            self.motion.brake() if not self.motion.standing else None
        else:
            self._controlled()
        if self._recovery is not None and self.number >= self._recovery[0] and self.motion.standing:
            self._recovered()
        if self._cut_at and self.number >= self._cut_at:
            self._cut_at, self._peer = 0, None
        self.plant.tick(self.motion.q, now_ns)
        if self.plant.contact and self.mode == fci.MOVING:
            self._fail("cartesian_reflex")
        self._send()

    def _controlled(self) -> None:
        move, command, motion = self._move, self._command, self.motion
        assert move is not None
        self._command = None
        if move.commanded:  # a client does not answer the first state
            self._came.append(command is not None)
        if command is None:
            if move.commanded:
                self.counts["commands_missed"] += 1
                self._fail(motion.miss())
            else:
                motion.hold() if motion.standing else self._fail(motion.miss())
        elif command.torque_finished if move.generator == wire.TORQUE else command.finished:
            self._finish(wire.SUCCESS)
            motion.rest_if_slow()
        else:
            self._fail(motion.follow(command))

    def _send(self) -> None:
        if self._peer is None or self.number < self.silent_until:
            return
        if self.drop_states and self._rng.random() < self.drop_states:
            if self._move is not None:
                self._move.commanded = False
            return
        state, motion = self._state, self.motion
        state.set("O_T_EE", motion.measured)
        for name in ("O_T_EE_d", "O_T_EE_c"):
            state.set(name, motion.held)
        for name in ("q", "q_d", "theta"):
            state.set(name, motion.q)
        for name in ("dq", "dq_d", "dtheta"):
            state.set(name, motion.dq)
        state.set("ddq_d", motion.ddq)
        state.set("tau_J_d", motion.tau)
        state.set("tau_J", motion.tau)
        state.set("O_dP_EE_c", motion.twist)
        state.set("O_dP_EE_d", motion.twist)
        state.set("O_ddP_EE_c", motion.twist_rate)
        elbow = np.array([motion.q[2], -1.0 if motion.q[3] < 0 else 1.0])
        for name in ("elbow", "elbow_d", "elbow_c"):
            state.set(name, elbow)
        move = self._move
        modes = (move.generator, move.controller) if move else (wire.NO_GENERATOR, wire.NO_CONTROLLER)
        rate = sum(self._came) / WINDOW if move else 0.0  # libfranka: zero while no control loop runs
        data = state.pack(self.number, *modes, bytes(self._errors), bytes(self._last_errors), self.mode, rate)
        try:
            self._udp.sendto(data, self._peer)
        except OSError:
            return  # the client's port is gone; its TCP connection will say so
        self.counts["states_sent"] += 1
        self.sent_to_client += 1
        if move is not None:
            move.shown += 1

    def stats(self) -> dict[str, Any]:
        names = ("other", "idle", "move", "guiding", "reflex", "user_stopped", "recovering")
        errors = [fci.ERRORS[bit] for bit, value in enumerate(self._errors[: len(fci.ERRORS)]) if value]
        mine = {"states_sent_to_client": self.sent_to_client, "mode": names[self.mode], "errors": errors}
        mine["beyond"] = self.motion.beyond
        return {**self.counts, **mine, "robot_time_s": self.number / 1000, "connected": self._peer is not None}
