"""What a robot can move: axes with a name, a kind, a unit and limits, composed of the devices that it is made of.

May not: know a driver, a cell file, or a way from poses to axes.

A robot's axes are its arm's, in the order of `Setpoints.q`, then its hand's, in the order of `Setpoints.gripper`. One
whose driver declares none has joints in rad and one opening in m, named "gripper", as every robot had before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

AxisKind = Literal["revolute", "prismatic", "opening", "vacuum", "twist"]
# What each kind is measured in. vacuum: the share of the full suction; twist: a speed of a base that drives.
UNITS: Mapping[AxisKind, tuple[str, ...]] = {
    "revolute": ("rad",),
    "prismatic": ("m",),
    "opening": ("m",),
    "vacuum": ("1",),
    "twist": ("m/s", "rad/s"),
}
GRIPPER = "gripper"  # the one axis of a hand that declares none


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. lower, upper: where it may be, in `unit`; velocity, acceleration: at most, per s and s2; infinite where
    nobody says. hand: it is one of the hand's. One of kind twist is a speed itself, asked for and measured in `unit`:
    velocity is the most of it either way, acceleration how much of it may come or go in a second, and it has no ends.
    """

    name: str
    kind: AxisKind
    unit: str
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    acceleration: float = math.inf
    hand: bool = False


OPENING = (Axis(GRIPPER, "opening", "m", hand=True),)  # the hand of a robot that declares none


class HasJoints(Protocol):
    """What of a robot tells its axes; it may have `axes` besides."""

    joint_names: tuple[str, ...]


def axes_of(robot: HasJoints) -> tuple[Axis, ...]:
    """A robot's axes, the arm's first: those that its driver declares, else its joints and one opening."""
    declared: tuple[Axis, ...] | None = getattr(robot, "axes", None)
    if declared is not None:
        return declared
    return (*(Axis(name, "revolute", "rad") for name in robot.joint_names), *OPENING)


def hand_of(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The hand's axes."""
    return tuple(axis for axis in axes if axis.hand)


def twist_of(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Which of the axes that are led (the columns of `Setpoints.q`) are speeds of a base."""
    return tuple(i for i, axis in enumerate(axis for axis in axes if not axis.hand) if axis.kind == "twist")


def told_in(unit: str) -> bool:
    """Whether an axis in this unit may be shown to who is blind: in a base's speeds the rate of a policy's answers
    stands out.
    """
    return unit not in UNITS["twist"]


def composed(*devices: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes of a robot made of several devices: those of its arms first, then those of its hands. Raises ValueError
    for a name that two of them have; `prefixed` tells them apart.
    """
    every = [axis for axes in devices for axis in axes]
    names = [axis.name for axis in every]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two devices have an axis {twice[0]!r}; give one of them a prefix")
    return (*(axis for axis in every if not axis.hand), *(axis for axis in every if axis.hand))


def prefixed(prefix: str, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The same axes by longer names, as those of a second arm: "left.joint1"."""
    return tuple(replace(axis, name=f"{prefix}.{axis.name}") for axis in axes)
