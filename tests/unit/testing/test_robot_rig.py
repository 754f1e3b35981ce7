"""The rig that drives a robot as its node does: what it takes for rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.clock import MILLISECOND, ManualClock
from labctl.config.cell_schema import parse_cell
from labctl.devices import Actions, Batch, Setpoints, StreamSpec
from labctl.errors import InputError
from labctl.plain import Json
from labctl.testing.given import CELL
from labctl.testing.robot import FollowingConformance, RobotConformance
from labctl.testing.robot_rig import BEYOND_M, RobotRig, astray, tools

COLUMNS = ("q.a", "dq.a", "device_s")


class Late:
    """A robot on a machine that lets nothing run for 100 ms; what was given before moves it only then, for 60 ms."""

    streams = (StreamSpec("arm/state", COLUMNS, 100.0, "1"),)

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self._begin_ns, self._t_ns = clock, clock.now_ns(), clock.now_ns()
        self.q = self.dq = 0.0
        self.status = lambda: SimpleNamespace(mode="stopped")

    def drain(self, now_ns: int) -> list[Batch]:
        found: list[Batch] = []
        while (at_ns := self._t_ns + 10 * MILLISECOND) <= now_ns:
            self._t_ns = at_ns
            since = at_ns - self._begin_ns - 100 * MILLISECOND
            if since <= 0:
                continue
            self.dq = 0.5 if since <= 60 * MILLISECOND else 0.0
            self.q += self.dq * 0.01
            found.append(Batch("arm/state", np.array([at_ns]), np.array([[self.q, self.dq, at_ns / 1e9]])))
        return found

    def observe(self) -> dict[str, np.ndarray]:
        return {"q": np.array([self.q]), "dq": np.array([self.dq])}


def test_a_robot_of_which_nothing_was_heard_since_is_not_taken_for_one_at_rest() -> None:
    """It had not begun to move, by a state from before; it moved by 30 mrad after it had been seen at rest."""
    rig: Any = RobotRig.__new__(RobotRig)
    rig.live, rig.clock, rig.batches = True, ManualClock(10**9), []
    rig.robot = Late(rig.clock)
    rig.at_rest()
    stood = rig.robot.observe()["q"]
    rig.wait(500 * MILLISECOND)
    assert rig.robot.observe()["q"] == stood > 0


RAILED = """
[cell]
name = "railed"
kind = "sim"
[robot]
driver = "sim_rail"
state_hz = 100.0
control_hz = 100.0
observe_hz = 10.0
[robot.limits]
velocity_rad_s = [2.0, 2.0, 2.0, 2.0, 2.5, 2.5, 2.5]
acceleration_rad_s2 = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]
box_min_m = [0.15, -0.60, 0.00]
box_max_m = [0.80, 0.60, 0.80]
[lease]
duration_s = 0.3
stale_target_s = 0.5
"""
LIMITED = '[[robot.axis]]\nname = "rail"\nkind = "prismatic"\nunit = "m"\nvelocity = 0.4\n'


def test_what_a_cell_leaves_out_of_an_axis_is_held_to_the_drivers_own_limit() -> None:
    """Both keys may be left out, and so may the whole table. Found by a driver that somebody else wrote: its rail was
    held to an acceleration that is no number, which none keeps; without the table the suite ended with a KeyError.
    """
    rig = RobotRig(
        "sim_rail", {}, parse_cell(RAILED.replace("[lease]", LIMITED + "[lease]"), "railed.toml"), live=False
    )
    assert rig.fastest.tolist() == [0.4, 2.0, 2.0, 2.0, 2.0, 2.5, 2.5, 2.5]
    assert rig.hardest.tolist() == [2.0, *[8.0] * 7]
    rig = RobotRig("sim_rail", {}, parse_cell(RAILED, "railed.toml"), live=False)
    assert (rig.fastest[0], rig.hardest[0]) == (0.6, 2.0)


ARM = """
from labctl.drivers.common.options import RobotOptions
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.robot import SimRobot
def build(options: RobotOptions, *, cell, fixture) -> SimRobot:
    made = SimRobot(FR3, cell, fixture)
    made.kind = "real"
    return made
"""


@pytest.fixture
def arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RobotRig]:
    """A rig of a robot that says that it is real, in simulated time; its options are given."""
    (tmp_path / "lab_real").mkdir()
    (tmp_path / "lab_real" / "arm.py").write_text(ARM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(RobotRig, "given", lambda rig, did: np.ones(len(did.t_ns), bool))  # none is late
    limits = CELL.robot.limits.model_copy(update={"tool_speed_m_s": 0.8})
    cell = CELL.model_copy(update={"robot": CELL.robot.model_copy(update={"limits": limits})})

    def made(**options: Json) -> RobotRig:
        rig = RobotRig("lab_real.arm:build", {"host": "10.0.0.1", **options}, cell, live=False)
        rig.live = True
        return rig

    return made


def test_a_real_robot_without_a_home_is_not_moved_at_all(arm: Callable[..., RobotRig]) -> None:
    """Each test would have begun where the last left it, and the first joint gone further with each."""
    rig = arm()
    with pytest.raises(InputError, match="home_rad"):
        rig.connect()
    assert rig.batches == []
    arm(home_rad="default").connect()
    rig.live = False
    rig.connect()


def test_a_real_robot_is_sent_out_of_the_box_by_the_nearest_way_and_not_far(arm: Callable[..., RobotRig]) -> None:
    """By a driver that keeps no box it had gone up to 1.5 rad at the cell's full speed, by the longest way."""
    rig = arm(home_rad="default")
    rig.connect()
    way, start = astray(rig), rig.robot.observe()["q"]
    outside = rig.outside_m(tools(rig.robot, way))
    assert BEYOND_M / 2 < outside.max() < BEYOND_M + 0.02
    rig.live = False
    assert rig.outside_m(tools(rig.robot, astray(rig))).max() > 0.2
    assert np.abs(way - start).max() < np.abs(astray(rig) - start).max()
    rig.live = True
    FollowingConformance().test_no_setpoints_lead_the_tool_out_of_the_cells_box_or_faster_than_the_cell_allows(rig)


def test_a_real_robots_joints_jump_by_a_tenth_of_a_radian_and_its_last_goes_to_no_end(
    arm: Callable[..., RobotRig],
) -> None:
    rig = arm(home_rad="default")
    rig.connect()
    start = rig.robot.observe()["q"]
    RobotConformance().test_a_jump_is_limited_to_what_the_cell_allows_to_the_last_bit(rig)
    assert np.abs(rig.states[:, : rig.joints] - start).max() < 0.11
    with pytest.raises(pytest.skip.Exception, match="wrist"):
        FollowingConformance().test_a_joint_sent_far_beyond_its_end_stops_before_it_and_the_robot_does_not_stop_itself(
            rig
        )


def test_what_stopped_a_real_robot_on_its_way_is_not_recovered_from_by_the_suite(arm: Callable[..., RobotRig]) -> None:
    """It was recovered and led there again, up to ten times, whatever had stopped it."""
    rig = arm(home_rad="default")
    rig.connect()
    follow = rig.robot.follow

    def stops(wanted: Setpoints) -> Actions:
        rig.robot.stop()
        return follow(wanted)

    rig.robot.follow = stops
    recovered: list[str] = []
    rig.robot.recover = lambda: recovered.append("recovered")
    with pytest.raises(AssertionError):
        FollowingConformance().test_a_pose_written_is_the_pose_read(rig)
    with pytest.raises(AssertionError, match="or stopped"):
        FollowingConformance().test_no_setpoints_lead_the_tool_out_of_the_cells_box_or_faster_than_the_cell_allows(rig)
    assert recovered == []


def test_where_no_home_is_said_nothing_is_staged_to_it(arm: Callable[..., RobotRig]) -> None:
    rig = arm()
    rig.live = False
    rig.connect()
    with pytest.raises(pytest.skip.Exception, match="home_rad"):
        RobotConformance().test_staging_brings_the_robot_to_where_episodes_begin_and_ends_a_stop(rig)
