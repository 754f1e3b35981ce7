"""What becomes of goals of an action, told by its answers alone: no network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cyclonedds", reason="labctl[ros2]")

from labctl.devices import RobotStatus
from labctl.drivers.ros2.action_messages import ABORTED, GetResultResponse, Result, SendGoalResponse
from labctl.drivers.ros2.goals import OF_ITSELF, Goals
from labctl.drivers.ros2.messages import JointTrajectory

REPLACED, TOLERANCE = 0, OF_ITSELF[0]


def ended(code: int) -> RobotStatus:
    """What is said after a goal that another took the place of was given up with this code."""
    sent: list[Any] = []
    network: Any = SimpleNamespace(
        publisher=lambda *_, **__: SimpleNamespace(send=sent.append, readers=lambda: 1),
        subscribe=lambda *_, **__: SimpleNamespace(writers=lambda: 1),
    )
    goals = Goals(network, "/arm/follow")
    goals.send(JointTrajectory())
    first = sent[-1]
    goals._answered(SendGoalResponse(first.client, first.number, accepted=True))
    asked = sent[-1]
    goals.send(JointTrajectory())
    goals._resulted(GetResultResponse(asked.client, asked.number, ABORTED, Result(code, "")))
    return goals.problem()


def test_a_goal_that_another_replaced_is_no_failure_unless_it_broke_a_tolerance() -> None:
    assert ended(REPLACED).mode == "idle"
    assert ended(TOLERANCE).mode == "safety_stop", "the robot did not follow, as it does that met something"
    assert "gave up a goal" in ended(TOLERANCE).reason
