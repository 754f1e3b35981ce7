"""The body behind the emulators: what it runs into, and how it gets away again."""

from __future__ import annotations

from typing import Any

import numpy as np

from labctl.clock import MILLISECOND
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.plant import SimulatedPlant

CYCLE_S = 0.001


class Moved:
    """A plant whose tool goes straight up and down over the middle of a tote, 1 kHz, 0.1 m/s."""

    def __init__(self, fixture: dict[str, Any]) -> None:
        self.arm = FR3
        self.plant = SimulatedPlant(self.arm, fixture, CYCLE_S, now_ns=0)
        tote = self.plant.world.source
        self.floor = tote.centre[2]
        self.pose = np.array([*tote.centre[:2], self.floor + 0.1, np.pi, 0.0, 0.0])
        self.q = self.arm.inverse(self.pose[None], self.arm.home)[0]
        self._now_ns = 0
        self.plant.q = self.q

    def to(self, height_m: float) -> str:
        """Move the tool to this height over the floor; what was hit on the way, if anything."""
        start, end = self.pose[2], self.floor + height_m
        for z in np.linspace(start, end, max(2, round(abs(end - start) / 0.1 / CYCLE_S))):
            self.pose[2] = z
            self.q = self.arm.inverse(self.pose[None], self.q)[0]
            self._now_ns += MILLISECOND
            self.plant.tick(self.q, self._now_ns)
            if self.plant.contact:
                break
        return self.plant.contact


def test_a_tool_that_stands_in_the_floor_may_leave_it_but_not_go_deeper(given: dict[str, Any]) -> None:
    moved = Moved(given["fixture"])
    assert moved.to(0.01) == ""
    assert moved.to(-0.05) == "the tool hit the floor"
    moved.plant.clear_contact()  # the operator has let it go on
    assert moved.to(0.05) == "", "up and out of it"
    assert moved.to(-0.05) == "the tool hit the floor", "once out, the floor is a floor again"
    moved.plant.clear_contact()
    assert moved.to(-0.06) == "the tool hit the floor", "nor may it be pressed further in"


def test_staging_a_scene_leaves_the_fingers_where_they_are(given: dict[str, Any]) -> None:
    plant = SimulatedPlant(FR3, given["fixture"], 0.01, now_ns=0)
    plant.grip(0.02)
    for k in range(1, 101):
        plant.tick(FR3.home.copy(), k * 10 * MILLISECOND)
    plant.stage({"object": "towels", "layout": "layout-1", "items": 3}, 1)
    assert abs(plant.opening - 0.02) < 1e-9
    plant.tick(FR3.home.copy(), 1010 * MILLISECOND)
    assert abs(plant.opening - 0.02) < 1e-9, "nor do they open afterwards"
