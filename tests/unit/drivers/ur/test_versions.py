"""What a controller's software decides: whether it is asked for remote control, whether it has a dashboard at all."""

from __future__ import annotations

import socket
import struct
import threading

import numpy as np
import pytest
from support.robots.emulators import address

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import URS
from labctl.drivers.ur.version import (
    asks_for_remote_control,
    controller_version,
    has_dashboard,
    has_robot_api,
    what_is_missing,
)

# As ur_rtde 1.6.5 branches in the constructor of its control interface: remote control from 5.6 on, the dashboard below
# 10, a program sent to 10.10 and later; the Robot API from 10.11 on, as Universal Robots' client library has it.
BRANCHES = [
    ((3, 15, 4, 0), False, True, False, True),
    ((3, 3, 4, 0), False, True, False, False),
    ((5, 3, 1, 0), False, True, False, False),
    ((5, 4, 0, 0), False, True, False, True),
    ((5, 5, 1, 0), False, True, False, True),
    ((5, 6, 0, 0), True, True, False, True),
    ((5, 25, 0, 0), True, True, False, True),
    ((10, 8, 0, 0), False, False, False, False),
    ((10, 10, 0, 0), False, False, False, True),
    ((10, 11, 0, 0), False, False, True, True),
    (None, True, True, False, True),
]


@pytest.mark.parametrize(("version", "remote", "dashboard", "api", "drives"), BRANCHES)
def test_what_is_asked_of_a_controller_goes_by_its_version(
    version, remote: bool, dashboard: bool, api: bool, drives: bool
) -> None:
    assert asks_for_remote_control(version) is remote
    assert has_dashboard(version) is dashboard
    assert has_robot_api(version) is api
    assert (what_is_missing(version, upper=False) == "") is drives


@pytest.mark.parametrize(
    ("version", "drives"),
    [
        ((3, 3, 4, 0), True),
        ((3, 15, 4, 0), True),
        ((5, 3, 1, 0), True),
        ((5, 22, 0, 0), True),
        ((5, 23, 0, 0), False),
        ((10, 8, 0, 0), False),
        ((10, 10, 0, 0), False),
        (None, True),
    ],
)
def test_registers_that_ur_rtde_does_not_read_are_refused_before_it_waits_for_them(version, drives: bool) -> None:
    """Below 3.4 and 5.4 its constructor kept the robot's process for ever; from 5.23 on, with the upper, for 4 s."""
    assert (what_is_missing(version, upper=True) == "") is drives
    assert 'register_offset = "lower"' in what_is_missing((5, 23, 0, 0), upper=True)
    assert '"upper"' in what_is_missing((5, 3, 1, 0), upper=False)


@pytest.mark.parametrize("says", [b"", b"\0\3V", b"\0\4V\1\0\7v\0\0\0\5"])
def test_a_controller_that_does_not_say_its_version_has_none(says: bytes) -> None:
    host = address()
    with socket.create_server((host, 30004)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(64)
                client.sendall(says)

        thread = threading.Thread(target=serve)
        thread.start()
        assert controller_version(host, 60.0) is None
        thread.join()


def test_a_version_is_four_numbers() -> None:
    host = address()
    with socket.create_server((host, 30004)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(5)
                client.sendall(b"\0\4V\1")
                client.recv(3)
                client.sendall(struct.pack(">HBIIII", 19, ord("v"), 5, 5, 1, 82186))

        thread = threading.Thread(target=serve)
        thread.start()
        assert controller_version(host, 60.0) == (5, 5, 1, 82186)
        thread.join()


@pytest.mark.parametrize("name", URS)
def test_each_model_reaches_its_home_and_comes_back_by_its_own_inverse(name: str) -> None:
    arm = URS[name]
    tool = np.array(kinematics.pose(arm.chain, arm.home.tolist()))
    assert abs(abs(tool[3]) - 1) < 1e-9, "the tool points straight down"
    assert np.abs(arm.inverse(tool[None, :], arm.home)[0] - arm.home).max() < 1e-9
    away = arm.home + np.array([0.3, -0.1, 0.2, 0.1, -0.2, 0.3])
    there = np.array(kinematics.pose(arm.chain, away.tolist()))
    assert np.abs(arm.inverse(there[None, :], arm.home + 0.9 * (away - arm.home))[0] - away).max() < 1e-9


# Universal Robots' support article "DH parameters": height of the last axis over a robot stretched out upwards, m:
# d1 - a2 - a3 + d5; Universal_Robots_ROS2_Description, config/*/joint_limits.yaml: degrees/s, first and last joint.
@pytest.mark.parametrize(
    ("name", "up_m", "first", "last"),
    [
        ("ur5", 1.001059, 180, 180),
        ("ur3e", 0.69395, 180, 360),
        ("ur5e", 1.0794, 180, 180),
        ("ur7e", 1.0794, 180, 180),
        ("ur10e", 1.4848, 120, 180),
        ("ur15", 1.5186, 180, 300),
        ("ur20", 1.9863, 120, 210),
    ],
)
def test_links_and_speeds_are_the_published_ones(name: str, up_m: float, first: float, last: float) -> None:
    arm = URS[name]
    up = kinematics.jacobian(arm.chain, np.array([[0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0]]))[1][0]
    assert np.isclose(up[2], up_m, atol=1e-9)
    assert np.allclose(np.degrees(arm.velocity[[0, 5]]), [first, last])
