"""The conformance suite says what it compared, whichever of its modules a check stands in, and asks what the contract
says, no more and no less.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labctl import testing
from labctl.devices import ActionChunk, Frame, Observation
from labctl.testing.camera import CameraConformance, CameraRig
from labctl.testing.controller import ControllerConformance
from labctl.testing.given import CELL
from labctl.testing.robot import RobotConformance, RobotRig


def test_every_module_of_the_suite_that_asserts_is_rewritten_so_that_a_failure_shows_what_was_compared():
    """`hand` was missing: its failures said "assert False" and nothing more."""
    modules = {path.stem: ast.parse(path.read_text("utf-8")) for path in Path(testing.__file__).parent.glob("*.py")}
    asserting = {name for name, tree in modules.items() if any(isinstance(one, ast.Assert) for one in ast.walk(tree))}
    assert asserting <= set(testing.SUITES)


class Answers:
    """A controller that gives the same chunk whatever it sees."""

    def __init__(self, chunk: ActionChunk) -> None:
        self.chunk = chunk

    def reset(self, seed: int) -> None:
        """A new episode."""

    def infer(self, observation: Observation) -> ActionChunk:
        return self.chunk


def judged(space: Any, width: int, hand: tuple[int, ...] = (), seen: Mapping[str, np.ndarray] | None = None) -> None:
    """Ask the suite about a chunk of four actions. seen: what the robot shows, of seven joints if nothing is given."""
    arrays = seen or {"q": np.zeros(7), "tcp": np.zeros(7), "gripper": np.zeros(1)}
    values = np.zeros((4, width))
    if width and width % 7 == 0:
        values[:, 6::7] = 1.0  # the rotations' w, where it is poses
    controller: Any = Answers(ActionChunk(space, values, np.zeros((4, *hand)), 0.05, 2))
    suite = ControllerConformance()
    suite.test_an_answer_is_a_chunk_of_finite_actions_some_of_which_are_executed(controller, Observation(0, arrays))


@pytest.mark.parametrize(
    ("space", "width"),
    [
        ("joint_position", 7),
        ("joint_velocity", 7),
        ("joint_step", 7),
        ("tcp_pose", 7),
        ("tcp_step", 7),
        ("tcp_velocity", 6),
    ],
)
def test_the_suite_takes_a_controller_in_each_space_that_there_is_and_no_other_width(space: str, width: int):
    """It knew poses and joints alone, and took six joints for a robot of seven."""
    judged(space, width)
    with pytest.raises(AssertionError, match=space):
        judged(space, width - 1)


def test_the_suite_takes_a_controller_of_two_robots_and_of_a_hand_of_several_axes():
    both = {"q": np.zeros(14), "tcp": np.zeros(7), "right.tcp": np.zeros(7), "gripper": np.zeros(2)}
    judged("joint_position", 14, (2,), both)
    judged("tcp_pose", 14, (2,), both)
    judged("tcp_velocity", 12, (2,), both)
    with pytest.raises(AssertionError, match="2 axes"):
        judged("joint_position", 14, (), both)
    with pytest.raises(AssertionError, match="tcp_hops"):
        judged("tcp_hops", 7)


class Millimetres(CameraRig):
    """A camera whose depth has another unit."""

    def __init__(self, scale: float | None) -> None:
        super().__init__("sim_camera", {"view": "wrist"}, rate_hz=30.0, live=False, kind="sim")
        grab, about = self.camera.grab, self.camera.about

        def deep(now_ns: int) -> Frame | None:
            if (frame := grab(now_ns)) is not None:
                frame.depth = np.full(frame.image.shape[:2], 5000, np.uint16)
            return frame

        self.camera.grab = deep
        self.camera.about = lambda: {**about(), "depth_scale_m": scale}


def test_the_suite_takes_a_camera_with_any_unit_of_depth():
    """It took millimetres alone; labctl's own cameras say what the device says."""
    check = CameraConformance().test_frames_are_rgb_bytes_of_the_promised_size_and_depth_is_of_the_same
    check(Millimetres(0.0001))
    for scale in (0.0, None):
        with pytest.raises(AssertionError, match="metres of one unit"):
            check(Millimetres(scale))


def test_the_suite_notices_streams_that_are_made_when_the_robot_connects():
    """It asked a connected robot; the robot's node asks before."""
    rig = RobotRig("sim_fr3", {}, CELL, live=False)
    rig.connect()
    RobotConformance().test_streams_are_declared_before_anything_connects(rig)
    rig.declared = ()
    with pytest.raises(AssertionError, match="before it was connected"):
        RobotConformance().test_streams_are_declared_before_anything_connects(rig)
