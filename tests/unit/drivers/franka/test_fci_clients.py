"""One client at a time, and who has gone is nobody: the emulated robot and its hand look before they refuse another."""

from __future__ import annotations

import socket
import struct
from typing import Any

import numpy as np
import pytest
from support.robots.emulators import address

from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.franka import state as fci
from labctl.drivers.franka.emulator import wire
from labctl.drivers.franka.emulator.fr3 import Fr3
from labctl.drivers.franka.emulator.hand import FciHand
from labctl.drivers.franka.emulator.robot import RECOVERY_MS, FciRobot
from labctl.drivers.franka.options import Fr3EmulatorOptions
from labctl.drivers.franka.state import SLICES
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.errors import InputError
from labctl.testing.given import FIXTURE


@pytest.mark.parametrize(("server", "port"), [(FciRobot, wire.ROBOT_PORT), (FciHand, wire.HAND_PORT)])
def test_the_next_client_is_taken_as_soon_as_the_last_has_gone(server: Any, port: int) -> None:
    host = address()
    made = server(SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0), host)
    with socket.create_connection((host, port)) as first:
        made.read(made._listener)
        with socket.create_connection((host, port)) as second:
            made.read(made._listener)
            assert second.recv(1) == b"", "refused while the first is there"
        assert made._tcp.getpeername() == first.getsockname()
    with socket.create_connection((host, port)) as third:
        made.read(made._listener)
        assert made._tcp is not None and made._tcp.getpeername() == third.getsockname()
    made.close()


def test_a_load_that_is_set_stands_in_every_state_and_none_is_taken_in_motion() -> None:
    """Statuses of a setter, from the FCI's service types: 0 taken, 1 not possible, 2 invalid argument."""
    made, values = FciRobot(SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0), address()), (0.5, *np.arange(1.0, 13.0) / 64)
    try:
        assert made._set(wire.SET_LOAD, struct.pack("<13d", *values)) == 0
        assert made._set(wire.SET_LOAD, struct.pack("<13d", -0.1, *values[1:])) == 2
        stood = np.frombuffer(made._state.pack(1, 0, 3, bytes(41), bytes(41), 1)[8 : 8 + 4 * 320], "<f4")
        for name, expected in (("m_load", values[:1]), ("F_x_Cload", values[1:4]), ("I_load", values[4:])):
            assert stood[SLICES[name]].tolist() == list(expected), name
        made._begin(1, struct.pack("<II", 2, 0) + bytes(105))
        assert made._set(wire.SET_LOAD, struct.pack("<13d", *values)) == 1
    finally:
        made.close()


def test_a_recovery_goes_on_when_the_client_that_asked_for_it_goes_and_the_next_one_may_move() -> None:
    host = address()
    made = FciRobot(SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0), host)
    try:
        with socket.create_connection((host, wire.ROBOT_PORT)):
            made.read(made._listener)
            made.reflex(["cartesian_reflex"])
            made._request(wire.RECOVER, 5, b"")
            assert made.mode == fci.RECOVERING
        with socket.create_connection((host, wire.ROBOT_PORT)) as second:
            made.read(made._listener)
            for _ in range(RECOVERY_MS + 1):
                made.cycle(0)
            assert made.mode == fci.IDLE
            second.setblocking(False)
            with pytest.raises(BlockingIOError):
                second.recv(1)  # the answer was the first one's
    finally:
        made.close()


def test_a_client_that_goes_while_the_robot_brakes_and_recovers_leaves_a_reflex() -> None:
    host = address()
    made = FciRobot(SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0), host)
    try:
        with socket.create_connection((host, wire.ROBOT_PORT)):
            made.read(made._listener)
            made.motion.dq = np.full(7, 0.5)
            made.reflex(["cartesian_reflex"])
            made._request(wire.RECOVER, 5, b"")
        made.drop_client()
        for _ in range(RECOVERY_MS + 1):
            made.cycle(0)
        assert made.motion.standing
        assert made.mode == fci.REFLEX and made.stats()["errors"] == ["communication_constraints_violation"]
    finally:
        made.close()


@pytest.mark.parametrize(
    ("befalls", "mode", "status"),
    [("user_stop", fci.USER_STOPPED, 5), ("close_brakes", fci.OTHER, 6)],
)
def test_what_a_person_does_in_a_recovery_ends_it_and_is_not_recovered_from(befalls: str, mode: int, status: int):
    """Statuses of a recovery, from the FCI's service types: 4 aborted by a reflex, 5 by a stop, 6 otherwise."""
    host = address()
    made = FciRobot(SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0), host)
    try:
        with socket.create_connection((host, wire.ROBOT_PORT)) as client:
            made.read(made._listener)
            made.reflex(["cartesian_reflex"])
            made._request(wire.RECOVER, 5, b"")
            getattr(made, befalls)()
            answer = client.recv(64)
            assert wire.HEADER.unpack_from(answer)[:2] == (wire.RECOVER, 5) and answer[wire.HEADER.size] == status
            for _ in range(RECOVERY_MS + 1):
                made.cycle(0)
            assert made.mode == mode
    finally:
        made.close()


def test_a_gripper_port_that_is_taken_is_named_and_leaves_the_robot_s_free() -> None:
    host, options = address(), Fr3EmulatorOptions()
    with socket.create_server((host, wire.HAND_PORT)), pytest.raises(InputError, match=f"{host}:{wire.HAND_PORT} "):
        Fr3(host, FIXTURE, options)
    Fr3(host, FIXTURE, options).close()
