"""Keyframes: when they are, and where an answer in any space leads from what was measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from labctl.checks.offline_frames import POSE, Path, compared, keyframe_times, path_of, reached
from labctl.clock import SECOND
from labctl.devices import ActionChunk, Observation
from labctl.errors import StateError
from labctl.exports.recordings import Recording
from labctl.nodes.playing import Play
from labctl.nodes.targets import integrated_poses

TCP = np.array([0.4, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])
Q = np.array([0.1, 0.2])
HALF = np.sqrt(0.5)


class Arm:
    """Two joints that are the tool's x and y."""

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        return np.array([q[0], q[1], 0.0, 0.0, 0.0, 0.0, 1.0])


def chunk(space: str, values: list[list[float]], **changes) -> ActionChunk:
    n = len(values)
    return ActionChunk(
        **{"space": space, "values": np.array(values), "gripper": np.zeros(n), "dt_s": 0.1, "execute": n} | changes
    )


def test_keyframes_are_evenly_spaced_and_none_is_at_go_or_the_end():
    assert keyframe_times(0, 10 * SECOND, 4).tolist() == [2 * SECOND, 4 * SECOND, 6 * SECOND, 8 * SECOND]


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (chunk("joint_position", [[0.3, 0.2], [0.5, 0.2]]), [0.5, 0.2, 0.0]),
        (chunk("joint_step", [[0.1, 0.0], [0.1, 0.1]]), [0.3, 0.3, 0.0]),
        (chunk("joint_velocity", [[1.0, 0.0], [1.0, -1.0]]), [0.3, 0.1, 0.0]),
        (chunk("tcp_pose", [[0.5, 0.1, 0.2, 0, 0, 0, 1]]), [0.5, 0.1, 0.2]),
        (chunk("tcp_velocity", [[0.5, 0, 0, 0, 0, 0], [0.5, 0, -1, 0, 0, 0]]), [0.5, 0.0, 0.2]),
        (chunk("tcp_step", [[0.1, 0, 0, 0, 0, 0, 1], [0, 0.1, 0, 0, 0, 0, 1]]), [0.5, 0.1, 0.3]),
    ],
)
def test_every_space_leads_somewhere(answer, last):
    poses, due_ns = reached(answer, Q, TCP, Arm())
    assert poses.shape == (len(answer.values), 7)
    assert poses[-1, :3] == pytest.approx(last)
    assert due_ns.tolist() == [SECOND // 10 * (i + 1) for i in range(len(answer.values))]


def test_steps_turn_on_one_another():
    quarter = [0, 0, 0, 0, 0, HALF, HALF]
    poses, _ = reached(chunk("tcp_step", [quarter, quarter]), Q, TCP, Arm())
    assert np.abs(poses[-1, 3:]) == pytest.approx([0, 0, 1, 0]), "two quarter turns about z are a half one"


VALUES = {
    "joint_position": [[0.3, 0.2], [0.5, 0.2], [0.9, 0.9], [1.0, 1.0]],
    "joint_velocity": [[1.0, 0.0], [1.0, -1.0], [0.5, 0.0], [0.1, 0.1]],
    "tcp_velocity": [[0.2, 0, 0, 0, 0, 0], [0.5, 0, -1, 0, 0, 0], [0.1, 0, 0, 0, 0, 1], [0.3, 0, 0, 0, 0, 0]],
    "tcp_pose": [[0.5 + 0.1 * i, 0.1, 0.2, 0, 0, 0, 1] for i in range(4)],
}


@pytest.mark.parametrize("starts", ["reply", "capture"])
@pytest.mark.parametrize("space", VALUES)
def test_only_what_the_robot_would_execute_counts_and_from_capture_the_first_is_past(space, starts):
    answer = chunk(space, VALUES[space], execute=2, starts=starts)
    poses, due_ns = reached(answer, Q, TCP, Arm())
    play = Play(answer, 0, 0, 1, "e")  # an answer that comes at once
    assert due_ns.tolist() == play.t_ns.tolist() == [SECOND // 10, 2 * SECOND // 10]
    first = 1 if starts == "capture" else 0
    taken = np.array(VALUES[space][first : first + 2], dtype=float)
    expected = {
        "joint_position": lambda: [Arm().to_pose(q) for q in taken],
        "joint_velocity": lambda: [Arm().to_pose(q) for q in Q + np.cumsum(0.1 * taken, axis=0)],
        "tcp_velocity": lambda: integrated_poses(due_ns, taken, SECOND // 10, TCP),
        "tcp_pose": lambda: taken,
    }[space]()
    assert poses == pytest.approx(np.array(expected))


@pytest.mark.parametrize("space", VALUES)
def test_of_a_single_action_from_capture_nothing_is_executed(space):
    poses, due_ns = reached(chunk(space, VALUES[space][:1], starts="capture"), Q, TCP, Arm())
    assert (poses.shape, due_ns.shape) == ((0, 7), (0,))


@pytest.mark.parametrize("starts", ["reply", "capture"])
def test_who_drives_as_the_person_did_is_where_the_person_was(starts):
    """0.2 m/s along x, and a hand that opens 0.01 m in each step of 0.1 s."""
    t_ns = np.arange(0, 4 * SECOND, SECOND // 100)
    tcp = np.tile(TCP, (len(t_ns), 1))
    tcp[:, 0] += 0.2 * t_ns / SECOND
    path = Path(t_ns, np.tile(Q, (len(t_ns), 1)), np.zeros((len(t_ns), 2)), tcp, 0.1 * t_ns / SECOND)
    seen = Observation(SECOND, {"q": Q, "tcp": tcp[100]})
    opening = 0.1 + 0.01 * (np.arange(7) + (starts == "reply"))
    answer = chunk("tcp_velocity", [[0.2, 0, 0, 0, 0, 0]] * 7, gripper=opening, execute=5, starts=starts)
    found = compared(answer, seen, path, Arm(), 4 * SECOND)
    assert found is not None and found["policy"] == pytest.approx(found["human"])
    assert found["human"][0, 0] == pytest.approx(0.4 + 0.2 * 1.5)


def test_an_answer_is_held_against_the_tool_when_its_last_action_is_due():
    t_ns = np.arange(0, 2 * SECOND, SECOND // 100)
    tcp = np.tile(TCP, (len(t_ns), 1))
    tcp[:, 0] = 0.4 + 0.1 * t_ns / SECOND  # 0.1 m/s along x
    path = Path(t_ns, np.tile(Q, (len(t_ns), 1)), np.zeros((len(t_ns), 2)), tcp, np.full(len(t_ns), 0.04))
    seen = Observation(SECOND, {"q": Q, "tcp": tcp[100]})
    stay = chunk("tcp_pose", [[0.5, 0, 0.3, 0, 0, 0, 1]] * 3)
    found = compared(stay, seen, path, Arm(), 2 * SECOND)
    assert found is not None
    assert found["human"][0, 0] - found["policy"][0, 0] == pytest.approx(0.03), "0.3 s at 0.1 m/s"
    assert (found["policy"][0, 7], found["human"][0, 7]) == (0.0, 0.04)
    assert found["still"][0] == pytest.approx([*tcp[100], 0.04]), (
        "an arm that does not move is where it was at the keyframe"
    )
    cut = compared(stay, seen, path, Arm(), SECOND + SECOND // 5)
    assert cut is not None and cut["human"][0, 0] - cut["policy"][0, 0] == pytest.approx(0.02), "the third is too late"
    assert compared(stay, seen, path, Arm(), SECOND) is None


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((*POSE, "vacuum"), r"e-1 cannot be a reference: its stream arm/state has no gripper, the opening"),
        (("gripper", *POSE[:5]), r"its stream arm/state has no tcp\.qz, tcp\.qw$"),
    ],
)
def test_what_a_recording_lacks_to_be_a_reference_is_named(columns, words):
    spec = SimpleNamespace(name="arm/state", columns=columns)
    recording = SimpleNamespace(specs=(spec,), chosen=SimpleNamespace(episode="e-1"))
    with pytest.raises(StateError, match=words):
        path_of(cast(Recording, recording))
