"""The table of meanings: every conversion against numbers of its source, and back again."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.spatial.transform import Rotation
from support.policies.cards import card

from labctl.config.policy_card import SPACES, Action, Card, Gripper, Tool
from labctl.drivers.policy import actions as table
from labctl.errors import DeviceRefused
from labctl.nodes.playing import chunk_problem

Q = np.linspace(-0.3, 0.3, 7)
POSE = np.array([0.4, 0.1, 0.3, *Rotation.from_euler("xyz", [3.0, 0.2, -0.5]).as_quat()])
SEEN = {"q": Q, "dq": np.zeros(7), "tcp": POSE, "gripper": np.array([0.04])}
SMALL = st.floats(-0.5, 0.5)


def meant(space: str, values: Any, gripper: float = 0.0, **action: Any) -> Any:
    """The chunk of some rows of values, with the action part of a card changed."""
    made = card(rate=15.0)
    made["action"] |= {"space": space, **action}
    made["tool"] = action.pop("tool", made["tool"])
    values = np.atleast_2d(np.asarray(values, dtype=float))
    rows = np.column_stack([values, np.full(len(values), gripper)])
    return table.to_chunk(rows, Card.model_validate_json(json.dumps(made)), SEEN)


def about(rows: np.ndarray) -> np.ndarray:
    """Orientation matrices of poses (n, 7), in which the sign of a quaternion does not matter."""
    return Rotation.from_quat(rows[:, 3:]).as_matrix()


@pytest.mark.parametrize(
    ("convention", "value", "opening_m"),
    [
        ("0_open_1_closed", 0.0, 0.08),  # DROID: width = max_width (1 - command) (droid, FrankaRobot.update_gripper)
        ("0_open_1_closed", 1.0, 0.0),
        ("0_open_1_closed", 0.25, 0.06),
        ("1_open_0_closed", 1.0, 0.08),  # OpenVLA, Open X-Embodiment
        ("1_open_0_closed", 0.0, 0.0),
        ("-1_open_1_closed", -1.0, 0.08),  # LIBERO
        ("-1_open_1_closed", 1.0, 0.0),
        ("-1_open_1_closed", 0.0, 0.04),
        ("1_open_-1_closed", 1.0, 0.08),
        ("1_open_-1_closed", -1.0, 0.0),
        ("0_open_255_closed", 0.0, 0.08),  # Robotiq's position register
        ("0_open_255_closed", 255.0, 0.0),
        ("width_m", 0.03, 0.03),  # UMI
        ("0_open_1_closed", -3.0, 0.08),  # beyond an end is the end
        ("width_m", 0.5, 0.08),
    ],
)
def test_a_grippers_number_is_an_opening(convention: str, value: float, opening_m: float):
    gripper = Gripper(action=convention, open_m=0.08)
    assert table.openings(np.array([value]), gripper)[0] == pytest.approx(opening_m)


@given(st.sampled_from(sorted(table.GRIPPERS)), st.floats(0.01, 0.08))
def test_what_a_policy_reads_of_the_gripper_is_what_it_would_say(convention: str, opening_m: float):
    gripper = Gripper(state=convention, action=convention, open_m=0.08, closed_m=0.01)
    said = table.gripper_state(np.array([opening_m]), gripper)
    assert table.openings(said, gripper)[0] == pytest.approx(opening_m)


@pytest.mark.parametrize(
    ("convention", "threshold", "value", "opening_m"),
    [
        ("0_open_1_closed", 0.5, 0.51, 0.0),  # openpi examples/droid: closed above .5, open at .5 and below
        ("0_open_1_closed", 0.5, 0.5, 0.08),
        ("1_open_0_closed", 0.5, 0.51, 0.08),
        ("-1_open_1_closed", 0.0, 0.1, 0.0),
        ("-1_open_1_closed", 0.0, -0.1, 0.08),
        ("0_open_255_closed", 127.0, 128.0, 0.0),
        ("width_m", 0.04, 0.05, 0.08),
        ("width_m", 0.04, 0.03, 0.0),
    ],
)
def test_a_binarised_gripper_is_at_one_of_its_ends(convention: str, threshold: float, value: float, opening_m: float):
    gripper = Gripper(action=convention, open_m=0.08, binarise_at=threshold)
    assert table.openings(np.array([value]), gripper).tolist() == [opening_m]


@given(st.sampled_from(sorted(table.ROTATION_WIDTH)), npst.arrays(float, (3, 4), elements=st.floats(-1, 1)))
def test_every_rotation_comes_back_from_its_numbers(convention: str, numbers: np.ndarray):
    rotation = Rotation.from_quat(numbers + np.array([0, 0, 0, 1.5]))
    values = table.turn_values(rotation, convention)
    assert values.shape == (3, table.ROTATION_WIDTH[convention])
    assert np.allclose(table.turns(values, convention).as_matrix(), rotation.as_matrix(), atol=1e-7)


def test_the_conventions_of_a_rotation_are_the_ones_they_are_named_after():
    """A quarter turn about z: its matrix is [[0, -1, 0], [1, 0, 0], [0, 0, 1]]."""
    turn, half = Rotation.from_euler("z", 90, degrees=True), math.sqrt(0.5)
    quarter = Rotation.concatenate([turn])
    wanted = {
        "quaternion_xyzw": [0, 0, half, half],
        "quaternion_wxyz": [half, 0, 0, half],
        "euler_xyz": [0, 0, math.pi / 2],
        "rotvec": [0, 0, math.pi / 2],
        "rot6d_rows": [0, -1, 0, 1, 0, 0],
        "rot6d_columns": [0, 1, 0, -1, 0, 0],
    }
    assert set(wanted) == set(table.ROTATION_WIDTH)
    for convention, values in wanted.items():
        assert table.turn_values(quarter, convention)[0] == pytest.approx(values), convention


def test_euler_angles_turn_about_the_fixed_axes_in_the_order_x_y_z():
    """DROID's cartesian_position: scipy's "xyz", so R = Rz Ry Rx."""
    x, y, z = 0.3, -0.4, 0.5
    parts = [Rotation.from_euler(axis, angle).as_matrix() for axis, angle in (("z", z), ("y", y), ("x", x))]
    found = table.turns(np.array([[x, y, z]]), "euler_xyz").as_matrix()[0]
    assert np.allclose(found, parts[0] @ parts[1] @ parts[2])


def test_six_numbers_of_a_rotation_are_made_orthogonal_and_two_parallel_ones_are_refused():
    found = table.turns(np.array([[2.0, 0.1, 0, 0, 3.0, 0.2]]), "rot6d_columns").as_matrix()[0]
    assert np.allclose(found.T @ found, np.eye(3)) and np.linalg.det(found) == pytest.approx(1.0)
    with pytest.raises(DeviceRefused, match="cannot be read as rot6d_rows"):
        table.turns(np.array([[1.0, 0, 0, 2.0, 0, 0]]), "rot6d_rows")
    with pytest.raises(DeviceRefused, match="cannot be read as quaternion_xyzw"):
        table.turns(np.zeros((1, 4)), "quaternion_xyzw")


def test_droids_joint_velocity_is_a_fifth_of_a_radian_a_step_on_what_is_measured():
    """droid, RobotIKSolver.max_joint_delta = 0.2; openpi's client clips to +-1 first."""
    chunk = meant("droid_joint_velocity", [[1.0, -1.0, 0.5, 0, 0, 0, 7.0]])
    assert chunk.space == "joint_step" and chunk.dt_s == pytest.approx(1 / 15)
    assert chunk.values[0] == pytest.approx([0.2, -0.2, 0.1, 0, 0, 0, 0.2])


def test_droids_cartesian_velocity_is_75_mm_and_0_15_rad_a_step_and_no_longer_than_that():
    """droid, RobotIKSolver.max_lin_delta, max_rot_delta; a longer vector is shortened as a whole."""
    chunk = meant("droid_cartesian_velocity", [[0, 0.5, 0, 0, 0, 1.0], [3.0, 4.0, 0, 0, 0, 0]])
    assert chunk.space == "tcp_step"
    assert chunk.values[:, :3] == pytest.approx(np.array([[0, 0.0375, 0], [0.045, 0.06, 0]]))
    assert Rotation.from_quat(chunk.values[:, 3:]).as_rotvec() == pytest.approx(np.array([[0, 0, 0.15], [0, 0, 0]]))


def test_joint_deltas_count_from_the_observation_from_the_action_before_or_from_what_is_measured():
    step = np.full((3, 7), 0.01)
    assert meant("joint_delta", step, relative_to="observation").values == pytest.approx(np.tile(Q + 0.01, (3, 1)))
    previous = meant("joint_delta", step, relative_to="previous")
    assert previous.space == "joint_position" and previous.values[:, 0] == pytest.approx(
        Q[0] + np.array([0.01, 0.02, 0.03])
    )
    measured = meant("joint_delta", step, relative_to="measured")
    assert measured.space == "joint_step" and measured.values == pytest.approx(step)


def test_joint_positions_and_speeds_are_what_they_are():
    for space in ("joint_position", "joint_velocity"):
        chunk = meant(space, np.tile(Q, (2, 1)))
        assert chunk.space == space and chunk.values.tolist() == [Q.tolist()] * 2
    twist = [0.1, 0, 0, 0, 0, 0.2]
    assert meant("tcp_velocity", [twist]).values[0].tolist() == twist


@pytest.mark.parametrize("rotation", sorted(table.ROTATION_WIDTH))
def test_a_pose_in_any_rotation_is_the_same_pose(rotation: str):
    turn = table.turn_values(Rotation.from_quat(POSE[None, 3:]), rotation)[0]
    chunk = meant("tcp_pose", [[*POSE[:3], *turn]], rotation=rotation)
    assert chunk.space == "tcp_pose" and chunk.values[0, :3] == pytest.approx(POSE[:3])
    assert np.allclose(about(chunk.values), about(POSE[None, :]), atol=1e-9)


def test_a_delta_in_the_base_frame_moves_along_its_axes_and_one_of_the_tool_along_the_tools():
    delta = [[0.0, 0.0, 0.01, 0.0, 0.0, 0.1]]
    base = meant("tcp_delta", delta, rotation="rotvec", relative_to="previous").values
    assert base[0, :3] == pytest.approx(POSE[:3] + np.array([0, 0, 0.01]))
    turn = Rotation.from_rotvec([0, 0, 0.1]).as_matrix()
    assert np.allclose(about(base)[0], turn @ about(POSE[None, :])[0])
    tool = meant("tcp_delta", delta, rotation="rotvec", relative_to="previous", frame="tool").values
    here = about(POSE[None, :])[0]
    assert tool[0, :3] == pytest.approx(POSE[:3] + here @ [0, 0, 0.01])
    assert np.allclose(about(tool)[0], here @ turn)


@pytest.mark.parametrize("frame", ["base", "tool"])
def test_deltas_add_up_from_action_to_action_and_do_not_from_the_observation(frame: str):
    steps = [[0.01, 0.0, 0.0, 0.0, 0.0, 0.05]] * 2
    given = {"rotation": "rotvec", "frame": frame}
    previous = meant("tcp_delta", steps, relative_to="previous", **given).values
    alone = meant("tcp_delta", steps, relative_to="observation", **given).values
    assert np.allclose(alone[0], alone[1]) and np.allclose(previous[0], alone[0])
    again = table.compose(previous[:1], np.array([[0.01, 0, 0, *Rotation.from_rotvec([0, 0, 0.05]).as_quat()]]), frame)
    assert np.allclose(previous[1:, :3], again[:, :3]) and np.allclose(about(previous[1:]), about(again))


def test_scaled_actions_are_cut_first():
    """robosuite's OSC: +-1 stands for 0.05 m and 0.5 rad."""
    scale = [0.05, 0.05, 0.05, 0.5, 0.5, 0.5]
    given = {"rotation": "rotvec", "relative_to": "observation", "clip": 1.0, "scale": scale}
    moved = meant("tcp_delta", [[2.0, -0.5, 0, 0, 0, 0]], **given).values[0, :3] - POSE[:3]
    assert moved == pytest.approx([0.05, -0.025, 0.0])


@given(
    npst.arrays(float, 3, elements=SMALL), npst.arrays(float, 4, elements=SMALL), npst.arrays(float, 7, elements=SMALL)
)
def test_the_policys_tool_frame_is_there_and_back_again(shift: np.ndarray, turn: np.ndarray, pose: np.ndarray):
    tool = Tool(shift_m=shift.tolist(), turn_xyzw=(turn + np.array([0, 0, 0, 1.0])).tolist())
    pose = pose + np.array([0, 0, 0, 0, 0, 0, 1.0])
    pose[3:] /= np.linalg.norm(pose[3:])
    back = table.to_cell_tool(table.to_policy_tool(pose[None, :], tool), tool)
    assert np.allclose(back[:, :3], pose[:3]) and np.allclose(about(back), about(pose[None, :]))


def test_a_shifted_tool_is_ahead_along_its_own_axis():
    down = np.array([[0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0]])  # half a turn about x: the tool's z points down
    tool = Tool(shift_m=(0.0, 0.0, 0.1))
    assert table.to_policy_tool(down, tool)[0, :3] == pytest.approx([0.4, 0.0, 0.2])


ACTION = Action.model_validate_json(json.dumps(card()["action"]))
WRONG = {
    "no such key": ({"action": np.zeros((4, 8))}, "no 'actions'; it has: action"),
    "nothing": ({}, "it has: nothing"),
    "another robot's": ({"actions": np.zeros((4, 7))}, r"actions \(4, 7\); joint_position and a gripper need \(n, 8\)"),
    "padded": ({"actions": np.zeros((15, 32))}, r"actions \(15, 32\)"),
    "empty": ({"actions": np.zeros((0, 8))}, "0 actions; the card says at least 1"),
    "text": ({"actions": "stop"}, "no array of numbers but str"),
    "ragged": ({"actions": [[1], [1, 2]]}, "no array of numbers but list"),
    "a batch of two": ({"actions": np.zeros((2, 4, 8))}, r"shape \(2, 4, 8\)"),
    "nan": ({"actions": np.full((4, 8), np.nan)}, "not finite"),
    "infinite": ({"actions": np.full((4, 8), np.inf)}, "not finite"),
}


@pytest.mark.parametrize(("answer", "says"), WRONG.values(), ids=WRONG)
def test_an_answer_the_card_does_not_describe_is_refused(answer: dict, says: str):
    with pytest.raises(DeviceRefused, match=says):
        table.answer_rows(answer, ACTION, 7)


def test_an_answer_of_another_length_is_refused_when_the_card_states_one():
    with pytest.raises(DeviceRefused, match="holds 10 actions; the card says 15"):
        table.answer_rows({"actions": np.zeros((10, 8))}, ACTION.model_copy(update={"horizon": 15}), 7)


@pytest.mark.parametrize(
    "answer", [np.ones((4, 8)), np.ones((1, 4, 8)), np.ones((4, 8)).tolist(), np.ones((4, 8), np.float32)], ids=repr
)
def test_a_batch_of_one_lists_and_any_float_are_rows_all_the_same(answer: Any):
    assert table.answer_rows({"actions": answer}, ACTION, 7).tolist() == np.ones((4, 8)).tolist()


def test_one_action_alone_is_a_row_and_several_keys_are_set_side_by_side():
    assert table.answer_rows({"actions": np.arange(8.0)}, ACTION, 7).shape == (1, 8)
    keys = ACTION.model_copy(update={"keys": ("joint_position", "gripper_position")})
    parts = {"joint_position": np.zeros((1, 16, 7)), "gripper_position": np.ones((1, 16, 1))}
    rows = table.answer_rows(parts, keys, 7)
    assert rows.shape == (16, 8) and (rows[:, -1] == 1).all()
    assert table.answer_rows({**parts, "gripper_position": np.ones(16)}, keys, 7).shape == (16, 8)
    with pytest.raises(DeviceRefused, match=r"joint_position \(16, 7\), gripper_position \(15, 1\)"):
        table.answer_rows({**parts, "gripper_position": np.ones(15)}, keys, 7)


@pytest.mark.parametrize("space", [space for space in SPACES if space != "axes"])
def test_every_space_gives_a_chunk_that_the_controller_node_takes(space: str):
    delta = space in ("joint_delta", "tcp_delta")
    given = {"rotation": "rotvec" if space in ("tcp_pose", "tcp_delta") else None}
    width = table.width_of(ACTION.model_copy(update={"space": space, **given}), 7)
    assert width == (7 if "joint" in space else 6)
    for base in ("observation", "previous", "measured") if delta else (None,):
        chunk = meant(space, np.full((5, width), 0.01), relative_to=base, **given)
        assert chunk_problem(chunk, 7) is None and chunk.execute == 4


def test_all_of_an_answer_is_executed_when_the_card_says_zero():
    assert meant("joint_position", np.tile(Q, (9, 1)), execute=0).execute == 9
    assert meant("joint_position", np.tile(Q, (2, 1)), execute=4).execute == 2
