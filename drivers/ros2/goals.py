"""Goals of an action FollowJointTrajectory: each takes the place of the one before; what becomes of the newest.

May not: decide where the robot goes, wait for an answer, or take the end of a goal that was replaced for a failure: a
controller aborts or cancels it, and that is meant.
"""

from __future__ import annotations

import random
import threading
import uuid

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.ros2.action_messages import (
    ABORTED,
    CANCELED,
    ERRORS,
    CancelRequest,
    GetResultRequest,
    GetResultResponse,
    Goal,
    GoalInfo,
    GoalStatusArray,
    SendGoalRequest,
    SendGoalResponse,
    Uuid,
)
from labctl.drivers.ros2.messages import JointTrajectory
from labctl.drivers.ros2.network import REPLY, REQUEST, Network

ANSWER_NS = SECOND  # a controller that answers no goal for so long does not take them
ENDED = {ABORTED: "gave up", CANCELED: "was told to cancel"}


class Goals:
    """See the module. action: as ROS has it, "/joint_trajectory_controller/follow_joint_trajectory"."""

    def __init__(self, network: Network, action: str) -> None:
        self._action, self._clock = action, MonotonicClock()
        self._client = random.getrandbits(63)  # tells this client's answers from another's
        self._lock = threading.Lock()
        self._number, self._newest, self._ended = 0, b"", True
        self._waiting_ns: int | None = None  # since when a goal has had no answer
        self._problem = ""
        inner = f"{action}/_action"
        self._goals = network.publisher(f"{inner}/send_goal", SendGoalRequest, part=REQUEST)
        self._cancels = network.publisher(f"{inner}/cancel_goal", CancelRequest, part=REQUEST)
        self._asks = network.publisher(f"{inner}/get_result", GetResultRequest, part=REQUEST)
        network.subscribe(f"{inner}/send_goal", SendGoalResponse, self._answered, part=REPLY)
        network.subscribe(f"{inner}/get_result", GetResultResponse, self._resulted, part=REPLY)
        network.subscribe(f"{inner}/status", GoalStatusArray, self._told)

    def readers(self) -> int:
        """How many controllers take goals."""
        return self._goals.readers()

    def send(self, trajectory: JointTrajectory) -> None:
        """A new goal, in the place of the one before. Raises DeviceLost."""
        with self._lock:
            self._number += 1
            self._newest, self._ended = uuid.uuid4().bytes, False
            if self._waiting_ns is None:
                self._waiting_ns = self._clock.now_ns()
            goal = SendGoalRequest(self._client, self._number, Uuid(list(self._newest)), Goal(trajectory))
        self._goals.send(goal)

    def cancel(self) -> None:
        """End the newest goal, if it has not ended: the controller holds where the robot is. Raises DeviceLost."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._number += 1
            request = CancelRequest(self._client, self._number, GoalInfo(Uuid(list(self._newest))))
        self._cancels.send(request)

    def problem(self) -> str:
        """Why no goal is followed, "" while they are."""
        with self._lock:
            waiting_ns = self._waiting_ns
            if self._problem or waiting_ns is None or self._clock.now_ns() - waiting_ns <= ANSWER_NS:
                return self._problem
            return (
                f"no answer to a goal of {self._action} for {ANSWER_NS / SECOND:g} s; services of ROS 2 are asked as "
                "rmw_cyclonedds has them, which the robot's RMW_IMPLEMENTATION has to be"
            )

    def forget(self) -> None:
        """Somebody has looked into it: try again."""
        with self._lock:
            self._problem, self._waiting_ns, self._ended = "", None, True

    def _answered(self, answer: SendGoalResponse) -> None:
        with self._lock:
            if answer.client != self._client:
                return
            self._waiting_ns = None if answer.number >= self._number else self._clock.now_ns()
            if not answer.accepted:
                self._problem = f"{self._action} refused a goal; its controller's log says why"

    def _told(self, told: GoalStatusArray) -> None:
        """What has become of the newest goal; of older ones nothing counts."""
        with self._lock:
            if self._ended:
                return
            found = [one for one in told.status_list if bytes(one.goal_info.goal_id.uuid) == self._newest]
            ends = [ENDED[one.status] for one in found if one.status in ENDED]
            if not ends:
                return
            self._ended, self._problem = True, f"{self._action} {ends[0]} the newest goal"
            self._number += 1
            request = GetResultRequest(self._client, self._number, Uuid(list(self._newest)))
        self._asks.send(request)

    def _resulted(self, answer: GetResultResponse) -> None:
        with self._lock:
            if answer.client == self._client and self._problem:
                named = ERRORS.get(answer.result.error_code, f"error {answer.result.error_code}")
                said = " ".join(str(answer.result.error_string).split())
                self._problem += f": {named}{f' ({said})' if said else ''}"
