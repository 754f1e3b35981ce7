"""What every robot does that drives: the contract of axes of kind twist, as tests.

May not: know a driver. A test class names its robot by a fixture `rig`, as `labctl.testing.robot` says.
"""

from __future__ import annotations

import numpy as np
import pytest

from labctl.axes import axes_of, twist_of
from labctl.clock import SECOND
from labctl.devices import Robot
from labctl.streams import ODOMETRY, PLACE, SPEEDS, STATE
from labctl.testing.robot import OfARobot
from labctl.testing.robot_rig import SCENE, RobotRig

__all__ = ["DrivingConformance"]

STILL = 1e-4  # m/s, rad/s
TOLD_S = 0.3  # a robot without setpoints brakes after no more than this


class DrivingConformance(OfARobot):
    """What every robot does whose base drives: it goes at the speeds that it is asked for while it is asked for them,
    and no longer, whatever ends them.
    """

    @pytest.fixture
    def twist(self, robot: Robot) -> list[int]:
        """The columns of q that are its base's speeds."""
        found = list(twist_of(axes_of(robot)))
        assert found, "it has an axis of kind twist"
        return found

    def test_its_base_goes_at_the_speeds_that_are_asked_for_within_the_cells_limits(
        self, rig: RobotRig, twist: list[int]
    ) -> None:
        most, kick = self.most(rig)
        asked = 10.0 * most * (-1.0) ** np.arange(len(twist))
        did = rig.follow(speeds(rig, twist, asked, round(SECOND * max(2.0, 1.5 * self.braking_s(rig)))))
        sent = did.sent[:, twist]
        assert (np.abs(sent) <= most).all(), "never faster"
        assert (np.abs(np.diff(sent, axis=0, prepend=0.0)) * rig.robot.control_hz <= kick).all(), "nor sooner"
        assert np.abs(sent[-1]) == pytest.approx(most), "and as fast as it may"
        assert rig.robot.clipped

    def test_where_setpoints_end_it_comes_to_rest_by_itself(self, rig: RobotRig, twist: list[int]) -> None:
        self.sent_off(rig, twist)
        rig.wait(round((TOLD_S + self.braking_s(rig)) * SECOND))
        self.stands(rig, twist)

    def test_a_setpoint_of_no_speed_brings_it_to_rest(self, rig: RobotRig, twist: list[int]) -> None:
        self.sent_off(rig, twist)
        rig.follow(speeds(rig, twist, np.zeros(len(twist)), round((0.1 + self.braking_s(rig)) * SECOND)))
        assert np.abs(rig.robot.observe()["q"][twist]).max() < STILL

    def test_a_stop_brings_it_to_rest_and_no_speed_moves_it_then(self, rig: RobotRig, twist: list[int]) -> None:
        self.sent_off(rig, twist)
        rig.robot.stop()
        asked = 0.5 * self.most(rig)[0]
        rig.follow(speeds(rig, twist, asked, round((0.1 + self.braking_s(rig)) * SECOND)))
        self.stands(rig, twist)
        before = place(rig)
        rig.follow(speeds(rig, twist, asked, SECOND))
        assert np.abs(place(rig) - before).max() < STILL
        assert rig.robot.status().mode == "stopped"
        rig.recover()
        assert np.abs(rig.robot.observe()["q"][twist]).max() < STILL, "what was asked before is not taken up again"

    def test_staging_never_drives_it_and_is_done_when_a_person_has_put_it_in_its_place(
        self, rig: RobotRig, twist: list[int]
    ) -> None:
        self.sent_off(rig, twist)
        rig.robot.stop()
        rig.at_rest()
        rig.drain()
        rig.batches.clear()
        rig.robot.stage(SCENE, 1, rig.now_ns)
        assert not rig.robot.staged()
        assert "put the base in its place" in rig.robot.status().reason, "where it is to stand and how far off it is"
        rig.until(rig.robot.staged)
        assert np.abs(self.measured(rig, SPEEDS)).max() < STILL
        assert not rig.robot.status().reason

    def test_poses_of_the_tool_ask_no_speed_of_it_even_while_it_drives(self, rig: RobotRig, twist: list[int]) -> None:
        self.sent_off(rig, twist)
        seen = rig.robot.observe()
        q = rig.robot.to_joints(np.repeat(seen["tcp"][None, :], 3, axis=0), seen["q"])
        assert not q[:, twist].any()

    def test_where_it_has_come_to_is_what_its_measured_speeds_lead_to(self, rig: RobotRig, twist: list[int]) -> None:
        rig.drain()
        rig.batches.clear()
        self.sent_off(rig, twist)
        rig.at_rest()
        rig.drain()
        times = np.concatenate([batch.t_ns for batch in rig.batches if batch.stream == ODOMETRY])
        (vx, vy, wz), places = self.measured(rig, SPEEDS).T, self.measured(rig, PLACE)
        spans = np.diff(times) / SECOND
        yaw = places[:-1, 2]
        c, s = np.cos(yaw), np.sin(yaw)
        way = np.column_stack([c * vx[1:] - s * vy[1:], s * vx[1:] + c * vy[1:], wz[1:]])
        led = np.cumsum(way * spans[:, None], axis=0)
        assert np.abs(led[-1]).max() > 0.05
        assert led[-1] == pytest.approx(places[-1] - places[0], abs=0.03)
        assert np.abs(place(rig) - places[-1]).max() < 0.01, "and what an observation says"

    def test_its_odometry_comes_as_often_as_its_states(self, rig: RobotRig, twist: list[int]) -> None:
        """By the rate of the cell's states a gap in it is found."""
        rates = {spec.name: spec.rate_hz for spec in rig.robot.streams}
        assert rates[ODOMETRY] == rates[STATE]

    def test_its_measured_speeds_are_its_axes_and_how_fast_they_go(self, rig: RobotRig, twist: list[int]) -> None:
        """Whoever asks whether a robot stands looks at dq."""
        self.sent_off(rig, twist)
        seen = rig.robot.observe()
        assert np.abs(seen["q"][twist]).max() > 0.01
        assert seen["dq"][twist].tolist() == seen["q"][twist].tolist()
        state = next(spec for spec in rig.robot.streams if spec.name == STATE)
        units = dict(zip(state.columns, state.units, strict=True))
        for axis in axes_of(rig.robot):
            if axis.kind == "twist":
                assert units[f"q.{axis.name}"] == units[f"dq.{axis.name}"] == axis.unit
                assert {f"q.{axis.name}", f"dq.{axis.name}"} <= set(state.private_columns)

    def test_a_closed_one_does_not_drive(self, rig: RobotRig, twist: list[int]) -> None:
        rig.robot.close()
        before = place(rig)
        rig.follow(speeds(rig, twist, self.most(rig)[0], SECOND))
        assert np.abs(place(rig) - before).max() < STILL

    @staticmethod
    def most(rig: RobotRig) -> tuple[np.ndarray, np.ndarray]:
        """The highest speed of each of the base's axes and how much of it may come or go in a second, by the cell."""
        tables = {axis.name: axis for axis in rig.cell.robot.axis}
        given = [tables[axis.name] for axis in axes_of(rig.robot) if axis.kind == "twist"]
        return np.array([axis.velocity for axis in given]), np.array([axis.acceleration for axis in given], float)

    def braking_s(self, rig: RobotRig) -> float:
        most, kick = self.most(rig)
        return float((most / kick).max())

    def sent_off(self, rig: RobotRig, twist: list[int]) -> None:
        """Under way at half of what the cell allows, for a second."""
        rig.follow(speeds(rig, twist, 0.5 * self.most(rig)[0], SECOND))
        assert np.abs(rig.robot.observe()["q"][twist]).max() > 0.01

    @staticmethod
    def stands(rig: RobotRig, twist: list[int]) -> None:
        assert np.abs(rig.robot.observe()["q"][twist]).max() < STILL
        before = place(rig)
        rig.wait(SECOND)
        assert np.abs(place(rig) - before).max() < STILL

    @staticmethod
    def measured(rig: RobotRig, names: tuple[str, ...]) -> np.ndarray:
        spec = next(spec for spec in rig.robot.streams if spec.name == ODOMETRY)
        rows = np.concatenate([batch.values for batch in rig.batches if batch.stream == ODOMETRY])
        return rows[:, [spec.columns.index(name) for name in names]]


def place(rig: RobotRig) -> np.ndarray:
    """(3,): x, y in m and yaw in rad from where it was staged, by its odometry."""
    return np.array(rig.robot.observe()["odometry"])


def speeds(rig: RobotRig, twist: list[int], asked: np.ndarray, ns: int) -> np.ndarray:
    """Setpoints (n, dof) that ask these speeds of the base for so long, with the arm where it is."""
    rows = np.tile(rig.robot.observe()["q"], (round(ns / SECOND * rig.robot.control_hz), 1))
    rows[:, twist] = asked
    return rows
