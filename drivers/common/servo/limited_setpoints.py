"""The loop's setpoints, limited where they are added and queued for the thread that gives them to the robot.

May not: give one to a robot, or add any from where the robot does not stand: `base` says where that is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labctl.clock import SECOND
from labctl.devices import Setpoints
from labctl.drivers.common.limits import Limiter, Limits
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.common.servo.setpoint_queue import SetpointQueue
from labctl.drivers.common.steps import Law, StepLimiter

DELAY_S = 0.05  # a setpoint is given this long after its time: two late visits of the robot's process do not show
QUEUED_S = 0.15  # more than this waiting: the thread was held up; what is older is left out


class LimitedSetpoints(SetpointQueue):
    """Rows of joint angles (rad) and the hand's opening (m). law: of a robot that is led by steps, which are given at
    once; measured: where it stands, for those.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: Limits,
        law: Law | None,
        measured: Callable[[], np.ndarray | None],
        control_hz: float,
    ) -> None:
        super().__init__(model.dof, round((DELAY_S if law is None else 0.0) * SECOND))
        self._most = round(QUEUED_S * control_hz)
        self.limiter: Limiter | StepLimiter = (
            Limiter(model, limits, 1.0 / control_hz) if law is None else StepLimiter(model, limits, law, measured)
        )

    def base(self, q: np.ndarray, opening: float) -> None:
        """The robot stands at q (dof,): what is added goes on from there."""
        self.limiter.reset(q)
        self.reset(np.append(q, opening))

    def add(self, wanted: Setpoints, stroke_m: float, *, ready: bool) -> None:
        """Limit setpoints and queue them; those that are too many, or come while the robot takes none, are left out."""
        rows = np.column_stack([wanted.q, np.clip(wanted.gripper, 0.0, stroke_m)])
        asked = np.column_stack([wanted.q, wanted.gripper])
        late = min(max(len(self) + len(rows) - self._most, 0), len(rows)) if ready else len(rows)
        if late:
            self.leave_out(wanted.t_ns[:late], asked[:late])
        if late < len(rows):
            self._limit(wanted.t_ns[late:], asked[late:], rows[late:])

    def _limit(self, t_ns: np.ndarray, asked: np.ndarray, rows: np.ndarray) -> None:
        opening, taken = rows[:, -1], False
        while not taken:  # again if the queue ran dry meanwhile
            if self.parted:
                at, move = self.take_over()
                self.limiter.resume(at[:-1], move[:-1])
            limited = np.column_stack([self.limiter.follow(rows[:, :-1]).q, opening])
            tail = self.limiter.brake_tail()
            taken = self.put(t_ns, asked, limited, np.column_stack([tail, np.full(len(tail), opening[-1])]))
