"""What a cell's file says of its robot, of a second one beside it, and of the device that leads either.

May not: open files, or know a driver. Poses are in the base frame of the robot that they are of; where two robots are
compared, in the first one's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field, JsonValue, StringConstraints

from labctl.config.axes import AxisTable, TeleopAxis
from labctl.config.toml_text import Document, Location, Table
from labctl.config.values import Lax, Point, Positive, Text, Texts, Vector

RobotName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
RESERVED = ("arm", "camera", "policy", "robot", "sensor", "stream", "tracker")  # what streams begin with already
FEWEST_PERIODS = 2  # of setpoints that a lease and a target last: one may be on its way
RATES_HZ = (0.1, 10_000.0)  # of a robot or a camera: beyond is a slip, and nothing is heard of it or memory is full
KEYFRAME_S = 3600.0  # between two of them, at most
LONGEST_NAME = 100  # characters of what files and folders are named after
FURTHEST_M = 10.0  # that an arm reaches, or another one's base is from it


class Limits(Table):
    """[robot.limits]: per joint; the box the tool centre point stays inside, robot base frame; its highest speed."""

    velocity_rad_s: Vector
    acceleration_rad_s2: Vector
    box_min_m: Point
    box_max_m: Point
    tool_speed_m_s: Annotated[float, Field(gt=0, le=2)] | None = None


class RobotTable(Table):
    """[robot]. `options` are the driver's."""

    driver: Text
    state_hz: Positive
    control_hz: Positive
    observe_hz: Positive
    limits: Limits
    axis: Annotated[tuple[AxisTable, ...], Lax] = ()
    options: dict[str, JsonValue] = Field(default_factory=dict)


class SecondRobot(RobotTable):
    """[second_robot]: a robot beside that of [robot], with everything that [robot] has. name: before its axes and its
    streams; first_name: before the first one's axes. base_m, base_yaw_rad: where its base stands, in the first's base
    frame. goes_home: which of the two does so before the other, or both at once. scene: "shared", the fixture's totes
    are those before the first robot; "own", as many stand before this one, in its base frame. keep_apart_m: how near
    the tools may come to each other.
    """

    name: RobotName
    first_name: RobotName = "left"
    base_m: Point
    base_yaw_rad: Annotated[float, Field(ge=-math.pi, le=math.pi)] = 0.0
    goes_home: Literal["first", "second", "together"] = "first"
    scene: Literal["shared", "own"] = "shared"
    keep_apart_m: Annotated[float, Field(gt=0, le=2)] | None = None

    def in_first(self, points_m: np.ndarray) -> np.ndarray:
        """Points (..., 3) of this robot's base frame in the first one's, m."""
        c, s = math.cos(self.base_yaw_rad), math.sin(self.base_yaw_rad)
        return points_m @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + np.array(self.base_m)


class Caps(Table):
    """The most a hand may ask for, and how it is let in: m/s, rad/s, s, rad; deadband as a share of full deflection.
    align_rad: how near a leader must stand before go.
    """

    linear_m_s: Annotated[float, Field(gt=0, le=1)] = 0.15
    angular_rad_s: Annotated[float, Field(gt=0, le=3)] = 0.6
    joint_rad_s: Annotated[float, Field(gt=0, le=3)] = 0.8
    deadband: Annotated[float, Field(ge=0, lt=1)] = 0.05
    stale_s: Annotated[float, Field(gt=0, le=1)] = 0.1
    ramp_s: Annotated[float, Field(ge=0, le=5)] = 0.4
    align_rad: Annotated[float, Field(gt=0, le=3)] = 0.6


class TeleopTable(Caps):
    """[teleop]: the device a person drives this cell with, as `labctl.drivers.teleop_<device>` or as
    "package.module:function" of one's own, with its caps. axes: which device axis drives each base axis (x y z rx ry
    rz, - turns one round, 0 is none). `options` are the device's.
    """

    device: Text
    axes: Texts = ("x", "y", "z", "rx", "ry", "rz")
    closed_m: Annotated[float, Field(ge=0)] = 0.0
    open_m: Positive = 0.08
    axis: Annotated[tuple[TeleopAxis, ...], Lax] = ()
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def driver(self) -> str:
        """The name that the device's driver is found by."""
        return self.device if "." in self.device or ":" in self.device else f"teleop_{self.device}"


def one_robot(table: JsonValue) -> JsonValue:
    """Refuses [[robot]]. Raises ValueError."""
    if isinstance(table, list):
        text = "say [robot] for the first and [second_robot] for the second"
        raise ValueError(f"robots are no list, found {len(table)}: {text}; a cell has no more than two")
    return table


def check_limits(document: Document, key: str, robot: RobotTable) -> None:
    """Refuse, at its line, what the limits of the robot under `key` alone can break. Raises InputError."""
    limits = robot.limits
    joints = len(limits.velocity_rad_s)
    if not joints:
        raise document.refusal((key, "limits", "velocity_rad_s"), "velocity_rad_s is empty; give one value per joint")
    if len(limits.acceleration_rad_s2) != joints:
        counts = f"{len(limits.acceleration_rad_s2)} values, velocity_rad_s {joints}"
        message = f"acceleration_rad_s2 has {counts}; give one value per joint in each"
        raise document.refusal((key, "limits", "acceleration_rad_s2"), message)
    for axis, low, high in zip("xyz", limits.box_min_m, limits.box_max_m, strict=True):
        if low >= high:
            message = f"the box is empty along {axis}: box_min_m {low:g} is not below box_max_m {high:g}"
            raise document.refusal((key, "limits", "box_max_m"), message)


def check_metres(document: Document, robot: RobotTable, second: SecondRobot | None) -> None:
    """Refuse, at its line, a corner of a box or a second base further away than any arm reaches, as one in mm is: the
    box holds the tool back nowhere, and boxes that far apart never overlap. Raises InputError.
    """
    corners = ("box_min_m", "box_max_m")
    far: list[tuple[Location, Sequence[float]]] = []
    for key, one in (("robot", robot), ("second_robot", second)):
        far += [((key, "limits", name), getattr(one.limits, name)) for name in corners if one is not None]
    far += [(("second_robot", "base_m"), second.base_m)] if second is not None else []
    for at, point in far:
        if max(map(abs, point)) > FURTHEST_M:
            text = f"{at[-1]} is {list(point)}, and no arm reaches {FURTHEST_M:g} m"
            raise document.refusal(at, f"{text}; give it in m")


class Coded(Protocol):
    """How pictures are encoded: [video], or what a camera says otherwise."""

    @property
    def keyframe_s(self) -> float | None: ...


class Named(Protocol):
    """A table whose files are named after it."""

    @property
    def name(self) -> str: ...


class Filming(Named, Protocol):
    """A camera's table."""

    @property
    def rate_hz(self) -> float: ...
    @property
    def video(self) -> Coded: ...


def check_sizes(
    document: Document,
    robots: Sequence[RobotTable],
    cameras: Sequence[Filming],
    sensors: Sequence[Named],
    video: Coded,
) -> None:
    """Refuse, at its line, a rate, a time between keyframes or a name that nothing can be run with. Raises
    InputError.
    """
    rates: dict[Location, float | None] = {("camera", n, "rate_hz"): one.rate_hz for n, one in enumerate(cameras)}
    for key, robot in zip(("robot", "second_robot"), robots, strict=False):
        rates |= {(key, rate): getattr(robot, rate) for rate in ("state_hz", "control_hz", "observe_hz")}
    coded: dict[Location, float | None] = {("video", "keyframe_s"): video.keyframe_s}
    coded |= {("camera", n, "video", "keyframe_s"): one.video.keyframe_s for n, one in enumerate(cameras)}
    for given, (low, high) in ((rates, RATES_HZ), (coded, (0.0, KEYFRAME_S))):
        for at, value in given.items():
            if value is not None and not low <= value <= high:
                raise document.refusal(at, f"{at[-1]} is {value:g}; allowed is {low:g} to {high:g}")
    for table, named in (("camera", cameras), ("sensor", sensors)):
        for index, one in enumerate(named):
            check_length(document, (table, index, "name"), one.name)


def check_length(document: Document, at: Location, name: str) -> None:
    """Refuse, at its line, a name too long for a file. Raises InputError."""
    if len(name) > LONGEST_NAME:
        text = f"{at[-1]} has {len(name)} characters, and files are named after it; give it {LONGEST_NAME} at most"
        raise document.refusal(at, text)


def check_lease(document: Document, times_s: Mapping[str, float], control_hz: float) -> None:
    """Refuse, at its line of [lease], a time that is over before a second setpoint can come: the robot would never
    move. times_s: by key. Raises InputError.
    """
    for key, given_s in times_s.items():
        if round(given_s * control_hz, 4) < FEWEST_PERIODS:  # what it says to give is rounded
            text = f"{key} is {given_s:g}, and setpoints come each {1 / control_hz:g} s (control_hz = {control_hz:g})"
            raise document.refusal(("lease", key), f"{text}: give {FEWEST_PERIODS / control_hz:g} s or more")


def check_second(document: Document, robot: RobotTable, second: SecondRobot) -> None:
    """Refuse, at its line, a second robot that cannot be led with the first. Raises InputError."""
    at = "second_robot"
    for key, name in (("name", second.name), ("first_name", second.first_name)):
        if name in RESERVED:
            text = f"{key} {name!r} is what other streams begin with; take one like left, right, upper, lower"
            raise document.refusal((at, key), text)
    if second.name == second.first_name:
        text = f"both robots would be named {second.name!r}; give one of them another name or first_name"
        raise document.refusal((at, "name"), text)
    if second.control_hz != robot.control_hz:
        text = f"control_hz is {second.control_hz:g}, the first robot's {robot.control_hz:g}"
        raise document.refusal((at, "control_hz"), f"{text}; both are led by one row of setpoints: say the same")
    for key, one in (("robot", robot), (at, second)):
        for index, axis in enumerate(one.axis):
            if axis.kind == "twist":
                text = f"axis {axis.name!r} is of kind twist, and in a cell of two robots no base drives"
                raise document.refusal((key, "axis", index, "kind"), f"{text}: where both stand is fixed by base_m")
    gap = boxes_apart(robot, second)
    if gap < 0 and second.keep_apart_m is None:
        text = f"the boxes of {second.first_name} and {second.name} overlap by {-gap:.2f} m, and nothing parts them"
        raise document.refusal((at, "base_m"), f"{text}; make them smaller, or say keep_apart_m")


def boxes_apart(robot: RobotTable, second: SecondRobot) -> float:
    """How far apart the two boxes are along the axis that parts them best, m; negative where they overlap. Of a base
    that is turned the box around its turned box counts.
    """
    low, high = np.array(second.limits.box_min_m), np.array(second.limits.box_max_m)
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    seen = second.in_first(corners)
    first_low, first_high = np.array(robot.limits.box_min_m), np.array(robot.limits.box_max_m)
    return float(np.maximum(seen.min(axis=0) - first_high, first_low - seen.max(axis=0)).max())
