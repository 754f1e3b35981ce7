"""Driver "support.robots.seeing_hand:build": labctl's own teleoperation, with a person at its device who sees what a
policy sees and moves sticks and buttons alone; in simulated time, in which nobody waits for a thread.

The gate, the grip, the caps and the axes are those of the cell's [teleop], whose device is `stick` here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from labctl.axes import Axis, hand_of, twist_of
from labctl.clock import ManualClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.config.options import NoOptions
from labctl.devices import ActionChunk, Observation, declared_axes, load
from labctl.drivers.common.simulated_axes import OPEN_M, to_openings
from labctl.drivers.sim.legs import CLEAR_M
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Reading, axis_map
from labctl.drivers.teleop.other_axes import other_axes
from support.robots.item_movers import BAND, ROUGH_M, Arrays, Held, Leg, MoveTo, Person
from support.robots.virtual_hand import SHUT

ANSWER_S = 0.002
FAR_M, BESIDE_M = 0.10, 0.02  # the rail is led where the tool is to go more than so far beside its middle, and to there
STOP, STOP_NEAR_M = (0.08, 0.06), 0.01  # where a base is driven to, m from where it was staged

SURE_M = 0.01  # at each of ten looks a second: a cup that draws holds nothing yet, and a person waits until it does


class Stick:
    """A device of six axes, a clutch and a button, which obeys at once."""

    leader, quiet = False, True

    def __init__(self) -> None:
        self.axes, self.grip, self.engaged = np.zeros(6), 1.0, False

    def open(self) -> None: ...
    def poll(self) -> Reading | None: ...
    def close(self) -> None: ...

    def press(self, *down: int, up: tuple[int, ...] = ()) -> bool:
        """The clutch is held all the time; a press of SHUT closes, its release opens."""
        self.engaged = True
        if up:
            self.grip = 0.0 if SHUT in down else 1.0
        return True

    def drive(self, axes: Sequence[float]) -> bool:
        self.axes = np.array(axes, float)
        return True


class Onlooker(Person):
    """As `Person`, of a robot of any axes: it knows by sight how far the hand is open, and pushes the rail first."""

    def __init__(self, hand: Held, cell: Cell, axes: tuple[Axis, ...], *, sure_m: float = SURE_M) -> None:
        assert cell.teleop is not None
        super().__init__(hand, linear_m_s=cell.teleop.linear_m_s, angular_rad_s=cell.teleop.angular_rad_s)
        self._fingers, self._sure_m = hand_of(axes), sure_m
        self._on_a_rail, self._on_a_base = axes[0].kind == "prismatic", bool(twist_of(axes))
        self._arrived = False
        self._sliding, self._seen_m = False, OPEN_M

    def __call__(self, seen: Arrays) -> None:
        hand = np.ravel(seen["gripper"])
        plain = self._fingers[0].kind == "opening"
        opening = float(hand[0]) if plain else float(to_openings(hand[None, :], self._fingers)[0])
        self._seen_m += float(np.clip(opening - self._seen_m, -self._sure_m, self._sure_m))
        super().__call__({**seen, "gripper": np.array([self._seen_m])})
        if self._on_a_rail and self._way:
            self._slide(self._way[0][0][1] - float(seen["q"][0]))
        if self._on_a_base and self._way:
            self._roll(np.asarray(seen["odometry"]))

    def _pick(self, here: MoveTo, items: np.ndarray) -> list[Leg]:
        """Over the totes' walls first."""
        legs = super()._pick(here, items)
        if not legs:
            return legs
        x, y, _, yaw = legs[0][0]
        return [((*here[:2], CLEAR_M, here[3]), False, ROUGH_M), ((x, y, CLEAR_M, yaw), False, ROUGH_M), *legs]

    def _slide(self, beside_m: float) -> None:
        """Push the rail towards where the tool is to go, and nothing else meanwhile."""
        self._sliding = abs(beside_m) > (BESIDE_M if self._sliding else FAR_M)
        if self._sliding:
            self._hand.drive((0.0, 0.0, 0.0, 0.0, float(np.clip(4 * beside_m, -1, 1)), 0.0))

    def _roll(self, place: np.ndarray) -> None:
        """Drive the base to STOP before anything else, once in an episode, and nothing else meanwhile."""
        way = np.array(STOP) - place[:2]
        self._arrived = np.abs(way).max() < STOP_NEAR_M or (self._arrived and np.hypot(*place[:2]) > 2 * STOP_NEAR_M)
        if not self._arrived:
            x, y = np.clip(6 * way, -1, 1) + np.sign(way) * BAND
            self._hand.drive((0.0, 0.0, 0.0, float(-y), float(x), 0.0))


class SeeingTeleop(Teleop):
    """A Teleop whose person looks before each answer."""

    person: Onlooker
    time: ManualClock

    def warm(self, observation: Observation) -> None:
        self._look(observation)
        super().warm(observation)

    def infer(self, observation: Observation) -> ActionChunk:
        self._look(observation)
        return replace(super().infer(observation), delay_s=ANSWER_S)

    def _look(self, observation: Observation) -> None:
        self.time.sleep_until(max(observation.t_ns, self.time.now_ns()))
        self.person(dict(observation.arrays))


def stick(options: Mapping[str, Any]) -> Stick:
    """The device of the cell."""
    return Stick()


def build(options: NoOptions, *, cell: Cell, fixture: Fixture) -> SeeingTeleop:
    """See the module."""
    table, axes = cell.teleop, declared_axes(cell.robot.driver, cell.robot.options)
    assert table is not None and axes is not None
    device, time = load(table.driver, table.options), ManualClock(0)
    made = SeeingTeleop(
        device,
        "stick",
        table,
        axes=axis_map(table.axes),
        opening_m=(table.closed_m, table.open_m),
        others=other_axes(table, axes),
        clock=time,
    )
    made.time, made.person = time, Onlooker(device, cell, tuple(axes))
    reading = lambda: Reading(time.now_ns(), axes=device.axes, engaged=device.engaged, grip=device.grip)  # noqa: E731
    made._poller = SimpleNamespace(newest=reading, start=lambda: None, stop=lambda: None)  # type: ignore[assignment]
    return made
