"""What was measured on a UR at the factory: the kinematics info that its controller tells every client of its primary
interface.

May not: send anything, or wait for longer than it is asked to. Layout: Universal Robots, "Primary and secondary
interfaces" (robot state message, type 16; kinematics info, sub-package 5), and their client library's reading of it:
big-endian; six checksums u32; theta, a, d, alpha, six f64 each, published values and corrections together; status u32.
"""

from __future__ import annotations

import math
import socket
import struct

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.common import kinematics
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import RobotModel, Tool, with_tool
from labctl.errors import DeviceRefused

PRIMARY_PORT = 30001
HEAD, PART = struct.Struct(">iB"), struct.Struct(">IB")  # of a message, of a part of one: length with this head, type
ROBOT_STATE, KINEMATICS = 16, 5
INFO = struct.Struct(">6I24dI")
MOST_BYTES = 1 << 16  # of one message; a longer one is no primary interface
OTHER_M = 0.03  # further than a calibration moves a flange
NOT_CALIBRATED = (
    "the robot says nothing of its own kinematics on port 30001 (a firewall, or the interface is switched off): poses "
    "go through the published table of its model, and steps of the tool are off by what was measured of this robot"
)


def read_calibration(host: str, timeout_s: float = 2.0) -> MeasuredChain | None:
    """What a controller says of its robot within timeout_s; None if it says nothing, or nobody is there."""
    clock = MonotonicClock()
    until_ns = clock.now_ns() + round(timeout_s * SECOND)
    try:
        with socket.create_connection((host, PRIMARY_PORT), timeout_s) as sock:
            data = b""
            while (left_ns := until_ns - clock.now_ns()) > 0:
                sock.settimeout(left_ns / SECOND)
                part = sock.recv(65536)
                if not part:
                    return None
                data += part
                while len(data) >= HEAD.size:
                    size, kind = HEAD.unpack_from(data)
                    if not HEAD.size <= size <= MOST_BYTES:
                        return None
                    if len(data) < size:
                        break
                    message, data = data[HEAD.size : size], data[size:]
                    if kind == ROBOT_STATE and (found := calibration_in(message)) is not None:
                        return found
    except OSError:
        return None
    return None


def calibration_in(message: bytes) -> MeasuredChain | None:
    """The kinematics info in the parts of a robot state message, after its head; None if there is none."""
    while len(message) >= PART.size:
        size, kind = PART.unpack_from(message)
        if size < PART.size or size > len(message):
            return None
        if kind == KINEMATICS and size >= PART.size + INFO.size:
            values = INFO.unpack_from(message, PART.size)[6:30]
            if not all(map(math.isfinite, values)):
                return None
            theta, a, d, alpha = (tuple(values[i : i + 6]) for i in range(0, 24, 6))
            return MeasuredChain(theta, a, d, alpha)
        message = message[size:]
    return None


def check_model(found: MeasuredChain, robot_model: RobotModel, model: str) -> None:
    """Raises DeviceRefused for a robot that is none of this model; model: what the cell calls it."""
    bare, home = with_tool(robot_model, Tool((0.0, 0.0, 0.0))).chain, robot_model.home[None, :]
    at = kinematics.positions(bare, home)[:, 0]
    far = float(np.linalg.norm(found.flange(home)[0][0] - at))
    if far > OTHER_M:
        raise DeviceRefused(
            f"the robot's kinematics have its flange {far:.3f} m from where a {robot_model.name}'s is: "
            f'is it one? The cell says model = "{model}"'
        )
