"""Axes of a robot that are neither joints nor one opening, led by a device: a rail, a base, a vacuum, fingers. Pure.

May not: read a device or a clock, or move two things with one deflection: while a rail or a base is pushed the tool
rests.

A hand of several axes goes from `closed` to `open` all at once, as far as the device's own grip is open: nobody has
five fingers' worth of buttons. Until the person takes it over, it stays as it was asked for, axis by axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.axes import Axis, twist_of
from labctl.config.cell_schema import TeleopTable
from labctl.drivers.teleop.gate import AXES
from labctl.drivers.teleop.grip import Grip

NEAR = 0.075  # of the way from closed to open: as near as 6 mm of a gripper's 80


@dataclass(frozen=True)
class OtherAxes:
    """joints: the columns of q that turn. columns, slides (k, 6), speeds (k,): what else of q the device leads, by
    which of its axes, how fast at full deflection, per s. closed, open (h,): the hand's axes as the device has them.
    twist: the columns that are speeds of a base, which nothing but the device's own push asks for.
    """

    joints: np.ndarray
    columns: np.ndarray
    slides: np.ndarray
    speeds: np.ndarray
    closed: np.ndarray
    open: np.ndarray
    twist: np.ndarray


def other_axes(table: TeleopTable, axes: Sequence[Axis]) -> OtherAxes:
    """What [[teleop.axis]] says of a robot's axes, which `config.axes.check_driven` has looked at."""
    led, hand = [axis for axis in axes if not axis.hand], [axis for axis in axes if axis.hand]
    given = {axis.name: axis for axis in table.axis}
    driven = [(i, given[axis.name]) for i, axis in enumerate(led) if axis.name in given]
    slides = np.zeros((len(driven), len(AXES)))
    for row, (_, axis) in enumerate(driven):
        by = str(axis.by)
        slides[row, AXES.index(by.lstrip("+-"))] = -1.0 if by.startswith("-") else 1.0
    return OtherAxes(
        joints=np.array([i for i, axis in enumerate(led) if axis.kind == "revolute"], int),
        columns=np.array([i for i, _ in driven], int),
        slides=slides,
        speeds=np.array([float(axis.speed or 0.0) for _, axis in driven]),
        closed=np.array([float(given[axis.name].closed or 0.0) for axis in hand]),
        open=np.array([float(given[axis.name].open or 0.0) for axis in hand]),
        twist=np.array(twist_of(axes), int),
    )


class _Gripping:
    """What a hand and a gripper have of `Grip`."""

    _grip: Grip

    @property
    def silent(self) -> bool:
        return self._grip.silent

    def hear(self, grip: float | None) -> None:
        """See `Grip.hear`."""
        self._grip.hear(grip)


class HandGrip(_Gripping):
    """`Grip` over the axes of a hand: closed, open, `measured` and what is asked for are (h,), in each axis's unit."""

    def __init__(self, closed: np.ndarray, open_: np.ndarray, *, trigger: bool) -> None:
        self._closed, self._way = closed, open_ - closed
        self._grip = Grip(0.0, 1.0, trigger=trigger, near=NEAR)
        self._share = 0.0
        self._asked: np.ndarray | None = None

    def hold(self, values: np.ndarray) -> None:
        """Somebody else has asked for these; the hand may take over from there."""
        self._asked = np.array(values, float)
        self._share = float(np.clip((self._asked - self._closed) / self._way, 0.0, 1.0).mean())
        self._grip.hold(self._share)

    def opposite(self, measured: np.ndarray) -> float:
        """See `Grip.opposite`."""
        if self._asked is None:
            self.hold(measured)
        return self._grip.opposite(self._share)

    def asks(self, grip: float | None, measured: np.ndarray, now_ns: int, *, engaged: bool) -> np.ndarray:
        """See `Grip.asks`: (h,)."""
        if self._asked is None:
            self.hold(measured)
        share = self._grip.asks(grip, self._share, now_ns, engaged=engaged)
        if self._asked is None or share != self._share:
            self._share, self._asked = share, self._closed + share * self._way
        return self._asked


class OpeningGrip(_Gripping):
    """The same of a gripper with one opening, m: (1,)."""

    def __init__(self, closed_m: float, open_m: float, *, trigger: bool) -> None:
        self._grip = Grip(closed_m, open_m, trigger=trigger)

    def hold(self, values: np.ndarray) -> None:
        """Somebody else has asked for this; the hand may take over from there."""
        self._grip.hold(float(values[0]))

    def opposite(self, measured: np.ndarray) -> float:
        """See `Grip.opposite`."""
        return self._grip.opposite(float(measured[0]))

    def asks(self, grip: float | None, measured: np.ndarray, now_ns: int, *, engaged: bool) -> np.ndarray:
        """See `Grip.asks`."""
        return np.array([self._grip.asks(grip, float(measured[0]), now_ns, engaged=engaged)])
