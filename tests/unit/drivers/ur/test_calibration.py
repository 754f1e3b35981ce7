"""What a UR's controller says of its own kinematics is read as the vendor's client reads it, and used."""

from __future__ import annotations

import math
import socket
import struct
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import address

from labctl import rotations
from labctl.drivers.common import kinematics
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import UR5, UR5E, RobotModel, Tool, with_tool
from labctl.drivers.common.tool_model import ToolModel
from labctl.drivers.ur import calibration
from labctl.drivers.ur.calibration import HEAD, PART, calibration_in, read_calibration
from labctl.drivers.ur.emulator.primary import kinematics_info, measured, published
from labctl.drivers.ur.options import UrOptions
from labctl.errors import DeviceRefused

ARMS = pytest.mark.parametrize("arm", [UR5, UR5E], ids=["ur5", "ur5e"])
# Universal Robots' ROS 2 driver, ur_calibration/test/calibration_test.cpp: a UR10's table, as its simulator reports it,
# and where that simulator's flange was for two sets of joints.
HALF = 1.570796327
UR10 = MeasuredChain(
    theta=(0.0,) * 6,
    a=(0.0, -0.612, -0.5723, 0.0, 0.0, 0.0),
    d=(0.1273, 0.0, 0.0, 0.163941, 0.1157, 0.0922),
    alpha=(HALF, 0.0, 0.0, HALF, -HALF, 0.0),
)
SIMULATED = [
    (
        (
            -1.6007002035724084976,
            -1.7271001974688928726,
            -2.2029998938189905289,
            -0.80799991289247685700,
            1.59510004520416259766,
            -0.03099996248354131012,
        ),
        (-0.179925914147547, -0.606869755162764, 0.230789102067257),
    ),
    (
        (
            1.32645022869110107422,
            2.426007747650146484375,
            5.951572895050048828125,
            1.27409040927886962891,
            -0.54105216661562138825,
            0.12217304855585098267,
        ),
        (0.39922988003280424074, 0.59688365069340565406, -0.66778190402763759614),
    ),
]
# The same file's second calibration, of a real robot: hundreds of metres between axes that are nearly parallel.
DELTAS = {
    "d": (
        -0.00014489497511807614,
        303.469135666158195,
        -309.88394307789747,
        6.41459904397394975,
        -4.48232900190081995e-05,
        -0.00087071402790364627,
    ),
    "a": (
        0.000108651068627930392,
        0.240324175250532346,
        0.00180628180213493472,
        2.63076149165684402e-05,
        3.96638632500012715e-06,
        0.0,
    ),
    "theta": (
        1.59613525316931737e-07,
        -0.917209621528830232,
        7.12936131346499469,
        0.0710299029424392298,
        -1.64258976526054923e-06,
        9.17286101034808787e-08,
    ),
    "alpha": (
        -0.000444781952841921679,
        -0.00160215112531214153,
        0.00631917793331091861,
        -0.00165055247340828437,
        0.000763682515545038854,
        0.0,
    ),
}


@pytest.mark.parametrize(("q", "at"), SIMULATED)
def test_the_flange_is_where_the_manufacturers_simulator_has_it(q: tuple[float, ...], at: tuple[float, ...]) -> None:
    assert np.abs(UR10.flange(np.array([q]))[0][0] - at).max() < 1e-14


def test_a_calibration_of_hundreds_of_metres_leaves_the_flange_within_millimetres() -> None:
    real = MeasuredChain(**{key: tuple(np.add(getattr(UR10, key), delta).tolist()) for key, delta in DELTAS.items()})
    q = np.array([q for q, _ in SIMULATED])
    off = np.linalg.norm(real.flange(q)[0] - UR10.flange(q)[0], axis=1)
    assert off.min() > 1e-4 and off.max() < 0.02


@ARMS
def test_the_published_table_in_both_forms_is_one_robot(arm: RobotModel) -> None:
    q = np.random.default_rng(1).uniform(-3, 3, (50, 6))
    at, turn = published(arm.name).flange(q)
    poses = kinematics.poses(with_tool(arm, Tool((0.0, 0.0, 0.0))).chain, q)
    assert np.abs(at - poses[:, :3]).max() < 1e-12
    assert np.abs(turn - rotations.matrix(poses[:, 3:])).max() < 1e-12


def _info(chain: MeasuredChain) -> bytes:
    """The layout written out: u32 length, u8 5, six u32, theta a d alpha, u32 status, big-endian; 225 bytes."""
    values = struct.pack(">6I", *range(6)) + struct.pack(">24d", *chain.theta, *chain.a, *chain.d, *chain.alpha)
    part = struct.pack(">IB", 225, 5) + values + struct.pack(">I", 2)
    assert len(part) == 225
    return part


def test_kinematics_info_is_found_among_the_parts_of_a_state_and_nothing_is_made_of_what_is_no_such_thing() -> None:
    chain = measured("ur5e")
    other = struct.pack(">IB", 9, 4) + b"abcd"
    assert calibration_in(other + _info(chain) + other) == chain
    assert kinematics_info(chain)[HEAD.size :].endswith(_info(chain)[29:])
    assert calibration_in(kinematics_info(chain)[HEAD.size :]) == chain
    for bad in (other, b"", _info(chain)[:-1], struct.pack(">IB", 0, 5), struct.pack(">IB", 9, 5) + b"abcd"):
        assert calibration_in(bad) is None
    broken = MeasuredChain(chain.theta, chain.a, chain.d, (math.nan,) * 6)
    assert calibration_in(_info(broken)) is None


def _served(answer: Callable[[socket.socket], None], timeout_s: float) -> MeasuredChain | None:
    host = address()
    with socket.create_server((host, calibration.PRIMARY_PORT)) as server:

        def serve() -> None:
            client = server.accept()[0]
            with client:
                answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        found = read_calibration(host, timeout_s)
        thread.join(5)
    return found


def test_it_is_read_behind_other_messages_in_whatever_pieces_it_comes() -> None:
    version = HEAD.pack(9, 20) + b"abcd"
    data = version + HEAD.pack(HEAD.size + 9, 16) + PART.pack(9, 4) + b"abcd" + kinematics_info(measured("ur5"))

    def in_pieces(client: socket.socket) -> None:
        for i in range(0, len(data), 37):
            client.sendall(data[i : i + 37])

    assert _served(in_pieces, 20.0) == measured("ur5")


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0\x10", b"\x7f\xff\xff\xff\x10", HEAD.pack(9, 20) + b"abcd"])
def test_a_controller_that_does_not_say_is_one_that_nothing_is_known_of(data: bytes) -> None:
    assert _served(lambda client: client.sendall(data), 20.0) is None
    assert read_calibration(address(), 0.5) is None


@ARMS
def test_joints_for_the_measured_robots_poses_are_its_joints(arm: RobotModel) -> None:
    model = ToolModel(arm, measured(arm.name))
    for q in arm.home + np.random.default_rng(2).uniform(-0.3, 0.3, (20, 6)):
        pose = model.pose(q)
        at, turn = measured(arm.name).flange(q[None, :])
        assert np.abs(pose[:3] - at[0] - arm.chain.tool_z * turn[0, :, 2]).max() < 1e-12
        assert np.abs(rotations.matrix(pose[None, 3:])[0] - turn[0]).max() < 1e-9
        back, missed = model.joints(pose[None, :], arm.home)
        assert np.abs(back - q).max() < 1e-7 and np.abs(missed).max() < 1e-8


def test_a_robot_of_another_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rtde_control")
    from labctl.drivers.ur import robot

    link: Any = robot.UrLink(UR5E, UrOptions.read({"host": "127.0.0.1"}, "ur5"), cell_named("emulated_ur5e").robot)
    monkeypatch.setattr(robot, "read_calibration", lambda host: measured("ur5e"))
    assert link._calibration() == measured("ur5e")
    monkeypatch.setattr(robot, "read_calibration", lambda host: published("ur5"))
    with pytest.raises(DeviceRefused, match=r'flange 0\.\d+ m from where a ur5e\'s is.* The cell says model = "ur5e"'):
        link._calibration()


def test_a_pose_given_to_the_controller_is_its_own_with_and_without_a_calibration() -> None:
    """servoL of joints that the robot has is the pose that the controller says; the table's is a millimetre away."""
    pytest.importorskip("rtde_control")
    from labctl.drivers.ur.robot import UrLink

    true = ToolModel(UR5E, measured("ur5e"))
    q = UR5E.home + 0.05
    for known in (None, measured("ur5e")):
        link: Any = UrLink(UR5E, UrOptions.read({"host": "127.0.0.1"}, "ur5"), cell_named("emulated_ur5e").robot)
        link._model = ToolModel(UR5E, known)
        link._states = SimpleNamespace(newest=SimpleNamespace(q=q, tcp=true.pose(q)))
        assert np.abs(link._pose(q) - true.pose(q)).max() < 1e-9
        far = float(np.abs(link._pose(q + 0.1)[:3] - true.pose(q + 0.1)[:3]).max())
        assert far < (1e-9 if known else 1e-3)
    assert np.abs(np.array(kinematics.pose(UR5E.chain, q.tolist()))[:3] - true.pose(q)[:3]).max() > 5e-4
