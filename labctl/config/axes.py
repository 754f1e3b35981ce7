"""What files say of axes: their limits in a cell, and which of them an action of a policy moves.

May not: open files, or know a driver: what a robot has is declared by its driver's options.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.axes import UNITS, Axis, AxisKind
from labctl.config.toml_text import Document, Location, Table, suggestion
from labctl.config.values import Positive, Text

DEVICE_AXES = ("x", "y", "z", "rx", "ry", "rz")  # of a device in a hand


class AxisTable(Table):
    """[[robot.axis]]: limits of an axis that velocity_rad_s does not speak of, in its own unit: a rail, a vacuum, the
    axes of a hand, a base's speeds. An axis of kind prismatic or twist is the arm's, any other its hand's. One of kind
    twist is a speed: velocity is the most of it either way, acceleration how much of it may come or go in a second.
    """

    name: Text
    kind: AxisKind
    unit: Text
    velocity: Positive
    acceleration: Positive | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def hand(self) -> bool:
        """Whether it is one of the hand's."""
        return self.kind not in ("prismatic", "twist")

    def narrowed(self, axis: Axis) -> Axis:
        """The robot's axis with the limits of the cell."""
        given = {"lower": self.lower, "upper": self.upper, "acceleration": self.acceleration}
        limits = {name: getattr(axis, name) if value is None else value for name, value in given.items()}
        return Axis(axis.name, axis.kind, axis.unit, velocity=self.velocity, hand=axis.hand, **limits)


class TeleopAxis(Table):
    """[[teleop.axis]]: how a person's device leads an axis that is neither a joint nor an opening. closed, open: where
    an axis of the hand is when the device closes and opens. by, speed: which axis of the device drives a rail or a
    base (- turns it round), and how fast at full deflection. All in the axis's unit.
    """

    name: Text
    closed: float | None = None
    open: float | None = None
    by: Text | None = None
    speed: Positive | None = None


class NamedAxis(Table):
    """[[action.axis]] of a policy card: one number of an action, in the unit of the axis that it moves."""

    name: Text
    unit: Text


def check_axes(document: Document, key: str, axes: Sequence[AxisTable]) -> None:
    """Refuse, at its line, what one [[robot.axis]] alone can break; key: of the robot's table. Raises InputError."""
    for index, axis in enumerate(axes):
        at = (key, "axis", index)
        if axis.unit not in UNITS[axis.kind]:
            allowed = " or ".join(UNITS[axis.kind])
            text = f"unit of axis {axis.name!r} is {axis.unit!r}; an axis of kind {axis.kind} is in {allowed}"
            raise document.refusal((*at, "unit"), text)
        if axis.kind == "twist":
            _check_speed(document, at, axis)
        if axis.lower is not None and axis.upper is not None and axis.lower >= axis.upper:
            text = f"lower {axis.lower:g} is not below upper {axis.upper:g}"
            raise document.refusal((*at, "upper"), f"axis {axis.name!r}: {text}")


def _check_speed(document: Document, at: Location, axis: AxisTable) -> None:
    if axis.acceleration is None:
        text = f"axis {axis.name!r} of kind twist has no acceleration; say how much of its speed may come or go"
        raise document.refusal((*at, "kind"), f"{text} in a second, {axis.unit} per s: a base comes to rest by it too")
    for key, value in (("lower", axis.lower), ("upper", axis.upper)):
        if value is not None:
            text = f"axis {axis.name!r} is a speed and has no ends; velocity limits it either way"
            raise document.refusal((*at, key), f"{text}, take {key} out")


def check_declared(
    document: Document, key: str, axes: Sequence[AxisTable], joints: int, driver: str, own: Sequence[Axis]
) -> None:
    """Refuse, at its line, limits of axes that the robot's driver does not declare, or that are wider than it has
    them. key: "robot" or "second_robot"; joints: how many velocity_rad_s speaks of; own: all axes of the robot. Raises
    InputError.
    """
    if not own:
        text = f"{driver} has joints and one opening, and no axes to limit otherwise; take [[robot.axis]] out"
        raise document.refusal((key, "axis"), text)
    turning = [axis for axis in own if axis.kind == "revolute" and not axis.hand]
    others = {axis.name: axis for axis in own if axis not in turning}
    if joints != len(turning):
        text = f"velocity_rad_s has {joints} values; {driver} has {len(turning)} joints that turn"
        raise document.refusal((key, "limits", "velocity_rad_s"), text)
    for index, axis in enumerate(axes):
        at: Location = (key, "axis", index)
        if axis.name not in others:
            there = ", ".join(f"{other.name} [{other.unit}]" for other in others.values()) or "no others"
            text = (
                f"{driver} has no axis {axis.name!r}{suggestion(axis.name, list(others))}; beside its joints: {there}"
            )
            raise document.refusal((*at, "name"), text)
        found = others[axis.name]
        if (axis.kind, axis.unit) != (found.kind, found.unit):
            text = f"axis {axis.name!r} of {driver} is {found.kind} in {found.unit}, found {axis.kind} in {axis.unit}"
            raise document.refusal((*at, "unit" if axis.kind == found.kind else "kind"), text)
        for limit, value, low, high in (
            ("velocity", axis.velocity, 0.0, found.velocity),
            ("acceleration", axis.acceleration, 0.0, found.acceleration),
            ("lower", axis.lower, found.lower, found.upper),
            ("upper", axis.upper, found.lower, found.upper),
        ):
            if value is not None and not low <= value <= high:
                text = f"{limit} of axis {axis.name!r} is {value:g}; {driver} allows {low:g} to {high:g} {found.unit}"
                raise document.refusal((*at, limit), text)
    missing = [name for name in others if name not in [axis.name for axis in axes]]
    if missing:
        text = f"no limits of axis {missing[0]!r} of {driver}; add a [[robot.axis]] with its kind, unit and velocity"
        raise document.refusal((key, "axis"), text)


def check_driven(
    document: Document,
    key: str,
    given: Sequence[TeleopAxis],
    limits: Sequence[AxisTable],
    driver: str,
    own: Sequence[Axis],
) -> None:
    """Refuse, at its line, a [[teleop.axis]] that does not go with the robot's axes, and a hand's axis without one.
    key: of the device's table; limits: [[robot.axis]]; own: all axes of the robot, none where it has joints and one
    opening. Raises InputError.
    """
    if given and not own:
        text = f"{driver} has joints and one opening, which closed_m and open_m are; take [[teleop.axis]] out"
        raise document.refusal((key, "axis"), text)
    led = {axis.name: axis for axis in own if axis.hand or axis.kind != "revolute"}
    most = {axis.name: axis.narrowed(led[axis.name]) for axis in limits if axis.name in led}
    for index, axis in enumerate(given):
        at: Location = (key, "axis", index)
        if axis.name not in led:
            text = f"{driver} has no axis {axis.name!r} to lead{suggestion(axis.name, list(led))}; it has"
            raise document.refusal((*at, "name"), f"{text}: {', '.join(led) or 'none beside its joints'}")
        found = most.get(axis.name, led[axis.name])
        needs, others = (("closed", "open"), ("by", "speed")) if found.hand else (("by", "speed"), ("closed", "open"))
        of = "hand's: say closed and open" if found.hand else "arm's: say by and speed"
        for other in others:
            if getattr(axis, other) is not None:
                raise document.refusal((*at, other), f"axis {axis.name!r} is the {of}, and take {other} out")
        for need in needs:
            if getattr(axis, need) is None:
                raise document.refusal((*at, "name"), f"axis {axis.name!r} has no {need}; it is the {of}")
        _check_leading(document, at, axis, found)
    named = [axis.name for axis in given]
    missing = [axis.name for axis in own if axis.hand and axis.name not in named]
    if missing:
        text = f"nothing says how the device leads {missing[0]!r} of {driver}"
        raise document.refusal((key,), f"{text}; add a [[teleop.axis]] with its name, closed and open")


def _check_leading(document: Document, at: Location, axis: TeleopAxis, found: Axis) -> None:
    if axis.closed is not None and axis.open is not None:
        for key, value in (("closed", axis.closed), ("open", axis.open)):
            if not found.lower <= value <= found.upper:
                text = f"{key} of axis {axis.name!r} is {value:g}; it goes from {found.lower:g} to {found.upper:g}"
                raise document.refusal((*at, key), f"{text} {found.unit}")
        if axis.closed == axis.open:
            text = f"closed and open of axis {axis.name!r} are both {axis.open:g}; the hand would not move it"
            raise document.refusal((*at, "open"), f"{text}; give two places")
    if axis.by is not None and axis.by.removeprefix("-").removeprefix("+") not in DEVICE_AXES:
        text = f"unknown axis {axis.by!r} of the device; axes are {', '.join(DEVICE_AXES)}, with - to turn one round"
        raise document.refusal((*at, "by"), text)
    if axis.speed is not None and axis.speed > found.velocity:
        unit = found.unit if found.kind == "twist" else f"{found.unit}/s"
        text = f"speed of axis {axis.name!r} is {axis.speed:g}; the cell allows {found.velocity:g} {unit}"
        raise document.refusal((*at, "speed"), f"{text}: say so much or less")


def check_named(document: Document, space: str, named: Sequence[NamedAxis], *, scaled: bool) -> None:
    """Refuse, at its line, a card that names axes for another space, or none for this one. Raises InputError."""
    if (space == "axes") != bool(named):
        how = "name each of them in an [[action.axis]]" if space == "axes" else f"drop [[action.axis]] for {space}"
        raise document.refusal(("action", "axis" if named else "space"), f"{len(named)} axes are named; {how}")
    if space == "axes" and scaled:
        raise document.refusal(("action",), "an action of named axes is in their own units; drop clip and scale")


def action_problem(named: Sequence[NamedAxis], own: Sequence[Axis], driver: str) -> str:
    """Why an action of these axes cannot move a robot, in one line; "" where it can: every axis, in its unit, in the
    robot's order.
    """
    robot = {axis.name: axis for axis in own}
    for axis in named:
        if axis.name not in robot:
            return f"{driver} has no axis {axis.name!r}{suggestion(axis.name, list(robot))}; it has: {', '.join(robot)}"
        if axis.unit != robot[axis.name].unit:
            unit = robot[axis.name].unit
            return f"axis {axis.name!r} of {driver} is in {unit}, the policy card has it in {axis.unit}"
    names = [axis.name for axis in named]
    return "" if names == list(robot) else f"the action's axes are {', '.join(names)}; name them as {', '.join(robot)}"
