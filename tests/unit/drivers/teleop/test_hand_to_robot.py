"""A robot goes as fast as the hand: through the teleoperation controller, both nodes and the simulated robot, in its
time.

On an emulator, through the vendor's client: thorough. All of them, and figures: tests/benchmarks/bench_teleop.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named, changed
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


HELD_BACK = {
    "the tool": ({"tool_speed_m_s": 0.1}, Caps(linear_m_s=0.2), 1),
    "the joints": ({"velocity_rad_s": [0.2] * 7}, Caps(), 1),
    "a turn": ({"velocity_rad_s": [0.4] * 7}, Caps(), 5),
}


def rest_after(limits: dict[str, Any], caps: Caps, wish: Callable[[float], dict[str, Any]], *, leader: bool) -> float:
    """How long after its clutch was let go, 2 s on, an arm stands that its limits hold back, s."""
    rig = RobotRig("sim_fr3", {}, changed(cell_named("sim_fr3"), {"robot": {"limits": limits}}), live=False)
    rig.connect()
    drive = Drive(rig, caps, lambda t_s: {**wish(t_s), "engaged": t_s < 2.0}, leader=leader)
    way = drive.go(4.0)
    drive.end()
    rig.robot.close()
    to = way.q[-1] - way.q[way.t_s < 2.0][-1]
    ahead = (way.q[way.t_s > 2.0] - way.q[-1]) * np.sign(to)
    assert ahead.max() < 2e-3, "it goes on to where it rests, and not back"
    return float(way.t_s[np.flatnonzero(np.abs(way.q - way.q[-1]).max(axis=1) > 1e-3)[-1]] - 2.0)


@pytest.mark.parametrize("what", HELD_BACK)
def test_a_stick_that_is_let_go_brings_an_arm_to_rest_that_its_limits_hold_back(what: str) -> None:
    limits, caps, axis = HELD_BACK[what]
    assert rest_after(limits, caps, lambda t_s: {"axes": np.eye(6)[axis] * (t_s > 0)}, leader=False) < 0.4


def test_a_leader_that_is_let_go_brings_an_arm_to_rest_that_its_limits_hold_back(rig: RobotRig) -> None:
    assert rest_after({"velocity_rad_s": [0.2] * 7}, CAPS, sweep(rig, 0.8, 3.0), leader=True) < 0.5


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
