"""A chunk reaches the robot as it was meant: at once, or step by step on what is measured, and never what is past."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import ActionChunk
from labctl.nodes.playing import Play, chunk_problem

TENTH = SECOND // 10
NOW = 5 * SECOND


def chunk(n: int = 4, **given) -> ActionChunk:
    values = {"space": "joint_position", "values": np.arange(7.0 * n).reshape(n, 7), "gripper": np.arange(n) / 100}
    return ActionChunk(**{**values, "dt_s": 0.1, "execute": 3, **given})


def play(made: ActionChunk, capture_ns: int = NOW - SECOND // 2) -> Play:
    return Play(made, capture_ns, NOW, 3, "e")


def measured(q: float = 0.0) -> dict[str, np.ndarray]:
    turn = Rotation.from_rotvec([0.1, 0.2, 0.3]).as_quat()
    return {"q": np.full(7, q), "tcp": np.array([q, 0.0, 0.3, *turn])}


def test_a_chunk_goes_at_once_from_when_its_answer_came():
    one = play(chunk())
    (target,) = one.targets(NOW, measured())
    assert target.arrays["t_ns"].tolist() == [NOW + TENTH, NOW + 2 * TENTH, NOW + 3 * TENTH]
    assert target.arrays["values"].shape == (3, 7) and target.arrays["gripper"].tolist() == [0, 0.01, 0.02]
    assert target.body == {
        "epoch": 3,
        "episode": "e",
        "space": "joint_position",
        "dt_ns": TENTH,
        "expires_ns": NOW + 3 * TENTH,
    }
    assert one.targets(NOW + TENTH, measured()) == [] and one.due_ns is None and one.ends_ns == NOW + 3 * TENTH


@pytest.mark.parametrize(
    ("waited", "due", "first"),
    [(0, [1, 2, 3], 1), (0.05, [1, 2, 3], 1), (0.1, [2, 3], 2), (0.25, [3], 3), (0.3, [], None), (9.0, [], None)],
)
def test_what_was_due_before_the_answer_came_is_dropped(waited: float, due: list[int], first: int | None):
    """Action i is due i steps after the observation was captured (universal_manipulation_interface, eval scripts)."""
    capture_ns = NOW - round(waited * SECOND)
    one = play(chunk(starts="capture", execute=4), capture_ns)
    assert one.t_ns.tolist() == [capture_ns + i * TENTH for i in due]
    if first is not None:
        (target,) = one.targets(NOW, measured())
        assert target.arrays["values"][0, 0] == 7.0 * first, "the first action left is the one of its own time"


def test_of_what_is_not_past_the_stated_number_is_executed():
    one = play(chunk(8, starts="capture", execute=3), NOW - round(0.25 * SECOND))
    assert len(one.t_ns) == 3


@pytest.mark.parametrize("length", [0.5, 0.98, 1.0, 2.0])
@pytest.mark.parametrize("space", ["tcp_pose", "tcp_step"])
@pytest.mark.parametrize("tools", [1, 2])
def test_a_rotation_is_what_its_quaternion_says_whatever_its_length(length: float, space: str, tools: int):
    """A mean of quaternions led a UR beside its path: 17 mm at a length of 0.98, 425 mm at 2."""
    turn = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_quat()
    pose = np.tile([0.5, 0.1, 0.2, *turn], tools)
    answer = np.tile([0.5, 0.1, 0.2, *(length * turn)], (4, tools))
    seen = {"tcp": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])}
    seen |= {"right.tcp": seen["tcp"]} if tools == 2 else {}
    (target,) = play(chunk(space=space, values=answer)).targets(NOW, seen)
    assert target.arrays["values"][0] == pytest.approx(pose, abs=1e-12)
    assert answer[0, 6] == length * turn[3], "what was answered is recorded as it was"


def test_a_step_is_added_to_what_is_measured_when_it_begins():
    one = play(chunk(space="joint_step", values=np.full((4, 7), 0.2)))
    sent = []
    for i in range(3):
        assert one.due_ns == NOW + i * TENTH
        (target,) = one.targets(NOW + i * TENTH + MILLISECOND, measured(float(i)))
        sent.append(target)
        assert one.targets(NOW + i * TENTH + 2 * MILLISECOND, measured(9.0)) == [], "a step is sent once"
    assert [target.arrays["t_ns"].tolist() for target in sent] == [[NOW + (i + 1) * TENTH] for i in range(3)]
    assert [float(target.arrays["values"][0, 0]) for target in sent] == pytest.approx([0.2, 1.2, 2.2])
    assert {target.body["space"] for target in sent} == {"joint_position"} and one.due_ns is None


def test_a_step_whose_time_is_over_is_left_out_and_not_made_up_for():
    one = play(chunk(space="joint_step", values=np.full((4, 7), 0.2)))
    assert len(one.targets(NOW, measured())) == 1
    (late,) = one.targets(NOW + 2 * TENTH + MILLISECOND, measured(1.0))
    assert late.arrays["t_ns"].tolist() == [NOW + 3 * TENTH] and late.arrays["values"][0, 0] == pytest.approx(1.2)
    assert one.targets(NOW + SECOND, measured()) == []


def test_a_step_of_the_tool_is_along_and_about_the_axes_of_the_base():
    turn = Rotation.from_rotvec([0, 0, 0.5])
    step = np.array([[0.0, 0.01, 0.0, *turn.as_quat()]])
    one = play(chunk(1, space="tcp_step", values=step, gripper=np.zeros(1)))
    (target,) = one.targets(NOW, measured(0.4))
    assert target.body["space"] == "tcp_pose"
    pose = target.arrays["values"][0]
    assert pose[:3] == pytest.approx([0.4, 0.01, 0.3])
    wanted = turn * Rotation.from_rotvec([0.1, 0.2, 0.3])
    assert np.allclose(Rotation.from_quat(pose[3:]).as_matrix(), wanted.as_matrix())


@pytest.mark.parametrize(("space", "width"), [("joint_step", 7), ("tcp_step", 7), ("tcp_velocity", 6)])
def test_the_widths_of_the_spaces(space: str, width: int):
    assert chunk_problem(chunk(space=space, values=np.ones((4, width))), 7) is None
    assert f"{space} actions need {width}" in str(chunk_problem(chunk(space=space, values=np.zeros((4, width + 1))), 7))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"space": "tcp_velocity", "values": np.full((4, 6), 1e200)}, "tcp_velocity actions of up to 1e+200, more"),
        ({"space": "joint_position", "values": np.full((4, 7), -2e6)}, "joint_position actions of up to 2e+06, more"),
        ({"gripper": np.full(4, 1e300)}, "joint_position actions of up to 1e+300, more than the 1e+06 that any may be"),
        ({"space": "tcp_pose", "values": np.zeros((4, 7))}, "tcp_pose actions with a quaternion of no length"),
        ({"space": "tcp_step", "values": np.eye(7)[[6, 6, 6, 0]]}, "tcp_step actions with a quaternion of no length"),
        ({"dt_s": 1e300}, "dt_s=1e+300"),
    ],
)
def test_an_answer_beyond_all_sense_is_its_controllers_failure(given: dict, says: str):
    """Turned by 1e200 rad/s a tool's pose was not a number, and the process that leads the robot ended of it."""
    told = chunk_problem(chunk(**given), 7)
    assert told is not None and says in told and "\n" not in told


def test_of_two_tools_each_has_a_rotation():
    both = np.tile([0.4, 0, 0.3, 1, 0, 0, 0], (4, 2))
    assert chunk_problem(chunk(space="tcp_pose", values=both), 14, tools=2) is None
    both[2, 10:] = 0.0
    assert "no rotation" in str(chunk_problem(chunk(space="tcp_pose", values=both), 14, tools=2))
