"""The words of a policy card that name what a number means: states, spaces, rotations, ways to say an opening; with the
tables of its hand and its tool, and what of these two a new card may not say.

May not: say how one is computed (`labctl.drivers.policy` does).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from labctl.config.toml_text import Document, Table
from labctl.config.values import Lax, Text

STATES = (
    "joint_position",
    "joint_velocity",
    "gripper",
    "tcp_position",
    "tcp_quaternion_xyzw",
    "tcp_quaternion_wxyz",
    "tcp_euler_xyz",
    "tcp_rotvec",
    "tcp_rot6d_rows",
    "tcp_rot6d_columns",
    "axes",
)
SPACES = (
    *("joint_position", "joint_delta", "joint_velocity", "droid_joint_velocity"),
    *("tcp_pose", "tcp_delta", "tcp_velocity", "droid_cartesian_velocity", "axes"),
)
ROTATIONS = ("quaternion_xyzw", "quaternion_wxyz", "euler_xyz", "rotvec", "rot6d_rows", "rot6d_columns")
# Convention -> the numbers for open and for closed; None: the number is the opening itself, m.
GRIPPERS: Mapping[str, tuple[float, float] | None] = {
    "0_open_1_closed": (0.0, 1.0),  # DROID, openpi, RoboArena, GR00T's DROID embodiment
    "1_open_0_closed": (1.0, 0.0),  # OpenVLA and Open X-Embodiment, ALOHA
    "-1_open_1_closed": (-1.0, 1.0),  # LIBERO and robosuite actions, deoxys
    "1_open_-1_closed": (1.0, -1.0),
    "0_open_255_closed": (0.0, 255.0),  # Robotiq registers, GELLO
    "width_m": None,  # UMI; deoxys' proprioception
}
TURNED = ("tcp_pose", "tcp_delta")  # spaces whose rotation has to be named
DELTAS = ("joint_delta", "tcp_delta")  # spaces that have to say from where they count
DROID_HZ = 15.0  # DROID's unit is "per step of 15 Hz" (droid, RobotIKSolver.control_hz)
EXTERIOR = re.compile(r"^observation/exterior_image_(\d{1,4})_left$")
FURTHEST_M = 1.0  # that a tool's frame is from the flange, along any axis
UNIT = 0.01  # how far from 1 a turn's length may be: two digits of each number


class Gripper(Table):
    """[gripper]: what the policy's numbers say of the fingers, in its state and its actions.

    open_m and closed_m: the openings that "open" and "closed" stand for on this cell. binarise_at: in the policy's own
    unit; above it is one end of the range, otherwise the other.
    """

    state: Text = "0_open_1_closed"
    action: Text
    open_m: Annotated[float, Field(gt=0, le=0.5)]
    closed_m: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    binarise_at: float | None = None


class Tool(Table):
    """[tool]: the frame that the policy's poses and motions of the tool are of. frame: "tcp", the cell's tool centre
    point, or "flange", the robot's own (panda_link8 and fr3_link8 of Franka's URDF, tool0 of a UR's); then a shift in m
    and a turn from there.
    """

    frame: Literal["tcp", "flange"] | None = None
    shift_m: Annotated[tuple[float, float, float], Lax] = (0.0, 0.0, 0.0)
    turn_xyzw: Annotated[tuple[float, float, float, float], Lax] = (0.0, 0.0, 0.0, 1.0)


def check_hand(card: Document, gripper: Gripper | None) -> None:
    """Raises InputError for a binarise_at that every number of the policy is above, or none: the hand never moves."""
    if gripper is None or (at := gripper.binarise_at) is None:
        return
    opened, closed = GRIPPERS[gripper.action] or (gripper.open_m, gripper.closed_m)
    if not min(opened, closed) < at < max(opened, closed):
        text = f"binarise_at is {at:g}, and by {gripper.action} open is {opened:g} and closed {closed:g}"
        raise card.refusal(("gripper", "binarise_at"), f"{text}; give one between them, or leave it out")


def check_scale(card: Document, scale: Sequence[float] | None) -> None:
    """Raises InputError for a scale of nothing but 0: the arm never moves."""
    if scale and not any(scale):
        raise card.refusal(("action", "scale"), f"scale is {list(scale)}: no action moves the arm; give what one is")


def check_tool(card: Document, tool: Tool) -> None:
    """Raises InputError for a frame further from the hand than any tool is long, and for a turn that is none."""
    if max(map(abs, tool.shift_m)) > FURTHEST_M:
        text = f"shift_m is {list(tool.shift_m)}, and no tool is longer than {FURTHEST_M:g} m; give it in m"
        raise card.refusal(("tool", "shift_m"), text)
    length = math.hypot(*tool.turn_xyzw)
    if abs(length - 1) > UNIT:
        text = f"turn_xyzw is {list(tool.turn_xyzw)}, of length {length:.3g}, and a quaternion's is 1"
        raise card.refusal(("tool", "turn_xyzw"), f"{text}; [0.0, 0.0, 0.0, 1.0] turns nothing")
