"""Driver "support.policies.named_axes:build": a policy behind a card whose space is `axes`. It reads the robot's axes
and answers with all of them, by the card and the client of any policy; where the items are it sees as a simulated
policy does, for it has no camera.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from labctl.axes import Axis, twist_of
from labctl.config.cell_schema import Cell, Fixture
from labctl.config.options import NoOptions
from labctl.devices import ActionChunk, Controller, Observation, Robot, declared_axes, load
from labctl.drivers.common.driving import from_floor
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.policy.client import PolicyClient, card_for
from labctl.drivers.policy.options import PolicyOptions
from labctl.drivers.sim.picker import Skill, picker
from labctl.drivers.sim.policy import SKILLS
from support.robots.driving_policy import build as driving

ANSWER_S = 0.05
SURE: Skill = replace(SKILLS["swift"], outside_p=0.0, low_p=0.0, fast_p=0.0)  # it drops nothing
CARD = """
[policy]
name = "named-axes"
dialect = "callable"
[[input]]
key = "state"
state = ["axes"]
dtype = "float64"
[action]
space = "axes"
execute = 0
{axes}
[timing]
rate_hz = 10.0
deadline_s = 2.0
late = "hold"
"""


def card_of(axes: tuple[Axis, ...]) -> str:
    """The text of the card for a robot of these axes."""
    named = "".join(f'[[action.axis]]\nname = "{axis.name}"\nunit = "{axis.unit}"\n' for axis in axes)
    return CARD.format(axes=named)


class NamedAxes:
    """A `labctl.drivers.policy.client.Link`; seen: what it sees of the scene, set before each question."""

    def __init__(self, inner: Controller, robot: Robot, axes: tuple[Axis, ...]) -> None:
        self._inner, self._robot, self._speeds = inner, robot, len(twist_of(axes))
        self._dof = sum(not axis.hand for axis in axes)
        self.seen: Observation | None = None

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        return {}

    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        assert self.seen is not None
        if "items" not in self.seen.arrays:  # before anything moves a policy is shown what no robot measured
            return {"actions": observation["state"]}
        q = observation["state"][: self._dof]
        chunk = self._inner.infer(self.seen)
        rows = np.column_stack([self._led(chunk, q, self.seen), chunk.gripper])
        return {"actions": rows[: chunk.execute]}

    def _led(self, chunk: ActionChunk, q: np.ndarray, seen: Observation) -> np.ndarray:
        if chunk.space == "joint_position":
            return chunk.values
        if not self._speeds:
            return self._robot.to_joints(chunk.values, q)
        joints = FR3.inverse(from_floor(chunk.values, seen.arrays["odometry"]), q[: FR3.dof])
        return np.column_stack([joints, np.zeros((len(joints), self._speeds))])

    def reset(self, session: str, timeout_s: float) -> None:
        self._inner.reset(int(session, 16))

    def close(self) -> None:
        self._inner.close()


class Seeing(PolicyClient):
    """A PolicyClient that looks before each question, and whose answers take as long on every machine."""

    eyes: NamedAxes

    def load(self) -> None:
        super().load()
        self.load_s = 0.0

    def warm(self, observation: Observation) -> None:
        self.eyes.seen = observation
        super().warm(observation)
        self.warm_s = 0.0

    def infer(self, observation: Observation) -> ActionChunk:
        self.eyes.seen = observation
        return replace(super().infer(observation), delay_s=ANSWER_S)


def build(options: PolicyOptions, *, cell: Cell, fixture: Fixture) -> Seeing:
    """See the module."""
    axes = declared_axes(cell.robot.driver, cell.robot.options)
    assert axes is not None
    card, body = card_for("policy_callable", options, cell)
    inner: Controller = (
        driving(NoOptions(), cell=cell, fixture=fixture)
        if twist_of(axes)
        else picker(SURE, cell, fixture, load_s=0.0, crash_at=None)
    )
    robot = load(cell.robot.driver, cell.robot.options, cell=cell, fixture=fixture)
    link = NamedAxes(inner, robot, tuple(axes))
    made = Seeing(card, link, body)
    made.eyes = link
    return made
