"""A robot goes as fast as the hand: through the teleoperation controller, both nodes and the simulated robot, in its
time.

On an emulator, through the vendor's client: thorough. All of them, and figures: tests/benchmarks/bench_teleop.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import Emulators
from support.robots.hand_to_robot import Drive, followed, push, sweep

from labctl.drivers.teleop.gate import Caps
from labctl.testing.robot import RobotRig

TURN_S = 1.2
CAPS = Caps(joint_rad_s=0.8)


@pytest.fixture
def rig() -> Iterator[RobotRig]:
    made = RobotRig("sim_fr3", {}, cell_named("sim_fr3"), live=False)
    made.connect()
    yield made
    made.robot.close()


def drives(rig: RobotRig, speed: float) -> float:
    drive = Drive(rig, CAPS, sweep(rig, speed, TURN_S), leader=True)
    way = drive.go(TURN_S)
    drive.end()
    return followed(way.t_s, way.q[:, -1] - drive.q0[-1], speed, TURN_S).speed


@pytest.mark.parametrize("speed", [0.2, 0.8])
def test_the_arm_reaches_the_speed_of_a_leader(speed: float, rig: RobotRig) -> None:
    assert 0.95 <= drives(rig, speed) <= 1.05


def test_a_stick_is_at_half_speed_within_100_ms(rig: RobotRig) -> None:
    drive = Drive(rig, Caps(), push(1, 1.0), leader=False)
    way = drive.go(0.6)
    drive.end()
    y = np.abs(way.tcp[:, 1] - way.tcp[way.t_s <= 0][-1, 1])
    found = followed(way.t_s, y, 0.15, 0.6)
    assert found.half_s < 0.1 and 0.95 <= found.speed <= 1.05


def test_a_leader_that_is_let_go_in_motion_brings_the_arm_to_rest_and_not_back(rig: RobotRig) -> None:
    moves = sweep(rig, 0.8, TURN_S)
    drive = Drive(rig, CAPS, lambda t_s: {**moves(t_s), "engaged": t_s < 0.6}, leader=True)
    way = drive.go(TURN_S)
    drive.end()
    at = way.q[:, -1] - drive.q0[-1]
    assert np.diff(at).min() > -1e-4, "it never goes back to where it was seen"
    assert at[way.t_s <= 0.6][-1] > 0.3
    rested = at[way.t_s >= 0.6 + 0.25]
    assert np.ptp(rested) < 1e-3, "and stands a quarter of a second later"


@pytest.mark.thorough
@pytest.mark.real_time
@pytest.mark.busy
@pytest.mark.alone
def test_a_real_driver_on_an_emulator_reaches_the_speed_of_a_leader() -> None:
    name, speed = "emulated_ur5e", 0.2
    with Emulators() as emulators:
        rig = RobotRig("emulated", emulators.options(name), cell_named(name), live=True)
        try:
            rig.connect()
            assert 0.95 <= drives(rig, speed) <= 1.05
        finally:
            rig.robot.close()
