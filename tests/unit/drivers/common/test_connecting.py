"""A vendor's client that waits for ever for its robot is not waited for."""

from __future__ import annotations

import socket
import threading

import pytest
from support.robots.cells import cell_named
from support.robots.emulators import address

from labctl.drivers.common.options import check_place
from labctl.drivers.common.state_timeout import within
from labctl.drivers.common.states import States
from labctl.errors import DeviceLost, InputError


def test_what_a_call_returns_or_raises_in_time_is_its_own() -> None:
    assert within(60.0, lambda: 7, "silent") == 7
    with pytest.raises(ZeroDivisionError):
        within(60.0, lambda: 1 / 0, "silent")


def test_a_call_that_does_neither_is_lost_in_words() -> None:
    never = threading.Event()
    with pytest.raises(DeviceLost, match="no word"):
        within(0.01, never.wait, "no word")
    never.set()


def test_a_robot_that_takes_the_connection_and_says_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 20.23: so does one that has another client already; franky waits for ever (seen)."""
    pytest.importorskip("franky")
    from labctl.drivers.common.robot_tables import FR3
    from labctl.drivers.franka import robot
    from labctl.drivers.franka.options import FrankaOptions

    monkeypatch.setattr(robot, "CONNECT_S", 0.3)
    host = address()
    with socket.create_server((host, 1337)):
        link = robot.FrankaLink(FR3, FrankaOptions.read({"host": host}, "franka"), cell_named("emulated_fr3").robot)
        try:
            with pytest.raises(DeviceLost, match="one client only"):
                link.open(States(lambda: 0.0))
        finally:
            link.close()


def test_a_hand_that_takes_the_connection_and_says_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("franky")
    from labctl.drivers.franka import hand

    monkeypatch.setattr(hand, "CONNECT_S", 0.3)
    host = address()
    with socket.create_server((host, 1338)), pytest.raises(DeviceLost, match="hand: it took the connection"):
        hand.FrankaHand(host, 0.1, 20.0).connect()


def test_a_host_that_is_no_name_is_one_line() -> None:
    cell = cell_named("ur5e_cell")
    with pytest.raises(InputError, match=r"ur5: host 'robot\.\.lab' is no name of a computer") as caught:
        check_place("ur5", cell, "robot..lab")
    assert cell.kind == "real" and "\n" not in str(caught.value)
