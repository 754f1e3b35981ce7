"""The FCI's bytes: robot server version 10 and gripper server version 3, little-endian, packed.

May not: know a socket or a robot. Layouts and numbers are facts of libfranka-common's `rbk_types.h` and
`service_types.h` (Apache-2.0), written down from the protocol as seen on the wire.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from labctl.drivers.franka.state import FLOATS, NUMBER, SLICES, TAIL

ROBOT_PORT, HAND_PORT = 1337, 1338
ROBOT_VERSION, HAND_VERSION = 10, 3

# robot commands, and the bytes of their payloads
CONNECT, MOVE, STOP_MOVE, RECOVER, GET_MODEL = 0, 1, 2, 10, 11
SIZES = {0: 4, 1: 113, 2: 0, 3: 416, 4: 56, 5: 48, 6: 7, 7: 128, 8: 128, 9: 104, 10: 0, 11: 0}
SET_EE_TO_K, SET_LOAD = 7, 9
OK, BUSY, INVALID_ARGUMENT = range(3)  # what a setter answers; BUSY is "not possible"

# Move statuses
SUCCESS, STARTED, PREEMPTED, PREEMPTED_SAFETY, REJECTED_SAFETY, NOT_POSSIBLE = range(6)
SINGULAR, INVALID, REFLEX_ABORTED, EMERGENCY_ABORTED, INPUT_ERROR, ABORTED = range(6, 12)

# Recovery statuses
RECOVERY_NOT_POSSIBLE, RECOVERY_REFLEX, RECOVERY_STOPPED, RECOVERY_ABORTED = 1, 4, 5, 6

# the idle modes of generator and controller
NO_GENERATOR, NO_CONTROLLER = 0, 3
JOINT_POSITION, JOINT_VELOCITY, CARTESIAN_POSE, CARTESIAN_VELOCITY, TORQUE = 1, 2, 3, 4, 5

HEADER = struct.Struct("<III")  # command, id, size of header and payload
HAND_HEADER = struct.Struct("<HII")
MOVE_HEAD = struct.Struct("<II")
HAND_STATE = struct.Struct("<IddBH")
LOAD = struct.Struct("<13d")  # mass, centre of mass 3, inertia 9
FRAME = struct.Struct("<16d")
COMMAND = struct.Struct("<Q7d7d16d6d2dBB7dB")


@dataclass(slots=True)
class RobotCommand:
    """One datagram of a client in control. Only the part of its mode is filled. pose (16,): column by column."""

    id: int
    q: np.ndarray
    dq: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    elbow: np.ndarray
    valid_elbow: bool
    finished: bool
    tau: np.ndarray
    torque_finished: bool


def read_command(data: bytes) -> RobotCommand | None:
    """A command datagram, or None for one of another size."""
    if len(data) != COMMAND.size:
        return None
    v = COMMAND.unpack(data)
    q, dq, pose, twist, elbow = (np.array(v[a:b]) for a, b in ((1, 8), (8, 15), (15, 31), (31, 37), (37, 39)))
    return RobotCommand(v[0], q, dq, pose, twist, elbow, bool(v[39]), bool(v[40]), np.array(v[41:48]), bool(v[48]))


class StateBuffer:
    """A robot state under construction: `set` fields by name, `pack` the datagram."""

    def __init__(self) -> None:
        self._floats = np.zeros(FLOATS, "<f4")
        self._views = {name: self._floats[at] for name, at in SLICES.items()}

    def set(self, name: str, value: np.ndarray | float) -> None:
        self._views[name][:] = value

    def pack(
        self, number: int, generator: int, controller: int, errors: bytes, last: bytes, mode: int, rate: float = 0.0
    ) -> bytes:
        """The datagram; errors and last (41 bytes each) are the current errors and those of the last motion; rate is
        the share of the last hundred commands that came.
        """
        tail = TAIL.pack(generator, controller, errors, last, mode, rate)
        return NUMBER.pack(number) + self._floats.tobytes() + tail


def matrix(pose: tuple[float, ...]) -> np.ndarray:
    """x y z qx qy qz qw as a column-major 4 x 4 matrix of 16 values, its columns of unit length."""
    x, y, z, w = pose[3:]
    return np.array(
        [
            *(1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w), 0.0),
            *(2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w), 0.0),
            *(2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y), 0.0),
            *(pose[0], pose[1], pose[2], 1.0),
        ]
    )
