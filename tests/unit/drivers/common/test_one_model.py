"""A controller's model of its robot is calibrated, labctl's is published: what is not to move does not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3, UR5E, RobotModel
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.drivers.common.states import Sample

STEPS = 10
ARMS = {"ur5e": (UR5E, "emulated_ur5e"), "fr3": (FR3, "emulated_fr3")}


class Bench:
    """A robot whose every link is `off_m` longer than published, and whose tool is turned by `yaw` more than the
    cell's. It is at once where it is sent.
    """

    def __init__(self, name: str, off_m: float, yaw: float = 0.0) -> None:
        arm, cell = ARMS[name]
        rows = tuple((a + off_m if a else a, alpha, d + off_m if d else d) for a, alpha, d in arm.chain.rows)
        turn = (0.0, 0.0, arm.chain.tool_rpy[2] + yaw)
        self.true = replace(arm.chain, rows=rows, tool_rpy=turn)
        self.arm: RobotModel = arm
        gripper: Any = SimpleNamespace(opening=lambda: 0.08, stroke_m=0.08)
        link: Any = SimpleNamespace(more={}, law=None, coast_s=0.0)
        self.robot = ServoedRobot(arm, link, gripper, cell_named(cell), arm.home, 0.3)
        self.q = arm.home + 0.05
        self.t_ns = 0
        self.tell()

    @property
    def tcp(self) -> np.ndarray:
        return np.array(kinematics.pose(self.true, self.q.tolist()))

    def tell(self) -> None:
        self.t_ns += 1
        zero = np.zeros(self.arm.dof)
        self.robot._states.add(self.t_ns, Sample(self.q, zero, zero, self.tcp, self.t_ns / 1e9))

    def step(self, by: np.ndarray) -> None:
        """As `nodes.playing` makes a `tcp_step`: what is measured, and the step."""
        seen = self.robot.observe()
        goal = np.concatenate([seen["tcp"][:3] + by, seen["tcp"][3:]])
        self.q = self.robot.to_joints(goal[None, :], self.q)[0]
        self.tell()


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize(("off_m", "yaw"), [(0.0, 0.0), (0.0007, 0.0), (0.0007, 0.8)])
def test_ten_steps_that_should_not_move_do_not_move(name: str, off_m: float, yaw: float) -> None:
    bench = Bench(name, off_m, yaw)
    before, q = bench.tcp, bench.q.copy()
    for _ in range(STEPS):
        bench.step(np.zeros(3))
    assert np.abs(bench.tcp[:3] - before[:3]).max() < 1e-6
    assert np.abs(bench.q - q).max() < 1e-4


@pytest.mark.parametrize("name", ARMS)
def test_a_step_is_as_long_as_it_was_asked_for_as_the_controller_sees_it(name: str) -> None:
    bench = Bench(name, 0.0007)
    for by in ([0, 0, 0.01], [0.01, 0, 0], [0, -0.01, 0]):
        before = bench.tcp[:3]
        bench.step(np.array(by))
        assert np.abs(bench.tcp[:3] - before - by).max() < 1e-4


@pytest.mark.parametrize("name", ARMS)
def test_poses_of_joints_are_the_controllers_and_lead_back_to_the_joints(name: str) -> None:
    bench = Bench(name, 0.0007)
    assert np.abs(bench.robot.to_pose(bench.q) - bench.tcp).max() < 1e-9
    there = bench.robot.to_pose(bench.q + 0.02)
    assert np.abs(bench.robot.to_pose(bench.robot.to_joints(there[None, :], bench.q)[0])[:3] - there[:3]).max() < 1e-6
