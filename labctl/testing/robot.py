"""What every robot does, whichever it is: the contract of `labctl.devices.Robot` as tests.

May not: know a driver. A test class names its robot by a fixture `rig` that gives a connected `RobotRig`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from labctl.axes import axes_of, hand_of, twist_of
from labctl.clock import SECOND
from labctl.devices import Batch, Robot, Setpoints
from labctl.streams import robot_states
from labctl.testing.robot_rig import SCENE, STEP_SHARE, RobotRig, astray, tools, turned

__all__ = ["FollowingConformance", "HomingConformance", "RobotConformance", "RobotRig", "SlowedConformance"]


NEAR_RAD = 2e-4
JUMP_RAD, JUMP_OF_A_REAL_ONE_RAD = 0.4, 0.1
NEAR_BOX_M = 0.02  # of its edge
RUN_ON_M = 0.1  # so far a robot that follows speeds goes on where a busy machine keeps the next one from it


class OfARobot:
    """The fixtures of each class of tests on a robot."""

    @pytest.fixture
    def rig(self) -> Iterator[RobotRig]:
        """A connected rig, closed afterwards. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `rig` that yields a connected RobotRig")

    @pytest.fixture
    def robot(self, rig: RobotRig) -> Robot:
        return rig.robot


class RobotConformance(OfARobot):
    """What every robot does, one that plays a recording back too."""

    def test_it_is_a_robot_and_says_of_which_kind(self, robot: Robot) -> None:
        assert isinstance(robot, Robot)
        assert robot.kind in ("real", "sim", "replay", "faults", "emulated")
        assert len(robot.joint_names) == robot.dof == len(set(robot.joint_names))

    def test_it_says_what_it_is_in_words_that_a_record_keeps(self, rig: RobotRig) -> None:
        """Model, client and the limits in force always, those of the cell under its own names; serial number and
        firmware as far as it reports them.
        """
        about = rig.robot.about()
        assert json.loads(json.dumps(about)) == about, "a journal keeps it"
        assert about["model"] and about["client"]
        assert {"serial", "firmware"} <= set(about)
        given = rig.cell.robot.limits.model_dump(mode="json", exclude_none=True)
        said = about.get("limits", {})
        assert {key: said.get(key) for key in given} == given, "about()['limits'] has the cell's [robot.limits]"
        held = about.get("gripper")
        assert held is None or (held["model"] and held["client"] and {"serial", "firmware"} <= set(held))

    def test_streams_are_declared_before_anything_connects(self, rig: RobotRig) -> None:
        """The recorder is told of them by a robot that may never answer."""
        assert tuple(rig.robot.streams) == rig.declared, "other streams than before it was connected"
        names = [spec.name for spec in rig.declared]
        assert "arm/state" in names and len(names) == len(set(names))
        state = next(spec for spec in rig.robot.streams if spec.name == "arm/state")
        assert state.rate_hz == rig.cell.robot.state_hz
        columns = {spec.name: spec.columns for spec in rig.robot.streams}
        named = [column for stream in robot_states(columns) for column in columns[stream] if column.startswith("q.")]
        assert named == [f"q.{name}" for name in rig.robot.joint_names]

    def test_of_every_column_it_says_whether_a_blind_role_may_see_it(self, rig: RobotRig) -> None:
        """Each is in `public_columns` or in `private_columns`, and not in both; what is unclear would be hidden."""
        unclear = {spec.name: spec.unclear_columns() for spec in rig.robot.streams}
        assert unclear == {spec.name: () for spec in rig.robot.streams}

    def test_an_observation_holds_the_robot_in_the_agreed_shapes(self, robot: Robot) -> None:
        seen = robot.observe()
        assert {name: seen[name].shape for name in ("q", "dq", "tcp", "gripper")} == {
            "q": (robot.dof,),
            "dq": (robot.dof,),
            "tcp": (7,),
            "gripper": (len(hand_of(axes_of(robot))),),
        }
        assert np.linalg.norm(seen["tcp"][3:]) == pytest.approx(1.0)

    def test_joints_for_the_present_pose_are_the_present_joints(self, robot: Robot) -> None:
        seen = robot.observe()
        q = robot.to_joints(np.repeat(seen["tcp"][None, :], 4, axis=0), seen["q"])
        assert q.shape == (4, robot.dof)
        assert np.abs(q - seen["q"]).max() < 1e-6

    def test_the_pose_of_the_present_joints_is_the_present_pose(self, robot: Robot) -> None:
        seen = robot.observe()
        pose = robot.to_pose(seen["q"])
        assert np.abs(pose[:3] - seen["tcp"][:3]).max() < 1e-6
        assert abs(pose[3:7] @ seen["tcp"][3:]) == pytest.approx(1.0)

    def test_follow_answers_every_setpoint_once_at_its_time(self, rig: RobotRig) -> None:
        wanted = turned(rig.robot)
        actions = rig.follow(wanted)
        requested = np.isfinite(actions.requested[:, 0])  # on a busy machine a stop may have begun in between
        assert (actions.requested[requested, : rig.robot.dof] == wanted).all()
        assert (np.diff(actions.t_ns[requested]) > 0).all()
        for answer in (actions.limited, actions.sent):
            assert answer.shape == (len(actions.t_ns), len(axes_of(rig.robot)))
        assert np.abs(actions.sent[-1, : rig.robot.dof] - wanted[-1]).max() < 0.02
        assert (actions.delay_s >= 0).all()

    def test_follow_without_setpoints_answers_what_is_left_and_no_more(self, rig: RobotRig) -> None:
        """The robot's node asks so at each of its looks while nobody leads the robot."""
        hand = np.empty(0 if len(hand_of(axes_of(rig.robot))) == 1 else (0, len(hand_of(axes_of(rig.robot)))))
        rig.follow(turned(rig.robot))
        left = rig.robot.follow(Setpoints(np.empty(0, np.int64), np.empty((0, rig.robot.dof)), hand))
        assert not np.isfinite(left.requested[:, 0]).any()
        for rows in (left.requested, left.limited, left.sent):
            assert rows.shape == (len(left.t_ns), len(axes_of(rig.robot)))

    def test_a_jump_is_limited_to_what_the_cell_allows_to_the_last_bit(self, rig: RobotRig) -> None:
        """By differences of the rows that were sent: whoever rounds stays a billionth below."""
        robot = rig.robot
        start = robot.observe()["q"]
        by_rad = JUMP_OF_A_REAL_ONE_RAD if rig.real else JUMP_RAD
        jumps = np.repeat(start + by_rad * (-1.0) ** np.arange(9)[:, None], 40, axis=0)
        rig.forget()
        did = rig.follow(jumps)
        rig.drain()
        if getattr(robot, "takes_steps", False):  # the setpoints jump, and the robot goes no faster for it
            rows = rig.states
            assert np.ptp(rows[:, : rig.joints], axis=0).max() > 0.05
            fastest = np.abs(rows[:, rig.joints : 2 * rig.joints]).max(axis=0)
            assert (fastest <= STEP_SHARE * rig.fastest[: rig.joints]).all(), fastest
            return
        rows = np.concatenate([np.repeat(start[None, :], 2, axis=0), did.sent[rig.given(did), : robot.dof]])
        assert np.ptp(rows, axis=0).max() > 0.05
        speed = np.diff(rows, axis=0) * robot.control_hz
        assert (np.abs(speed) <= rig.fastest).all()
        assert (np.abs(np.diff(speed, axis=0)) * robot.control_hz <= rig.hardest).all()

    def test_drain_gives_ascending_times_once_and_the_declared_columns(self, rig: RobotRig) -> None:
        robot = rig.robot
        for _ in range(3):
            rig.follow(turned(robot))
            rig.drain()
        width = {spec.name: len(spec.columns) for spec in robot.streams}
        for batch in rig.batches:
            assert batch.values.shape == (len(batch.t_ns), width[batch.stream])
            assert np.isfinite(batch.values).all()
        state = [batch.t_ns for batch in rig.batches if batch.stream == "arm/state"]
        assert all(before[-1] < after[0] for before, after in pairwise(state))
        times = np.concatenate(state)
        assert (times[1:] > times[:-1]).all()

    def test_an_idle_robot_still_reports_its_state(self, rig: RobotRig) -> None:
        until_ns = rig.now_ns + SECOND // 2
        rig.wait(SECOND // 2)

        def newest() -> Batch:
            return next(batch for batch in reversed(rig.batches) if batch.stream == "arm/state")

        rig.until(lambda: newest().t_ns[-1] > until_ns - SECOND // 10)
        assert np.abs(newest().values[:, : rig.joints] - rig.robot.observe()["q"][: rig.joints]).max() < 1e-6

    def test_stop_works_from_another_thread_twice_and_holds(self, rig: RobotRig) -> None:
        robot = rig.robot
        rig.follow(turned(robot)[:30])
        threads = [threading.Thread(target=robot.stop) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert robot.status().mode == "stopped"
        rig.at_rest()
        stood = robot.observe()["q"]
        rig.follow(stood + np.full((50, 1), 0.2))
        assert np.abs(robot.observe()["q"] - stood).max() < 1e-6
        assert np.abs(robot.observe()["dq"]).max() < 1e-4
        assert robot.status().mode == "stopped"

    def test_recover_moves_nothing_and_allows_motion_again(self, rig: RobotRig) -> None:
        robot = rig.robot
        robot.stop()
        rig.at_rest()
        before = robot.observe()["q"]
        rig.recover()
        rig.recover()
        assert np.abs(robot.observe()["q"] - before).max() < 1e-6
        actions = rig.follow(turned(robot))
        assert np.abs(actions.sent[-1, : rig.robot.dof] - before).max() > 0.05

    def test_staging_brings_the_robot_to_where_episodes_begin_and_ends_a_stop(self, rig: RobotRig) -> None:
        robot = rig.robot
        if rig.homeless:
            pytest.skip("home_rad is left out: the robot stays where it is")
        home = robot.observe()["q"]
        rig.follow(turned(robot))
        robot.stop()
        rig.at_rest()
        rig.stage()
        assert np.abs(robot.observe()["q"] - home).max() < 1e-3
        assert robot.status().mode in ("idle", "moving")

    def test_events_are_told_once(self, robot: Robot) -> None:
        robot.events()
        assert robot.events() == []

    def test_a_closed_robot_does_not_move(self, rig: RobotRig) -> None:
        """It may be closed twice; `observe` goes on to tell where it stood, `follow` answers that."""
        rig.robot.close()
        rig.robot.close()
        before = rig.robot.observe()["q"]
        rig.follow(turned(rig.robot))
        assert np.abs(rig.robot.observe()["q"] - before).max() < 1e-6


class FollowingConformance(OfARobot):
    """What every robot does that goes where its setpoints lead; a recording that is played back goes its own way."""

    def test_a_pose_written_is_the_pose_read(self, rig: RobotRig) -> None:
        wanted = rig.robot.observe()["tcp"] + [0.03, 0.05, -0.02, 0.0, 0.0, 0.0, 0.0]
        s = (1 - np.cos(np.linspace(0, np.pi, 100)))[:, None] / 2
        poses = (1 - s) * rig.robot.observe()["tcp"] + s * wanted
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
        led(rig, poses)
        read = rig.robot.observe()["tcp"]
        assert np.abs(read[:3] - wanted[:3]).max() < 2e-4
        assert abs(read[3:] @ wanted[3:]) > 1 - 1e-6

    def test_null_motion_does_not_move(self, rig: RobotRig) -> None:
        """Ten steps to where the tool is already, each from what was measured then."""
        robot = rig.robot
        rig.at_rest()
        before = robot.observe()
        for _ in range(10):
            seen = robot.observe()
            rig.follow(robot.to_joints(np.repeat(seen["tcp"][None, :], 5, axis=0), seen["q"]))
        rig.at_rest()
        after = robot.observe()
        assert np.abs(after["q"] - before["q"]).max() < 1e-3
        assert np.abs(after["tcp"][:3] - before["tcp"][:3]).max() < 1e-4  # a tenth of a millimetre

    def test_tool_frames_the_tool_turns_about_its_own_point_and_axes(self, rig: RobotRig) -> None:
        """What the robot says of its tool is where and how the driver believes it: another lever or turn shows here."""
        rig.at_rest()
        start = rig.robot.observe()["tcp"]
        s = (1 - np.cos(np.linspace(0, np.pi, 100))) / 2
        angles = s[:, None] * np.array([0.06, -0.05, 0.12])  # rotation vectors in the tool's own frame, rad
        turns = Rotation.from_quat(start[3:]) * Rotation.from_rotvec(angles)
        led(rig, np.column_stack([np.repeat(start[None, :3], len(s), axis=0), turns.as_quat()]))
        read = rig.robot.observe()["tcp"]
        assert np.abs(read[:3] - start[:3]).max() < 2e-4
        did = (Rotation.from_quat(start[3:]).inv() * Rotation.from_quat(read[3:])).as_rotvec()
        assert np.abs(did - angles[-1]).max() < 2e-3

    def test_every_recorded_pose_is_that_of_the_joints_beside_it_in_motion_too(self, rig: RobotRig) -> None:
        rig.forget()  # of the time before the tool was known
        rig.follow(turned(rig.robot, 0.3))
        rig.at_rest()
        rig.drain()
        rows, tcp = rig.states, rig.tools
        others = np.tile(rig.robot.observe()["q"][rig.joints :], (len(rows), 1))  # of a second robot, which stands
        joints = np.column_stack([rows[:, : rig.joints], others])
        some = slice(None, None, max(1, len(rows) // 50))
        belongs = tools(rig.robot, joints[some])
        assert np.ptp(tcp, axis=0).max() > 0.05
        assert np.abs(tcp[some] - belongs).max() < 1e-3

    def test_a_joint_sent_far_beyond_its_end_stops_before_it_and_the_robot_does_not_stop_itself(
        self, rig: RobotRig
    ) -> None:
        """The last joint, there and back. A robot may allow less speed the nearer a joint is to its end."""
        robot = rig.robot
        if rig.real:
            pytest.skip("what is on a real robot's wrist may not allow that it is turned to its end")
        last = max(i for i in range(robot.dof) if i not in twist_of(axes_of(robot)))
        way = np.linspace(0.0, 3.5, round(3.5 / 1.5 * robot.control_hz))[:, None] * np.eye(robot.dof)[last]
        way += robot.observe()["q"]
        for path in (way, way[::-1]):
            rig.follow(path)
            assert robot.status().mode in ("idle", "moving"), robot.status()

    def test_no_setpoints_lead_the_tool_out_of_the_cells_box_or_faster_than_the_cell_allows(
        self, rig: RobotRig
    ) -> None:
        """Sent out of the box at the joints' full speed, far unless it is real, and back: by where the setpoints that
        were sent put the tool, and by where the robot says that it was. A busy machine may starve the way and so stop
        the robot: it is led there again.
        """
        robot, way = rig.robot, astray(rig)
        edge_m, status = -np.inf, rig.robot.status()
        if rig.outside_m(tools(robot, way)).max() < NEAR_BOX_M:
            pytest.skip("nothing leads out of the box of this cell: give the rig one with a smaller box")
        way = np.concatenate([way, np.repeat(way[-1:], round(robot.control_hz / 2), axis=0), way[::-1]])
        for left in reversed(range(rig.tries if rig.live else 1)):
            rig.forget()
            did = rig.follow(way)
            rig.at_rest()
            rig.drain()
            sent = tools(robot, did.sent[rig.given(did), : robot.dof])
            edge_m = rig.outside_m(sent).max()
            assert edge_m <= 0
            assert rig.outside_m(rig.tools).max() < (RUN_ON_M if rig.live else NEAR_BOX_M)
            assert (rig.tool_speeds(sent) <= (rig.cell.robot.limits.tool_speed_m_s or np.inf)).all()
            status = robot.status()
            if edge_m > -NEAR_BOX_M and status.mode in ("idle", "moving"):
                return
            if left:
                rig.recover()
                rig.stage()
        raise AssertionError(
            f"the tool came no nearer to the edge of the box than {-edge_m:.2f} m, or stopped: {status}"
        )


class SlowedConformance(OfARobot):
    """What a robot does that somebody may slow down beside labctl, as by the slider of a pendant."""

    @pytest.fixture
    def slider(self) -> Iterator[Callable[[float], None]]:
        """Sets it, as a share of the robot's speed. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `slider` that sets the robot's speed")

    def test_a_slow_slider_is_a_hold_that_ends_when_it_is_back(
        self, rig: RobotRig, slider: Callable[[float], None]
    ) -> None:
        """Issue 20.11: every time would be longer by it, without a word."""
        robot = rig.robot
        slider(0.5)
        rig.until(lambda: robot.status().mode not in ("idle", "moving"))
        assert "50 %" in robot.status().reason
        before = robot.observe()["q"]
        rig.follow(turned(robot))
        assert np.abs(robot.observe()["q"] - before).max() < 1e-3, "nothing is driven at another speed"
        slider(1.0)
        rig.recover()
        path = turned(robot)
        rig.follow(path)
        rig.at_rest()
        assert np.abs(robot.observe()["q"] - path[-1]).max() < 0.01


def led(rig: RobotRig, poses: np.ndarray) -> None:
    """Lead the robot along tool poses (n, 7), and wait until it stands at the last. A busy machine may starve the way
    and so stop the robot before: it is led on from there.
    """
    robot = rig.robot
    q = robot.to_joints(poses, robot.observe()["q"])
    rig.follow(q)
    for left in reversed(range(rig.tries)):
        rig.follow(np.repeat(q[-1:], 100, axis=0))
        rig.at_rest()
        if np.abs(robot.observe()["q"] - q[-1]).max() < NEAR_RAD:
            return
        if left:
            rig.recover()


class HomingConformance(OfARobot):
    """What every robot does that takes its time on the way to where episodes begin."""

    def test_staging_opens_the_hand(self, rig: RobotRig) -> None:
        robot = rig.robot
        here, open_m = robot.observe()["q"], float(robot.observe()["gripper"][0])
        rig.follow(np.repeat(here[None, :], 100, axis=0), opening=0.03)
        rig.until(lambda: robot.observe()["gripper"][0] < 0.035)
        robot.stage(SCENE, 1, rig.now_ns)
        rig.until(robot.staged)
        assert abs(robot.observe()["gripper"][0] - open_m) < 0.005

    def test_a_stop_on_the_way_home_is_a_stop(self, rig: RobotRig) -> None:
        robot = rig.robot
        home = robot.observe()["q"]
        away = home + 0.5 * np.eye(robot.dof)[0]
        rig.follow(home + np.linspace(0, 1, 150)[:, None] * (away - home))
        rig.follow(np.repeat(away[None, :], 50, axis=0))
        rig.at_rest()
        start = robot.observe()["q"]
        robot.stage(SCENE, 1, rig.now_ns)
        rig.until(lambda: np.abs(robot.observe()["q"] - start).max() > 0.02)
        assert not robot.staged() and robot.status().mode == "moving"
        robot.stop()
        rig.at_rest()
        stopped = robot.observe()["q"]
        assert np.abs(stopped - home).max() > 0.1, "it went on"
        rig.wait(SECOND)
        assert np.abs(robot.observe()["q"] - stopped).max() < 1e-3 and not robot.staged()
