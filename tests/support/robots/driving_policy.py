"""Driver "support.robots.driving_policy:build": a simulated policy that drives a base as well: to another place before
each item, by chunks of actions that name its speeds, and then it moves the item from there.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from labctl.axes import twist_of
from labctl.config.cell_schema import Cell, Fixture
from labctl.config.options import NoOptions
from labctl.devices import ActionChunk, Kind, Observation, Pace, declared_axes
from labctl.drivers.sim.picker import Picker, Skill, picker
from labctl.drivers.sim.policy import SKILLS

STOPS = ((0.08, -0.05, 0.15), (-0.04, 0.06, -0.10))  # x, y in m, yaw in rad, of the place where it was staged
NEAR = 0.01  # m, and rad
DT_S, ACTIONS, LATENCY_S = 0.1, 5, 0.05
GAIN = 0.8  # 1/s


class DrivingPicker:
    """A `labctl.devices.Controller`; see the module."""

    kind: Kind = "sim"
    pace = Pace()

    def __init__(self, inner: Picker, twist: tuple[int, ...]) -> None:
        self._inner, self._twist = inner, list(twist)
        self.load_s = self.warm_s = 0.0
        self.reset(0)

    def load(self) -> None:
        self._inner.load()

    def warm(self, observation: Observation) -> None:
        self._inner.warm(observation)

    def reset(self, seed: int) -> None:
        self._inner.reset(seed)
        self._there = 0

    def infer(self, observation: Observation) -> ActionChunk:
        seen = observation.arrays
        moved = int((seen["items"][:, 5] > 0.5).sum())
        between = not len(self._inner._plan) and not (seen["items"][:, 7] > 0.5).any()
        if self._there <= moved < len(STOPS) and between:
            way = self._way(seen["odometry"], np.array(STOPS[moved]))
            if np.abs(way).max() > NEAR:
                return self._drive(seen, GAIN * way)
            self._there = moved + 1
        return self._inner.infer(observation)

    @staticmethod
    def _way(place: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """(3,): m along the base's own axes, rad."""
        (x, y), c, s = goal[:2] - place[:2], math.cos(place[2]), math.sin(place[2])
        return np.array([c * x + s * y, c * y - s * x, math.remainder(goal[2] - place[2], math.tau)])

    def _drive(self, seen: dict[str, np.ndarray], speeds: np.ndarray) -> ActionChunk:
        values = np.tile(seen["q"], (ACTIONS, 1))
        values[:, self._twist] = speeds
        opening = np.full(ACTIONS, float(seen["gripper"][0]))
        return ActionChunk("joint_position", values, opening, DT_S, ACTIONS, LATENCY_S)

    def close(self) -> None:
        self._inner.close()


def build(options: NoOptions, *, cell: Cell, fixture: Fixture) -> DrivingPicker:
    """See the module."""
    skill: Skill = replace(SKILLS["swift"], outside_p=0.0, low_p=0.0, fast_p=0.0)  # it drops nothing
    inner, axes = picker(skill, cell, fixture, load_s=0.0, crash_at=None), declared_axes("sim_base", {})
    assert isinstance(inner, Picker) and axes is not None
    return DrivingPicker(inner, twist_of(axes))
