"""The robots labctl knows by their published tables: chains, limits, home, and closed-form inverses.

May not: move anything or read a cell; numbers come from the makers' documents and are quoted where they stand.

FR3: modified DH and flange of franka_description / Franka's FCI documentation ("Robot and interface specifications"),
hand turned by -45 degrees with the TCP 0.1034 m beyond the flange; it weighs 0.73 kg (its product manual). URs: DH of
Universal Robots' support article "DH parameters for calculations of kinematics and dynamics", joints +-360 degrees,
their speeds by `config/*/joint_limits.yaml` of Universal_Robots_ROS2_Description; a UR7e is a UR5e with other internals
(pull request 692 of ros-industrial/universal_robot). The same gripper stands on their flange; `with_tool` puts another
there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from labctl import rotations
from labctl.drivers.common import kinematics, null_space
from labctl.drivers.common.joint_ends import JointEnds
from labctl.drivers.common.kinematics import Chain

HAND_M = 0.1034  # flange to TCP of the Franka hand
HAND_RPY = (0.0, 0.0, -math.pi / 4)  # and how it is turned there
HAND_KG = 0.73
DOWN_TOLERANCE = 1e-6
PLANAR_RAD = 1e-4  # an FR3 whose joint 3 is so near zero lies in the plane of the closed form
SAME_BRANCH_RAD = 2.0  # nearer than half a turn: neither the robot turned round, nor a joint

Inverse = Callable[[Chain, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class RobotModel:
    """A robot: chain, published limits (rad, rad/s, rad/s2, each (dof,)), home configuration and its inverse
    kinematics.

    `inverse(poses (n, 7), q_seed (dof,))` gives joint angles (n, dof): exact where the pose can be reached, else the
    nearest configuration the method finds. The caller compares with `kinematics.positions`. `method` is that inverse
    for any tool. `ends` says how a speed falls near the ends of the joints, None where it does not.
    """

    name: str
    joint_names: tuple[str, ...]
    chain: Chain
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    home: np.ndarray
    method: Inverse
    ends: JointEnds | None = None

    @property
    def dof(self) -> int:
        return self.chain.dof

    def inverse(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """See the class."""
        chain = self.chain
        if not chain.on_axis:
            chain, poses = kinematics.without_tool(chain, poses)
        return self.method(chain, poses, q_seed)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool in the frame of the flange: a shift in m, then a turn in rad, as `Chain` has it (URDF's order)."""

    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)


def with_tool(robot_model: RobotModel, tool: Tool) -> RobotModel:
    """A robot of the tables below with another tool on its flange. Home holds the same joints, so another pose."""
    x, y, z = tool.xyz
    chain = replace(robot_model.chain, tool_z=robot_model.chain.tool_z - HAND_M + z, tool_xy=(x, y), tool_rpy=tool.rpy)
    return replace(robot_model, chain=chain)


_D1, _D3, _D5, _A4, _A7, FLANGE_M = 0.333, 0.316, 0.384, 0.0825, 0.088, 0.107
_Q = math.pi / 2

FR3_CHAIN = Chain(
    rows=(
        (0.0, 0.0, _D1),
        (0.0, -_Q, 0.0),
        (0.0, _Q, _D3),
        (_A4, _Q, 0.0),
        (-_A4, -_Q, _D5),
        (0.0, _Q, 0.0),
        (_A7, _Q, 0.0),
    ),
    tool_z=FLANGE_M + HAND_M,
    tool_rpy=HAND_RPY,
)
# FCI documentation, "Joint space limits" of the FR3 (velocity: the upper bound, away from the position limits).
FR3_LOWER = np.array([-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159])
FR3_UPPER = np.array([2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159])
FR3_VELOCITY = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
FR3_ACCELERATION = np.full(7, 10.0)
# `limit` and `position_based_velocity_limits` of libfranka's test/fr3.urdf, the description a robot gives its clients;
# its joints end some millirad outside the documentation's.
FR3_ENDS = JointEnds(
    lower=np.array([-2.7501, -1.7918, -2.9065, -3.0481, -2.8101, 0.54092, -3.0196]),
    upper=np.array([2.7501, 1.7918, 2.9065, -0.1458, 2.8101, 4.5205, 3.0196]),
    offset=np.array([0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35]),
    deceleration=np.array([6.0, 2.585, 3.5, 4.0, 17.0, 5.5, 17.0]),
)

_UPPER_ARM, _FOREARM = math.hypot(_D3, _A4), math.hypot(_D5, _A4)
_BEND_1, _BEND_2 = math.atan2(_A4, _D3), math.atan2(_A4, _D5)


def fr3_downward(chain: Chain, poses: np.ndarray) -> np.ndarray:
    """Joint angles (n, 7) of an FR3 for poses that point straight down, in closed form with joints 3 and 5 at zero, of
    a chain whose tool is `on_axis`.

    The robot then lies in the vertical plane through its base: a triangle of two bent links reaches the wrist, joint 6
    makes the hand vertical, joint 7 its yaw. A point beyond reach is answered by the stretched arm in its direction.
    Yaw is twice the angle of (qx, qy).
    """
    x, y, z = poses[:, 0], poses[:, 1], poses[:, 2]
    q = np.zeros((poses.shape[0], 7))
    across = np.hypot(x, y) - _A7
    up = z + (chain.tool_z - _D1)
    reach = np.clip(np.hypot(across, up), _FOREARM - _UPPER_ARM + 1e-6, _FOREARM + _UPPER_ARM - 1e-6)
    lean = np.arctan2(across, up)
    square = reach * reach
    difference = _UPPER_ARM**2 - _FOREARM**2
    shoulder = np.arccos((square + difference) / (2 * _UPPER_ARM * reach))
    wrist = np.arccos((square - difference) / (2 * _FOREARM * reach))
    q[:, 0] = np.arctan2(y, x)
    q[:, 1] = lean - shoulder - _BEND_1
    q[:, 5] = lean + wrist + _BEND_2
    q[:, 3] = q[:, 1] - q[:, 5]
    turn = q[:, 0] - 2 * np.arctan2(poses[:, 4], poses[:, 3]) - chain.tool_rpy[2]
    q[:, 6] = (turn + math.pi) % (2 * math.pi) - math.pi
    return q


# Joint 3 rests at zero: straight down that is the closed form, whose plane holds the robot. Joints 2, 4 and 6 do not
# turn there while the elbow swings.
FR3_POSTURE = null_space.Posture(rests=2, swings=(0, 2, 4, 6), lower=FR3_LOWER, upper=FR3_UPPER)


def _franka_inverse(posture: null_space.Posture, chain: Chain, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
    """The closed form where the robot is on its branch already: elsewhere it would jump there."""
    if float(np.abs(poses[:, 5:]).max()) < DOWN_TOLERANCE and abs(float(q_seed[2])) < PLANAR_RAD:
        q = fr3_downward(chain, poses)
        steps = np.diff(q, axis=0, prepend=q_seed[None, :])
        if posture.roomy(q) and float(np.abs(steps).max()) < SAME_BRANCH_RAD:
            return np.clip(q, posture.lower, posture.upper)
    return null_space.joints(chain, poses, q_seed, posture)


Links = tuple[float, float, float, float, float, float]
_UR5E: Links = (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996)
UR_LINKS: Mapping[str, Links] = {  # d1 a2 a3 d4 d5 d6, m
    "ur5": (0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823),
    "ur3e": (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921),
    "ur5e": _UR5E,
    "ur7e": _UR5E,
    "ur10e": (0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655),
    "ur15": (0.2186, -0.6475, -0.5164, 0.1824, 0.1361, 0.1434),  # ur_description 4.3.1, config/ur15
    "ur20": (0.2363, -0.8620, -0.7287, 0.2010, 0.1593, 0.1543),
}
# degrees/s, joint by joint; all others 180
UR_SPEEDS: Mapping[str, tuple[float, ...]] = {
    "ur3e": (180, 180, 180, 360, 360, 360),
    "ur10e": (120, 120, 180, 180, 180, 180),
    "ur15": (180, 180, 240, 300, 300, 300),
    "ur20": (120, 120, 150, 210, 210, 210),
}


def _ur_chain(links: Links) -> Chain:
    d1, a2, a3, d4, d5, d6 = links
    rows = ((0.0, 0.0, d1), (0.0, _Q, 0.0), (a2, 0.0, 0.0), (a3, 0.0, d4), (0.0, _Q, d5), (0.0, -_Q, d6))
    return Chain(rows=rows, tool_z=HAND_M)


UR_LOWER, UR_UPPER = np.full(6, -2 * math.pi), np.full(6, 2 * math.pi)
UR_ACCELERATION = np.full(6, 40.0)  # not published as a joint limit: what the controller accepts as an argument


def ur_inverse(links: Links, chain: Chain, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
    """Joint angles (n, 6) of a UR5 or UR5e in closed form, in the shoulder, elbow and wrist branch of q_seed (6,), of a
    chain whose tool is `on_axis`.

    After Hawkins, "Analytic inverse kinematics for the Universal Robots UR-5/UR-10 arms" (2013), written with vectors:
    n is the common axis of joints 2 to 4, whose plane holds a two-link arm. Beyond reach the robot stretches. Angles
    continue from q_seed.
    """
    d1, a2, a3, d4, d5, d6 = links
    tip = rotations.matrix(poses[:, 3:])
    (tip_xx, tip_xy, tip_xz), (tip_zx, tip_zy, tip_zz) = tip[:, :, 0].T, tip[:, :, 2].T
    out = d6 + chain.tool_z
    x, y, z = poses[:, 0] - out * tip_zx, poses[:, 1] - out * tip_zy, poses[:, 2] - out * tip_zz
    lean = np.arcsin(np.clip(d4 / np.maximum(np.hypot(x, y), 1e-9), -1.0, 1.0))
    bearing = np.arctan2(y, x)
    near, far = bearing + lean, bearing + math.pi - lean
    first = near if _apart(near[0], q_seed[0]) <= _apart(far[0], q_seed[0]) else far
    c, s = np.cos(first), np.sin(first)  # in the plane of the robot: out (c, s, 0) and up; its normal is (s, -c, 0)
    cos5 = np.clip(tip_zx * s - tip_zy * c, -1.0, 1.0)
    fifth = np.arccos(cos5) * (1.0 if q_seed[4] >= 0 else -1.0)
    sin5 = np.sin(fifth)
    safe = np.where(np.abs(sin5) > 1e-9, sin5, 1e-9)
    x4_out, x4_up = -(tip_zx * c + tip_zy * s) / safe, -tip_zz / safe
    sixth = np.arctan2(
        (tip_xx * c + tip_xy * s) * -x4_up + tip_xz * x4_out,
        cos5 * ((tip_xx * c + tip_xy * s) * x4_out + tip_xz * x4_up) + sin5 * (tip_xx * s - tip_xy * c),
    )
    sixth = sixth - chain.tool_rpy[2]
    across, up = x * c + y * s - d5 * x4_up, z + d5 * x4_out - d1
    cos3 = np.clip((across * across + up * up - a2 * a2 - a3 * a3) / (2 * a2 * a3), -1.0, 1.0)
    third = np.arccos(cos3) * (1.0 if q_seed[2] >= 0 else -1.0)
    second = np.arctan2(up, across) - np.arctan2(a3 * np.sin(third), a2 + a3 * cos3)
    fourth = np.arctan2(x4_up, x4_out) - second - third
    q = np.stack([first, second, third, fourth, fifth, sixth], axis=1)
    steps = np.diff(q, axis=0, prepend=q_seed[None, :])
    return np.clip(q_seed + np.cumsum((steps + math.pi) % (2 * math.pi) - math.pi, axis=0), UR_LOWER, UR_UPPER)


def _apart(a: float, b: float) -> float:
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


def _downward_home(x: float, z: float) -> np.ndarray:
    return np.array([[x, 0.0, z, 1.0, 0.0, 0.0, 0.0]])


FR3 = RobotModel(
    name="fr3",
    joint_names=tuple(f"fr3_joint{i}" for i in range(1, 8)),
    chain=FR3_CHAIN,
    lower=FR3_LOWER,
    upper=FR3_UPPER,
    velocity=FR3_VELOCITY,
    acceleration=FR3_ACCELERATION,
    home=fr3_downward(FR3_CHAIN, _downward_home(0.42, 0.35))[0],
    method=partial(_franka_inverse, FR3_POSTURE),
    ends=FR3_ENDS,
)
# The robot before it, called Panda too: FCI documentation, limits of the Franka Emika Robot; its speeds do not depend
# on where its joints are.
_FER_LOWER = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973])
_FER_UPPER = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973])
FER = replace(
    FR3,
    name="fer",
    joint_names=tuple(f"panda_joint{i}" for i in range(1, 8)),
    lower=_FER_LOWER,
    upper=_FER_UPPER,
    velocity=np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61]),
    acceleration=np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]),
    method=partial(_franka_inverse, replace(FR3_POSTURE, lower=_FER_LOWER, upper=_FER_UPPER)),
    ends=None,
)
_UR_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
_UR_SEED = np.array([math.pi, -1.6, 1.8, -1.7, -1.6, 0.0])


def _ur(name: str) -> RobotModel:
    links = UR_LINKS[name]
    chain, at = _ur_chain(links), (0.28, 0.2) if name == "ur3e" else (0.42, 0.35)  # a UR3e reaches half a metre
    return RobotModel(
        name=name,
        joint_names=tuple(f"{joint}_joint" for joint in _UR_JOINTS),
        chain=chain,
        lower=UR_LOWER,
        upper=UR_UPPER,
        velocity=np.radians(UR_SPEEDS.get(name, (180.0,) * 6)),
        acceleration=UR_ACCELERATION,
        home=ur_inverse(links, chain, _downward_home(*at), _UR_SEED)[0],
        method=partial(ur_inverse, links),
    )


URS: Mapping[str, RobotModel] = {name: _ur(name) for name in UR_LINKS}
UR5, UR5E = URS["ur5"], URS["ur5e"]
