"""A Franka robot's state as it comes over the network: robot server version 10, little-endian, packed.

May not: know a socket, or what a state means to an operator (`words` does). The layout is a fact of
libfranka-common's `rbk_types.h` (Apache-2.0), written down from the protocol as seen on the wire.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from labctl.drivers.common.states import Sample

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

NUMBER = struct.Struct("<Q")  # the robot's clock in ms
FLOATS = 320
TAIL = struct.Struct("<BB41s41sBf")  # generator, controller, errors, those of the last motion, mode, success rate
STATE_BYTES = NUMBER.size + 4 * FLOATS + TAIL.size
ERRORS_AT, MODE_AT = NUMBER.size + 4 * FLOATS + 2, STATE_BYTES - 5

OTHER, IDLE, MOVING, GUIDING, REFLEX, USER_STOPPED, RECOVERING = range(7)
MODES = ("Other", "Idle", "Move", "Guiding", "Reflex", "UserStopped", "AutomaticErrorRecovery")  # libfranka's names

# the floats, in order
FIELDS = (
    ("O_T_EE", 16), ("O_T_EE_d", 16), ("F_T_EE", 16), ("EE_T_K", 16), ("F_T_NE", 16), ("NE_T_EE", 16), ("m_ee", 1),
    ("I_ee", 9), ("F_x_Cee", 3), ("m_load", 1), ("I_load", 9), ("F_x_Cload", 3), ("elbow", 2), ("elbow_d", 2),
    ("tau_J", 7), ("tau_J_d", 7), ("dtau_J", 7), ("q", 7), ("q_d", 7), ("dq", 7), ("dq_d", 7), ("ddq_d", 7),
    ("joint_contact", 7), ("cartesian_contact", 6), ("joint_collision", 7), ("cartesian_collision", 6),
    ("tau_ext_hat_filtered", 7), ("O_F_ext_hat_K", 6), ("K_F_ext_hat_K", 6), ("O_dP_EE_d", 6), ("O_ddP_O", 3),
    ("elbow_c", 2), ("delbow_c", 2), ("ddelbow_c", 2), ("O_T_EE_c", 16), ("O_dP_EE_c", 6), ("O_ddP_EE_c", 6),
    ("theta", 7), ("dtheta", 7), ("accel_top", 18), ("accel_bottom", 18),
)  # fmt: skip
_ENDS = accumulate(size for _, size in FIELDS)
SLICES = {name: slice(end - size, end) for (name, size), end in zip(FIELDS, _ENDS, strict=True)}

# error bits, in the FCI's order
ERRORS = (
    "joint_position_limits_violation", "cartesian_position_limits_violation", "self_collision_avoidance_violation",
    "joint_velocity_violation", "cartesian_velocity_violation", "force_control_safety_violation", "joint_reflex",
    "cartesian_reflex", "max_goal_pose_deviation_violation", "max_path_pose_deviation_violation",
    "cartesian_velocity_profile_safety_violation", "joint_position_motion_generator_start_pose_invalid",
    "joint_motion_generator_position_limits_violation", "joint_motion_generator_velocity_limits_violation",
    "joint_motion_generator_velocity_discontinuity", "joint_motion_generator_acceleration_discontinuity",
    "cartesian_position_motion_generator_start_pose_invalid", "cartesian_motion_generator_elbow_limit_violation",
    "cartesian_motion_generator_velocity_limits_violation", "cartesian_motion_generator_velocity_discontinuity",
    "cartesian_motion_generator_acceleration_discontinuity", "cartesian_motion_generator_elbow_sign_inconsistent",
    "cartesian_motion_generator_start_elbow_invalid", "force_controller_desired_force_tolerance_violation",
    "start_elbow_sign_inconsistent", "communication_constraints_violation", "power_limit_violation",
    "cartesian_motion_generator_joint_position_limits_violation",
    "cartesian_motion_generator_joint_velocity_limits_violation",
    "cartesian_motion_generator_joint_velocity_discontinuity",
    "cartesian_motion_generator_joint_acceleration_discontinuity",
    "cartesian_position_motion_generator_invalid_frame", "controller_torque_discontinuity",
    "joint_p2p_insufficient_torque_for_planning", "tau_j_range_violation", "instability_detected",
)  # fmt: skip
BIT = {name: bit for bit, name in enumerate(ERRORS)}


@dataclass(frozen=True, slots=True)
class Datagram:
    """One state as it was received: `STATE_BYTES` bytes. What is asked for is read then."""

    data: bytes

    @property
    def number(self) -> int:
        """The robot's clock in ms."""
        return NUMBER.unpack_from(self.data)[0]

    def field(self, name: str) -> np.ndarray:
        """One of `FIELDS`, float64, matrices column by column."""
        at = SLICES[name]
        return np.frombuffer(self.data, "<f4", at.stop - at.start, NUMBER.size + 4 * at.start).astype(float)

    @property
    def q(self) -> np.ndarray:
        """Measured joints (7,) in rad."""
        return self.field("q")

    @property
    def dq(self) -> np.ndarray:
        """Their measured speeds (7,) in rad/s."""
        return self.field("dq")

    @property
    def q_d(self) -> np.ndarray:
        """Desired joints (7,) in rad."""
        return self.field("q_d")

    @property
    def pose_c(self) -> np.ndarray:
        """The last commanded tool pose (4, 4), base frame."""
        return self.field("O_T_EE_c").reshape(4, 4).T

    @property
    def mode(self) -> str:
        """libfranka's name of the robot's mode."""
        mode = self.data[MODE_AT]
        return MODES[mode] if mode < len(MODES) else "Other"

    @property
    def errors(self) -> list[str]:
        """Names of the errors that stand."""
        bits = self.data[ERRORS_AT : ERRORS_AT + 41]
        return [ERRORS[bit] if bit < len(ERRORS) else f"error_{bit}" for bit, is_set in enumerate(bits) if is_set]


def _rotations(matrices: np.ndarray) -> Rotation:
    """Of matrices (n, 3, 3) as the controller sends them, which are taken as they are where scipy can."""
    import scipy
    from scipy.spatial.transform import Rotation

    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17):
        return Rotation.from_matrix(matrices)
    return Rotation.from_matrix(matrices, assume_valid=True)


def samples(states: Sequence[Datagram]) -> Sample:
    """n states as one Sample of n rows."""
    raw = np.frombuffer(b"".join(state.data for state in states), np.uint8).reshape(len(states), STATE_BYTES)
    device_ms = raw[:, : NUMBER.size].copy().view("<u8")[:, 0]
    floats = raw[:, NUMBER.size : NUMBER.size + 4 * FLOATS].copy().view("<f4")
    q, dq, tau, pose = (floats[:, SLICES[name]].astype(float) for name in ("q", "dq", "tau_J", "O_T_EE"))
    matrix = pose.reshape(-1, 4, 4).transpose(0, 2, 1)
    turn = _rotations(matrix[:, :3, :3]).as_quat()
    rate = raw[:, STATE_BYTES - 4 :].copy().view("<f4").astype(float)
    more = np.column_stack([rate, floats[:, SLICES["tau_ext_hat_filtered"]]])
    wrench = floats[:, SLICES["O_F_ext_hat_K"]].astype(float)
    return Sample(q, dq, tau, np.column_stack([matrix[:, :3, 3], turn]), device_ms / 1000, more, wrench)
