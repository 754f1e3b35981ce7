"""Goals of an action FollowJointTrajectory: each takes the place of the one before; what becomes of them.

May not: decide where the robot goes, wait for an answer, or take the end of a goal that was replaced for a failure: a
controller aborts or cancels it, and that is meant. The action's status is not read: it lists every goal of the last
seconds or minutes at each change; the result of each goal is asked for instead.
"""

from __future__ import annotations

import random
import threading
import uuid

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import RobotStatus
from labctl.drivers.ros2.action_messages import (
    ABORTED,
    CANCELED,
    ERRORS,
    CancelRequest,
    GetResultRequest,
    GetResultResponse,
    Goal,
    GoalInfo,
    SendGoalRequest,
    SendGoalResponse,
    Uuid,
)
from labctl.drivers.ros2.messages import JointTrajectory
from labctl.drivers.ros2.network import REPLY, REQUEST, Network

ANSWER_NS = 2 * SECOND  # a controller that answers no goal for so long does not take them
ENDED = {ABORTED: "gave up", CANCELED: "cancelled"}
OF_ITSELF = (-4, -5)  # a tolerance is no matter of the next goal's: it counts of one that was replaced meanwhile, too
SOUND = RobotStatus("idle")
NEVER_ANSWERED = (
    "services of ROS 2 are asked as rmw_cyclonedds has them, which the robot's RMW_IMPLEMENTATION has to be"
)
ANSWERED_BEFORE = (
    "it answered before: was its controller restarted, or is its network slow? Its log says, then acknowledge"
)
MOST = 100  # goals whose answer or result has not come


class Goals:
    """See the module. action: as ROS has it, "/joint_trajectory_controller/follow_joint_trajectory"."""

    def __init__(self, network: Network, action: str) -> None:
        self._action, self._clock = action, MonotonicClock()
        self._client = random.getrandbits(63)  # tells this client's answers from another's
        self._lock = threading.Lock()
        self._number, self._newest, self._ended = 0, 0, True  # newest: the number of the newest goal
        self._newest_id: list[int] = []
        self._ids: dict[int, list[int]] = {}  # of goals that have no answer yet, by the request's number
        self._asked: dict[int, int] = {}  # goals whose result was asked for: the request's number -> the goal's
        self._waiting_ns: int | None = None  # since when a goal has had no answer
        self._spoken = False  # has any goal ever been answered?
        self._problem = SOUND
        inner = f"{action}/_action"
        self._goals = network.publisher(f"{inner}/send_goal", SendGoalRequest, part=REQUEST)
        self._cancels = network.publisher(f"{inner}/cancel_goal", CancelRequest, part=REQUEST)
        self._results = network.publisher(f"{inner}/get_result", GetResultRequest, part=REQUEST)
        self._answers = network.subscribe(f"{inner}/send_goal", SendGoalResponse, self._answered, part=REPLY)
        network.subscribe(f"{inner}/get_result", GetResultResponse, self._resulted, part=REPLY)

    def readers(self) -> int:
        """How many controllers take goals, and are heard when they answer."""
        return min(self._goals.readers(), self._answers.writers())

    def send(self, trajectory: JointTrajectory) -> None:
        """A new goal, in the place of the one before. Raises DeviceLost."""
        with self._lock:
            self._number += 1
            self._newest, self._ended, self._newest_id = self._number, False, list(uuid.uuid4().bytes)
            self._ids[self._newest] = self._newest_id
            for old in list(self._ids)[:-MOST]:
                del self._ids[old]
            if self._waiting_ns is None:
                self._waiting_ns = self._clock.now_ns()
            goal = SendGoalRequest(self._client, self._newest, Uuid(self._newest_id), Goal(trajectory))
        self._goals.send(goal)

    def cancel(self) -> None:
        """End the newest goal, if it has not ended: the controller holds where the robot is. Raises DeviceLost."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._number += 1
            request = CancelRequest(self._client, self._number, GoalInfo(Uuid(self._newest_id)))
        self._cancels.send(request)

    def problem(self) -> RobotStatus:
        """Why no goal is followed, "idle" while they are: a stop where the robot did not follow, else a fault."""
        with self._lock:
            waiting_ns, found = self._waiting_ns, self._problem
            if found.mode != "idle" or waiting_ns is None or self._clock.now_ns() - waiting_ns <= ANSWER_NS:
                return found
            why = ANSWERED_BEFORE if self._spoken else NEVER_ANSWERED
            return RobotStatus("fault", f"no answer to a goal of {self._action} for {ANSWER_NS / SECOND:g} s; {why}")

    def forget(self) -> None:
        """Somebody has looked into it: try again."""
        with self._lock:
            self._problem, self._waiting_ns, self._ended = SOUND, None, True
            self._ids.clear()
            self._asked.clear()

    def _answered(self, answer: SendGoalResponse) -> None:
        """Taken or refused; of one that was taken the result is asked for, which comes when it ends."""
        with self._lock:
            goal_id = self._ids.pop(answer.number, None) if answer.client == self._client else None
            if goal_id is None:
                return
            self._spoken = True
            self._waiting_ns = None if answer.number >= self._newest else self._clock.now_ns()
            if not answer.accepted:
                self._problem = RobotStatus("fault", f"{self._action} refused a goal; its controller's log says why")
                return
            self._number += 1
            self._asked[self._number] = answer.number
            for old in list(self._asked)[:-MOST]:
                del self._asked[old]
            request = GetResultRequest(self._client, self._number, Uuid(goal_id))
        self._results.send(request)

    def _resulted(self, answer: GetResultResponse) -> None:
        """How a goal ended: that it was given up is a problem, unless it was for the next one of ours."""
        with self._lock:
            goal = self._asked.pop(answer.number, None) if answer.client == self._client else None
            if goal is None:
                return
            code, newest = answer.result.error_code, goal == self._newest
            by_us, self._ended = newest and self._ended, self._ended or newest
            if answer.status in ENDED and not by_us and (newest or code in OF_ITSELF):
                said = " ".join(str(answer.result.error_string).split())
                named = ERRORS.get(code, f"error {code}" if code else "")
                why = " ".join(part for part in (named, f"({said})" if said else "") if part)
                text = f"{self._action} {ENDED[answer.status]} a goal{f': {why}' if why else ''}"
                self._problem = RobotStatus("safety_stop" if code in OF_ITSELF else "fault", text)
