"""Keyframes: when they are, and where an answer in any space leads from what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from labctl.checks.offline_frames import Path, compared, keyframe_times, reached
from labctl.clock import SECOND
from labctl.devices import ActionChunk, Observation

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


def test_only_what_would_be_executed_counts_and_from_capture_the_first_is_due_at_once():
    answer = chunk("joint_position", [[0.3, 0.2], [0.5, 0.2], [0.9, 0.9]], execute=2, starts="capture")
    poses, due_ns = reached(answer, Q, TCP, Arm())
    assert len(poses) == 2 and due_ns.tolist() == [0, SECOND // 10]


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
