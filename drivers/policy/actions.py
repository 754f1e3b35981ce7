"""The one table of what a policy's numbers mean: action spaces, gripper signs, rotations. Pure.

May not: read a clock, a file or a socket, or guess: what the card does not say is refused when the card is read.

Poses are x y z qx qy qz qw of the cell's tool centre point in the robot's base frame; openings of the fingers in m.
The sources of the DROID numbers are DROID's own RobotIKSolver (max_joint_delta, max_lin_delta, max_rot_delta).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.config.policy_card import GRIPPERS, Action, Card, Gripper, Tool
from labctl.devices import ActionChunk
from labctl.drivers.common.robot_tables import Tool as FlangeTool
from labctl.errors import DeviceRefused

DROID_JOINT_RAD, DROID_LIN_M, DROID_ROT_RAD = 0.2, 0.075, 0.15  # what 1.0 stands for, per step of 15 Hz
ROTATION_WIDTH = {
    "quaternion_xyzw": 4,
    "quaternion_wxyz": 4,
    "euler_xyz": 3,  # extrinsic x, then y, then z, as DROID writes it
    "rotvec": 3,
    "rot6d_rows": 6,  # the first two rows of the matrix
    "rot6d_columns": 6,  # the first two columns (Zhou et al. 2019)
}


def width_of(action: Action, dof: int) -> int:
    """Values of one action without its last one, the gripper, for a robot of `dof` joints."""
    space = action.space
    if space == "axes":
        return len(action.axis) - 1
    if "joint" in space:
        return dof
    return 3 + ROTATION_WIDTH[action.rotation] if action.rotation else 6


def openings(values: np.ndarray, gripper: Gripper) -> np.ndarray:
    """Openings (n,) in m, within closed_m..open_m, that a policy's gripper actions (n,) stand for."""
    ends = GRIPPERS[gripper.action]
    low_m, high_m = gripper.closed_m, gripper.open_m
    opened, closed = ends or (high_m, low_m)
    threshold = gripper.binarise_at
    if threshold is not None:
        values = np.where(values > threshold, max(opened, closed), min(opened, closed))
    share = (values - closed) / (opened - closed)
    return low_m + np.clip(share, 0.0, 1.0) * (high_m - low_m)


def gripper_state(opening_m: np.ndarray, gripper: Gripper) -> np.ndarray:
    """What a policy reads for openings in m: the inverse of `openings`, in the convention of its state."""
    ends = GRIPPERS[gripper.state]
    if ends is None:
        return np.array(opening_m, dtype=float)
    opened, closed = ends
    share = np.clip((opening_m - gripper.closed_m) / (gripper.open_m - gripper.closed_m), 0.0, 1.0)
    return closed + share * (opened - closed)


def turns(values: np.ndarray, convention: str) -> Any:
    """A scipy Rotation of n rows of a convention's numbers (n, k). Raises DeviceRefused for what is no rotation."""
    from scipy.spatial.transform import Rotation

    try:
        match convention:
            case "quaternion_xyzw":
                return Rotation.from_quat(values)
            case "quaternion_wxyz":
                return Rotation.from_quat(values[:, [1, 2, 3, 0]])
            case "euler_xyz":
                return Rotation.from_euler("xyz", values)
            case "rotvec":
                return Rotation.from_rotvec(values)
        return Rotation.from_matrix(_matrices(values, columns=convention == "rot6d_columns"))
    except ValueError as error:
        raise DeviceRefused(f"a rotation of the answer cannot be read as {convention} ({error})") from None


def turn_values(rotation: Any, convention: str) -> np.ndarray:
    """The numbers (n, k) of a convention for a scipy Rotation of n: the inverse of `turns`."""
    match convention:
        case "quaternion_xyzw":
            return rotation.as_quat()
        case "quaternion_wxyz":
            return rotation.as_quat()[:, [3, 0, 1, 2]]
        case "euler_xyz":
            return rotation.as_euler("xyz")
        case "rotvec":
            return rotation.as_rotvec()
    matrix = rotation.as_matrix()
    return (matrix[:, :2, :] if convention == "rot6d_rows" else np.swapaxes(matrix[:, :, :2], 1, 2)).reshape(-1, 6)


def _matrices(values: np.ndarray, *, columns: bool) -> np.ndarray:
    first, second = values[:, :3], values[:, 3:]
    a = first / _norms(first)
    b = second - (a * second).sum(axis=1, keepdims=True) * a
    b = b / _norms(b)
    return np.stack([a, b, np.cross(a, b)], axis=2 if columns else 1)


def _norms(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (norms > 1e-6).all():
        raise ValueError("two of its directions are one, or have no length")
    return norms


def to_policy_tool(pose: np.ndarray, tool: Tool) -> np.ndarray:
    """Poses (n, 7) of the cell's tool as poses of the policy's frame: the card's [tool], seen from the cell's tool."""
    return _moved(pose, np.array(tool.shift_m), turns(np.array([tool.turn_xyzw]), "quaternion_xyzw"))


def seen_from_tool(frame: Tool, mounted: FlangeTool) -> Tool:
    """A card's [tool] as seen from the cell's tool centre point, whichever frame it is given in; `mounted` is where
    that point is on the flange.
    """
    if frame.frame != "flange":
        return frame
    pose = np.array([[*frame.shift_m, *frame.turn_xyzw]])
    turn = turns(np.array([mounted.rpy]), "euler_xyz").inv()
    at = turn.apply(pose[:, :3] - np.array(mounted.xyz))[0]
    turned = (turn * turns(pose[:, 3:], "quaternion_xyzw")).as_quat()[0]
    return Tool(frame="tcp", shift_m=tuple(at.tolist()), turn_xyzw=tuple(turned.tolist()))


def to_cell_tool(pose: np.ndarray, tool: Tool) -> np.ndarray:
    """The inverse of `to_policy_tool`."""
    back = turns(np.array([tool.turn_xyzw]), "quaternion_xyzw").inv()
    return _moved(pose, -back.apply(np.array(tool.shift_m))[0], back)


def _moved(pose: np.ndarray, shift: np.ndarray, turn: Any) -> np.ndarray:
    """Poses (n, 7) after a shift along, and a turn about, their own axes."""
    here = turns(pose[:, 3:], "quaternion_xyzw")
    return np.column_stack([pose[:, :3] + here.apply(shift), (here * turn).as_quat()])


def answer_rows(answer: Mapping[str, Any], action: Action, *dofs: int) -> np.ndarray:
    """The actions of an answer as rows (n, width + 1), finite; of two robots one's behind the other's. Raises
    DeviceRefused that says what there was.
    """
    width = len(action.axis) if action.space == "axes" else sum(width_of(action, dof) + 1 for dof in dofs)
    parts = []
    for key in action.keys:
        if key not in answer:
            raise DeviceRefused(f"the answer has no {key!r}; it has: {', '.join(map(str, answer)) or 'nothing'}")
        parts.append(_rows(key, answer[key], alone=len(action.keys) == 1, width=width))
    lengths = {len(part) for part in parts}
    shapes = ", ".join(f"{key} {part.shape}" for key, part in zip(action.keys, parts, strict=True))
    of_each = " of each robot" if len(dofs) > 1 else ""
    wanted = f"{action.space} and a gripper{of_each} need (n, {width})"
    if len(lengths) != 1 or sum(part.shape[1] for part in parts) != width:
        raise DeviceRefused(f"the answer's actions are {shapes}; {wanted}")
    rows = np.concatenate(parts, axis=1)
    if not len(rows) or (action.horizon is not None and len(rows) != action.horizon):
        raise DeviceRefused(f"the answer holds {len(rows)} actions; the card says {action.horizon or 'at least 1'}")
    if not np.isfinite(rows).all():
        raise DeviceRefused("the answer holds values that are not finite")
    return rows


def _rows(key: str, value: Any, *, alone: bool, width: int) -> np.ndarray:
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise DeviceRefused(f"the answer's {key!r} is no array of numbers but {type(value).__name__}") from None
    if found.ndim == 3 and found.shape[0] == 1:
        found = found[0]  # a batch of one
    if found.ndim == 1:
        found = found[None, :] if alone and len(found) == width else found[:, None]
    if found.ndim != 2:
        raise DeviceRefused(f"the answer's {key!r} has the shape {found.shape}; actions have rows and columns")
    return found


def to_chunk(rows: np.ndarray, card: Card, arrays: Mapping[str, np.ndarray]) -> ActionChunk:
    """The chunk that rows (n, width + 1) of `answer_rows` stand for, given what the robot was when they were asked for.

    arrays: q (dof,), tcp (7,) of the observation.
    """
    action, timing = card.action, card.timing
    execute = min(action.execute or len(rows), len(rows))
    if action.space == "axes":  # in the robot's order and units: `client.card_for` has compared them
        dof = len(arrays["q"])
        hand = rows[:, dof] if rows.shape[1] == dof + 1 else rows[:, dof:]
        return ActionChunk("joint_position", rows[:, :dof], hand, 1.0 / timing.rate_hz, execute, starts=timing.starts)
    values = rows[:, :-1]
    if action.clip is not None:
        values = np.clip(values, -action.clip, action.clip)
    if action.scale is not None:
        values = values * np.array(action.scale)
    space, values = _meaning(action, card.tool, values, arrays)
    gripper = openings(rows[:, -1], card.fingers)
    about = card.tool.shift_m if space == "tcp_step" else (0.0, 0.0, 0.0)
    return ActionChunk(space, values, gripper, 1.0 / timing.rate_hz, execute, starts=timing.starts, about_m=about)


def _meaning(
    action: Action, tool: Tool, values: np.ndarray, arrays: Mapping[str, np.ndarray]
) -> tuple[Any, np.ndarray]:
    space, base = action.space, action.relative_to
    match space:
        case "joint_position" | "joint_velocity" | "tcp_velocity":
            return space, values
        case "joint_delta" if base == "measured":
            return "joint_step", values
        case "joint_delta":
            return "joint_position", arrays["q"] + (values if base == "observation" else np.cumsum(values, axis=0))
        case "droid_joint_velocity":
            return "joint_step", DROID_JOINT_RAD * np.clip(values, -1.0, 1.0)
        case "droid_cartesian_velocity":
            moves = DROID_LIN_M * _at_most_one(values[:, :3])
            spin = turns(DROID_ROT_RAD * _at_most_one(values[:, 3:]), "rotvec")
            return "tcp_step", np.column_stack([moves, spin.as_quat()])
    assert action.rotation is not None, "a card's poses have a rotation"
    turned = np.column_stack([values[:, :3], turns(values[:, 3:], action.rotation).as_quat()])
    if space == "tcp_pose":
        return "tcp_pose", to_cell_tool(turned, tool)
    if base == "measured":
        return "tcp_step", turned
    start = to_policy_tool(np.asarray(arrays["tcp"], dtype=float)[None, :], tool)
    return "tcp_pose", to_cell_tool(_followed(start, turned, action), tool)


def _followed(start: np.ndarray, deltas: np.ndarray, action: Action) -> np.ndarray:
    """Poses (n, 7) that deltas (n, 7) lead to from start (1, 7), each from the start or from the pose before."""
    if action.relative_to == "observation":
        return compose(np.repeat(start, len(deltas), axis=0), deltas, action.frame)
    poses = [start]
    for delta in deltas:
        poses.append(compose(poses[-1], delta[None, :], action.frame))
    return np.concatenate(poses[1:])


def compose(poses: np.ndarray, deltas: np.ndarray, frame: str) -> np.ndarray:
    """Poses (n, 7) after deltas (n, 7): shifts and turns along and about the axes of the base or the tool."""
    turn = turns(deltas[:, 3:], "quaternion_xyzw")
    if frame == "tool":
        return _moved(poses, deltas[:, :3], turn)
    turned = turn * turns(poses[:, 3:], "quaternion_xyzw")
    return np.column_stack([poses[:, :3] + deltas[:, :3], turned.as_quat()])


def _at_most_one(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0)
