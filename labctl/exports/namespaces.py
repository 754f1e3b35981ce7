"""Under which names a format of ROS or Foxglove has the robot of a recording, or each of two.

May not: read a sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.plain import Json
from labctl.streams import STATE, StreamSpec, placed_axes, robot_states

JOINT_PARTS = {"q": "position", "dq": "velocity", "tau": "effort"}


@dataclass(frozen=True, slots=True)
class Namespace:
    """topic: before the names of its topics, "" where there is one robot; base, tool: its frames; gripper: the column
    of its opening; own: what its columns' names begin with, "" where there is one robot; joints: in order, without the
    speeds of a base, which are no positions.
    """

    topic: str
    base: str
    tool: str
    gripper: str
    own: str
    joints: tuple[str, ...]

    def joint(self, name: str) -> str:
        """A joint's name without its robot's."""
        return name.removeprefix(self.own)

    def columns(self) -> set[str]:
        """Those of its joints and gripper."""
        return {f"{part}.{joint}" for part in JOINT_PARTS for joint in self.joints} | {self.gripper}


def namespaces(specs: Sequence[StreamSpec]) -> Mapping[str, Namespace]:
    """Of each stream that is a robot's states."""
    by_name, placed = {spec.name: spec.columns for spec in specs}, {spec.name: placed_axes(spec) for spec in specs}
    states = robot_states(by_name)
    found: dict[str, Namespace] = {}
    for stream in states:
        joints = placed[stream]
        if len(states) < 2:
            return {stream: Namespace("", "base", "tcp", "gripper", "", joints)}
        name = joints[0].split(".")[0] if stream == STATE else stream.partition("/")[0]
        found[stream] = Namespace(f"/{name}", f"{name}_base", f"{name}_tcp", f"{name}.gripper", f"{name}.", joints)
    return found


def base_of(about: Mapping[str, Json]) -> tuple[str, str, list[float]] | None:
    """Of a recording of two robots: the first one's base frame, the second's, and the pose of that in the first's (7,):
    x y z in m, qx qy qz qw.
    """
    second = about.get("second_robot")
    if not isinstance(second, Mapping):
        return None
    at, yaw = second["base_m"], second["base_yaw_rad"]
    if not isinstance(at, Sequence) or not isinstance(yaw, float):
        return None
    place = [float(value) for value in at if isinstance(value, int | float)]
    pose = [*place, 0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]
    return f"{second['first_name']}_base", f"{second['name']}_base", pose
