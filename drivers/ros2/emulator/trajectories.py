"""What joint_trajectory_controller takes for a trajectory, and what it refuses without a word: its
`validate_trajectory_msg` (ros2_controllers), with `allow_partial_joints_goal` and
`allow_nonzero_velocity_at_trajectory_end` off.

May not: move a joint, or hear anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.clock import SECOND
from labctl.drivers.ros2.messages import JointTrajectory, TrajectoryPoint

STILL_RAD_S = 1e-9  # a speed at the end


def taken(message: JointTrajectory, names: Sequence[str], wall_ns: int) -> list[tuple[float, np.ndarray]] | None:
    """When each point is to be reached, s from now, and where (n,), in the order of the controller's `names`; None for
    what it refuses. wall_ns: the time by its clock, which stamps are of.
    """
    points = message.points
    if sorted(message.joint_names) != sorted(names) or not points:
        return None
    if not all(numbers(point.positions, len(names)) for point in points):
        return None
    after_s = np.array([point.time_from_start.sec + point.time_from_start.nanosec / SECOND for point in points])
    if (np.diff(after_s) <= 0).any() or not _ends_at_rest(points[-1], len(names)):
        return None
    if (begins_ns := message.header.stamp.ns) and begins_ns + after_s[-1] * SECOND < wall_ns:
        return None
    begins_s = (begins_ns - wall_ns) / SECOND if begins_ns else 0.0
    order = [list(message.joint_names).index(name) for name in names]
    return [
        (begins_s + after, np.array(point.positions)[order])
        for after, point in zip(after_s.tolist(), points, strict=True)
    ]


def numbers(given: Sequence[float], joints: int) -> bool:
    """A number for each joint?"""
    return len(given) == joints and bool(np.isfinite(given).all())


def _ends_at_rest(point: TrajectoryPoint, joints: int) -> bool:
    speeds = point.velocities
    return not len(speeds) or (numbers(speeds, joints) and float(np.abs(speeds).max()) <= STILL_RAD_S)
