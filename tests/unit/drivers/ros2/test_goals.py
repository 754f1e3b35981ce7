"""What becomes of goals of an action, told by its answers alone: no network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cyclonedds", reason="labctl[ros2]")

from labctl.devices import RobotStatus
from labctl.drivers.ros2.action_messages import ABORTED, CANCELED, GetResultResponse, Result, SendGoalResponse
from labctl.drivers.ros2.goals import ANSWER_NS, OF_ITSELF, Goals
from labctl.drivers.ros2.messages import JointTrajectory

REPLACED, TOLERANCE = 0, OF_ITSELF[0]


def some_goals() -> tuple[Goals, list[Any]]:
    """Goals of an action, and what is sent."""
    sent: list[Any] = []
    network: Any = SimpleNamespace(
        publisher=lambda *_, **__: SimpleNamespace(send=sent.append, readers=lambda: 1),
        subscribe=lambda *_, **__: SimpleNamespace(writers=lambda: 1),
    )
    return Goals(network, "/arm/follow"), sent


def ended(code: int) -> RobotStatus:
    """What is said after a goal that another took the place of was given up with this code."""
    goals, sent = some_goals()
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


def test_the_middleware_is_named_only_while_no_goal_was_ever_answered() -> None:
    """A controller that was restarted between a goal and its answer sent people to RMW_IMPLEMENTATION."""
    goals, sent = some_goals()
    now = [0]
    goals._clock = SimpleNamespace(now_ns=lambda: now[0])  # type: ignore[assignment]

    def unanswered() -> str:
        goals.send(JointTrajectory())
        now[0] += ANSWER_NS + 1
        return goals.problem().reason

    assert "RMW_IMPLEMENTATION" in unanswered()
    goals._answered(SendGoalResponse(sent[-1].client, sent[-1].number, accepted=True))
    assert goals.problem().mode == "idle"
    assert "it answered before" in (said := unanswered()) and "RMW_IMPLEMENTATION" not in said


@pytest.mark.parametrize(("text", "words"), [("", "a goal"), ("by hand", "a goal: (by hand)")])
def test_a_goal_that_somebody_else_cancelled_is_not_said_to_have_an_error(text: str, words: str) -> None:
    """It was said to be cancelled by "error 0", where 0 is SUCCESSFUL."""
    goals, sent = some_goals()
    goals.send(JointTrajectory())
    goals._answered(SendGoalResponse(sent[-1].client, sent[-1].number, accepted=True))
    goals._resulted(GetResultResponse(sent[-1].client, sent[-1].number, CANCELED, Result(0, text)))
    assert goals.problem().reason == f"/arm/follow cancelled {words}"
