"""One client at a time, and who has gone is nobody: the emulated robot and its hand look before they refuse another."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.franka.emulator import wire as wire
from labctl.drivers.franka.emulator.hand import FciHand
from labctl.drivers.franka.emulator.robot import FciRobot
from labctl.drivers.sim.plant import SimulatedPlant
from support.robots.emulators import address

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
