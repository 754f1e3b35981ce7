"""Under which names a format of ROS or Foxglove has the robot of a recording, or each of two.

May not: read a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.plain import Json
from labctl.streams import STATE, StreamSpec, robot_states

PARTS = ("q", "dq", "tau")


@dataclass(frozen=True, slots=True)
class Namespace:
    """topic: before the names of its topics, "" where there is one robot; base, tool: its frames; gripper: the column
    of its opening; names: what its columns are called within the namespace.
    """

    stream: str
    topic: str
    base: str
    tool: str
    gripper: str
    own: str

    def joint(self, name: str) -> str:
        """A joint's name without its robot's."""
        return name.removeprefix(self.own)

    def used(self, joints: Sequence[str]) -> set[str]:
        """The columns that are joints and gripper."""
        return {f"{part}.{joint}" for part in PARTS for joint in joints} | {self.gripper}


def namespaces(specs: Sequence[StreamSpec]) -> Mapping[str, Namespace]:
    """Of each stream that is a robot's states."""
    by_name = {spec.name: spec.columns for spec in specs}
    states = robot_states(by_name)
    if len(states) < 2:
        return {name: Namespace(name, "", "base", "tcp", "gripper", "") for name in states}
    found: dict[str, Namespace] = {}
    for stream in states:
        first = next(column for column in by_name[stream] if column.startswith("q."))
        name = first.split(".")[1] if stream == STATE else stream.partition("/")[0]
        found[stream] = Namespace(stream, f"/{name}", f"{name}_base", f"{name}_tcp", f"{name}.gripper", f"{name}.")
    return found


def base_of(about: Mapping[str, Json]) -> tuple[str, str, Sequence[float], float] | None:
    """Of a recording of two robots: the first one's base frame, the second's, where that is in the first's (m), and how
    it is turned about the vertical, rad.
    """
    second = about.get("second_robot")
    if not isinstance(second, Mapping):
        return None
    at, yaw = second["base_m"], second["base_yaw_rad"]
    if not isinstance(at, Sequence) or not isinstance(yaw, float):
        return None
    place = [float(value) for value in at if isinstance(value, int | float)]
    return f"{second['first_name']}_base", f"{second['name']}_base", place, yaw
