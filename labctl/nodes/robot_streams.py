"""What the robot's node records beside what the robot measures: its setpoints, and its leases.

May not: read a robot, or name an arm of the experiment.
"""

from __future__ import annotations

from labctl.axes import axes_of
from labctl.core.rollout import ACTION, LEASES
from labctl.devices import Robot
from labctl.streams import StreamSpec

# Each renewal: how long after the one before, and what was left of the lease. A policy that loads the machine shows.
LEASE_SPEC = StreamSpec(LEASES, ("since_last_s", "left_s"), "s", 10.0, arm_dependent=True)


def action_spec(robot: Robot) -> StreamSpec:
    """The stream of setpoints: each joint and the gripper as requested, limited and sent, and how late it was sent."""
    axes = axes_of(robot)
    parts = [axis.name for axis in axes]
    columns = tuple(f"{stage}.{part}" for stage in ("requested", "limited", "sent") for part in parts)
    columns = (*columns, "delay_s")
    # Not measured at the robot but asked of it: all of its shape is the policy's.
    plain = getattr(robot, "axes", None) is None
    unit = "rad, m, s" if plain else " ".join([*3 * [axis.unit for axis in axes], "s"])
    return StreamSpec(ACTION, columns, unit, robot.control_hz, private_columns=columns)
