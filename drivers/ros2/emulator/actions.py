"""The action FollowJointTrajectory as joint_trajectory_controller serves it: goals taken or refused, replaced by the
next, cancelled, given up, come to their end.

May not: move a joint, or know a scene. Feedback is not published: nobody here reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from labctl.drivers.ros2.action_messages import (
    ABORTED,
    CANCELED,
    EXECUTING,
    SUCCEEDED,
    CancelRequest,
    CancelResponse,
    GetResultRequest,
    GetResultResponse,
    GoalInfo,
    GoalStatus,
    GoalStatusArray,
    Result,
    SendGoalRequest,
    SendGoalResponse,
    Uuid,
)
from labctl.drivers.ros2.messages import JointTrajectory
from labctl.drivers.ros2.network import REPLY, REQUEST, Network

ACTION = "/joint_trajectory_controller/follow_joint_trajectory"
KEPT, THERE_RAD = 5, 1e-3  # a real one keeps goals for its result timeout
REPLACED = Result(-1, "Current goal cancelled due to new incoming action.")
M = TypeVar("M")


class Hear(Protocol):
    """What is to be done with a message, done by the emulator's own thread."""

    def __call__(self, act: Callable[[M], None]) -> Callable[[M], None]: ...


@dataclass
class Taken:
    """A goal that was accepted: what has become of it, and where and when (s) it ends."""

    goal_id: bytes
    ends_s: float
    ends_at: np.ndarray
    status: int = EXECUTING
    result: Result | None = None


class TrajectoryAction:
    """See the module. follow: has the joints led along a trajectory, and says when (s) and where it ends; None refuses
    it. stop: has them stay. refuses: every goal, whatever it is; aborts: the next.
    """

    def __init__(
        self,
        network: Network,
        hear: Hear,
        follow: Callable[[JointTrajectory], tuple[float, np.ndarray] | None],
        stop: Callable[[], None],
    ) -> None:
        self._follow, self._stop = follow, stop
        self.refuses = self.aborts = False
        self._goals: list[Taken] = []
        self._waiting: list[GetResultRequest] = []
        inner = f"{ACTION}/_action"
        self._taken = network.publisher(f"{inner}/send_goal", SendGoalResponse, part=REPLY)
        self._cancelled = network.publisher(f"{inner}/cancel_goal", CancelResponse, part=REPLY)
        self._results = network.publisher(f"{inner}/get_result", GetResultResponse, part=REPLY)
        self._status = network.publisher(f"{inner}/status", GoalStatusArray)
        network.subscribe(f"{inner}/send_goal", SendGoalRequest, hear(self._goal), part=REQUEST)
        network.subscribe(f"{inner}/cancel_goal", CancelRequest, hear(self._cancel), part=REQUEST)
        network.subscribe(f"{inner}/get_result", GetResultRequest, hear(self._result), part=REQUEST)

    @property
    def status(self) -> int:
        """What has become of the newest goal; 0 (unknown) without one."""
        return self._goals[-1].status if self._goals else 0

    def _goal(self, asked: SendGoalRequest) -> None:
        way = None if self.refuses else self._follow(asked.goal.trajectory)
        self._taken.send(SendGoalResponse(asked.client, asked.number, way is not None))
        if way is not None:
            self._end(ABORTED, REPLACED)
            self._goals = [*self._goals[-KEPT:], Taken(bytes(asked.goal_id.uuid), *way)]
            self._tell()
            if self.aborts:
                self.abort()

    def _cancel(self, asked: CancelRequest) -> None:
        """The goal that is named, or whichever there is where none is."""
        named = bytes(asked.goal_info.goal_id.uuid)
        running = [goal for goal in self._goals if goal.status == EXECUTING and named in (goal.goal_id, bytes(16))]
        if running:
            self._stop()
            self._end(CANCELED, Result())
        ids = [GoalInfo(Uuid(list(goal.goal_id))) for goal in running]
        self._cancelled.send(CancelResponse(asked.client, asked.number, 0 if ids else 1, ids))

    def _result(self, asked: GetResultRequest) -> None:
        self._waiting.append(asked)
        self._answer()

    def abort(self) -> None:
        """The joints are too far from where they ought to be: the goal is given up, and they stay. With none under way
        it is the next one's.
        """
        self.aborts = self.status != EXECUTING
        self._stop()
        self._end(ABORTED, Result(-4, "Aborted due to path tolerance violation"))

    def deactivate(self) -> None:
        """The controller's on_deactivate: what is under way is cancelled."""
        self._end(CANCELED, Result(0, "Current goal cancelled during deactivate transition."))

    def advance(self, now_s: float, q: np.ndarray) -> None:
        """One period later; q (n,): where the joints are."""
        newest = self._goals[-1] if self._goals else None
        due = newest is not None and newest.status == EXECUTING and now_s >= newest.ends_s
        if newest is not None and due and float(np.abs(q - newest.ends_at).max()) < THERE_RAD:
            self._end(SUCCEEDED, Result())

    def _end(self, status: int, result: Result) -> None:
        newest = self._goals[-1] if self._goals else None
        if newest is not None and newest.status == EXECUTING:
            newest.status, newest.result = status, result
            self._tell()
            self._answer()

    def _answer(self) -> None:
        """Whoever asked for the result of a goal that has ended gets it."""
        ended = {goal.goal_id: goal for goal in self._goals if goal.result is not None}
        for asked in list(self._waiting):
            goal = ended.get(bytes(asked.goal_id.uuid))
            if goal is not None and goal.result is not None:
                self._waiting.remove(asked)
                self._results.send(GetResultResponse(asked.client, asked.number, goal.status, goal.result))

    def _tell(self) -> None:
        told = [GoalStatus(GoalInfo(Uuid(list(goal.goal_id))), goal.status) for goal in self._goals]
        self._status.send(GoalStatusArray(told))
