"""The body of an emulated UR: power and safety states, and joints that a motion moves one control cycle at a time.

May not: speak a protocol or read a clock. Transitions whose timing only a real controller knows are assumptions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import RobotModel, Tool, with_tool
from labctl.drivers.common.tool_model import ToolModel
from labctl.drivers.ur.pose import joined, undone

# robot modes, safety modes, runtime states: numbers of the RTDE guide
POWER_OFF, POWER_ON, IDLE, RUNNING = 3, 4, 5, 7
NORMAL, REDUCED, PROTECTIVE, RECOVERY, SAFEGUARD, SYSTEM_ESTOP, ROBOT_ESTOP, VIOLATION, FAULT = range(1, 10)
STOPPING, STOPPED, PLAYING, PAUSING, PAUSED, RESUMING = range(6)
SAFETY_NAMES = {1: "NORMAL", 3: "PROTECTIVE_STOP", 5: "SAFEGUARD_STOP", 7: "ROBOT_EMERGENCY_STOP", 9: "FAULT"}
MODE_NAMES = {3: "POWER_OFF", 4: "POWER_ON", 5: "IDLE", 7: "RUNNING"}
BITS = {1: 1 << 0, 3: 1 << 2 | 1 << 10, 5: 1 << 4 | 1 << 10, 7: 1 << 6 | 1 << 7 | 1 << 10, 9: 1 << 9 | 1 << 10}
FLANGE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # a tool that is the flange itself
STOP_RAD_S2 = 10.0  # Assumption: how fast a protective stop slows a joint
MOST_RAD_S2 = 40.0
POWER_CYCLES_S = 0.5  # Assumption: far shorter than a real power-on, so that tests are quick


class Body:
    """q, qd, qdd (6,): rad, rad/s, rad/s2. `tcp` (7,) is the tool in the flange's frame."""

    def __init__(self, robot_model: RobotModel, period_s: float, measured: MeasuredChain | None = None) -> None:
        """measured: of this very robot, if it is not as published."""
        self.robot_model, self.dt = robot_model, period_s
        self._flange = with_tool(robot_model, Tool((0.0, 0.0, 0.0)))
        self._model = ToolModel(self._flange, measured)
        self.tcp = FLANGE
        self.q, self.qd, self.qdd = robot_model.home.copy(), np.zeros(6), np.zeros(6)
        self.robot_mode, self.safety_mode, self.runtime = RUNNING, NORMAL, STOPPED
        self.estop_pressed = False
        self.motion: Motion | None = None
        self.slider = self.scaling = self._share = 1.0
        self.remote = True
        self._power_to: list[int] = []
        self._power_left = 0

    @property
    def may_move(self) -> bool:
        return self.robot_mode == RUNNING and self.safety_mode == NORMAL and self.runtime == PLAYING

    # -- kinematics

    def pose(self, q: np.ndarray, tcp: np.ndarray | None = None) -> np.ndarray:
        """Pose (7,) of the tool for joints (6,), or of another frame that is given in the flange's."""
        return joined(self._model.pose(q), self.tcp if tcp is None else tcp)

    def joints(self, pose: np.ndarray, near: np.ndarray) -> np.ndarray | None:
        """Joints (6,) for a tool pose (7,), near others; None when it cannot be reached."""
        flange = joined(pose, undone(self.tcp))
        q = self._model.joints(flange[None, :], near)[0][0]
        reached = self.pose(q)
        off = np.linalg.norm(reached[:3] - pose[:3]) > 1e-4 or abs(reached[3:] @ pose[3:]) < 1 - 1e-6
        return None if off else q

    def jacobian(self) -> np.ndarray:
        """Of the tool where it is (6, 6), linear rows first; of a robot as published."""
        jac, _, turn = kinematics.jacobian(self._flange.chain, self.q[None, :])
        reach = turn[0] @ self.tcp[:3]
        return np.vstack([jac[0][:3] + np.cross(jac[0][3:], reach, axisa=0).T, jac[0][3:]])

    # -- safety and power

    def protective_stop(self) -> None:
        if self.robot_mode == RUNNING:
            self._pause_in(PROTECTIVE)

    def emergency_stop(self) -> None:
        self.power_off()
        self.safety_mode, self.estop_pressed = ROBOT_ESTOP, True

    def safeguard_stop(self) -> None:
        self._pause_in(SAFEGUARD)

    def _pause_in(self, safety_mode: int) -> None:
        if self.safety_mode == NORMAL:
            self.safety_mode = safety_mode
            if self.runtime == PLAYING:
                self.runtime = PAUSED

    def fault(self) -> None:
        """Of the safety system: the robot is switched off until the system is started again."""
        self.power_off()
        self.safety_mode = FAULT

    def restart_safety(self) -> None:
        """After a fault; the robot stays switched off."""
        if self.safety_mode == FAULT:
            self.safety_mode = NORMAL

    def unlock(self) -> None:
        if self.safety_mode == PROTECTIVE:
            self.safety_mode = NORMAL

    def release(self) -> None:
        """A person at the pendant: the e-stop button is pulled out, the safeguard is closed, the safety system started
        again, remote control is on.
        """
        self.restart_safety()
        if self.estop_pressed or self.safety_mode == SAFEGUARD:
            self.safety_mode, self.estop_pressed = NORMAL, False
        self.remote = True

    def power(self, *modes: int) -> None:
        """Go through robot modes, one after another. Asked for again on the way, it goes on as it was."""
        if self._power_to:
            self._power_to += [mode for mode in modes if mode > self._power_to[-1]]
            return
        self._power_to, self._power_left = list(modes), round(POWER_CYCLES_S / self.dt)

    def power_off(self) -> None:
        self.robot_mode, self.runtime, self.motion, self._power_to = POWER_OFF, STOPPED, None, []

    # -- a control cycle

    def cycle(self) -> None:
        """One control period: the power sequence, then the motion or the stop."""
        if self._power_to:
            self._power_left -= 1
            if self._power_left <= 0:
                self.robot_mode = self._power_to.pop(0)
                self._power_left = round(POWER_CYCLES_S / self.dt)
        if self.may_move and self.motion is not None:
            self._step(self.motion)
        elif self.qd.any():
            self.slow(STOP_RAD_S2)

    def _step(self, motion: Motion) -> None:
        """One cycle of a motion, whose own time goes as slowly as slider and safety limits say (both, multiplied).

        Assumption: a change of them takes no time, and servoj and speedl are slowed as moves are.
        """
        share = self.slider * self.scaling
        if share <= 0:
            self.qd = np.zeros(6)
            return
        period, self.dt, self.qd = self.dt, self.dt * share, self.qd / self._share
        done = motion.step(self)
        self.dt, self.qd, self._share = period, self.qd * share, share
        if done:
            self.motion = None

    def slow(self, rate: float) -> None:
        """One cycle of a stop: all joints together, the fastest by `rate` rad/s2."""
        fastest = float(np.abs(self.qd).max())
        share = max(0.0, 1.0 - rate * self.dt / fastest) if fastest else 0.0
        self.advance(self.qd * (share if share > 1e-6 else 0.0))

    def advance(self, qd: np.ndarray) -> None:
        """One cycle at joint speeds qd. Faster than a joint may be, or beyond its end, is a protective stop."""
        self.qdd = (qd - self.qd) / self.dt
        q = self.q + qd * self.dt
        too_fast = (np.abs(qd) > self.robot_model.velocity * 1.01).any()
        if too_fast or ((q < self.robot_model.lower) | (q > self.robot_model.upper)).any():
            self.protective_stop()
        else:
            self.q, self.qd = q, qd


class Motion(ABC):
    """What moves the joints. `step` does one cycle and returns True when it is over; `failed` says why it could not."""

    failed = ""

    @abstractmethod
    def step(self, body: Body) -> bool: ...


class Along(Motion):
    """A path of parameter 0..1 under a trapezoid of speed; `length` in the unit of speed and acceleration."""

    def __init__(self, length: float, speed: float, acceleration: float) -> None:
        self._length, self._v, self._a = length, max(speed, 1e-6), max(acceleration, 1e-6)
        self._s = self._rate = 0.0

    @abstractmethod
    def at(self, body: Body, share: float) -> np.ndarray | None: ...

    def step(self, body: Body) -> bool:
        left = max(self._length - self._s, 0.0)
        self._rate = min(self._rate + self._a * body.dt, self._v, math.sqrt(2 * self._a * left))
        self._s += max(self._rate * body.dt, 1e-9)
        over = self._s >= self._length - 1e-7
        q = self.at(body, 1.0 if over else self._s / self._length)
        if q is None:
            self.failed = "no joint angles reach this pose"
            return True
        body.advance((q - body.q) / body.dt)
        if over:
            body.qd = np.zeros(6)
        return over


class MoveJ(Along):
    """Straight in joint space to q (6,)."""

    def __init__(self, body: Body, q: np.ndarray, speed: float, acceleration: float) -> None:
        self._from, self._to = body.q.copy(), np.array(q)
        super().__init__(float(np.abs(self._to - self._from).max()), speed, acceleration)

    def at(self, body: Body, share: float) -> np.ndarray | None:
        return self._from + share * (self._to - self._from)


class MoveL(Along):
    """Straight in space to a tool pose (7,)."""

    def __init__(self, body: Body, pose: np.ndarray, speed: float, acceleration: float) -> None:
        self._from, self._to = body.pose(body.q), pose.copy()
        if self._from[3:] @ self._to[3:] < 0:
            self._to[3:] = -self._to[3:]
        turn = 2 * math.acos(min(1.0, abs(float(self._from[3:] @ self._to[3:]))))
        length = max(float(np.linalg.norm(self._to[:3] - self._from[:3])), 0.25 * turn)
        super().__init__(length, speed, acceleration)

    def at(self, body: Body, share: float) -> np.ndarray | None:
        pose = self._from + share * (self._to - self._from)
        pose[3:] /= np.linalg.norm(pose[3:])
        return body.joints(pose, body.q)


class Servo(Motion):
    """servoj: towards a target, which each cycle may give anew, with a lag, and no harder than a joint can."""

    def __init__(self, q: np.ndarray, lookahead: float, gain: float) -> None:
        # Assumption: a critically damped follower; lookahead sets its time, gain sharpens it
        self.q, self._rate = np.array(q), 2.0 / max(lookahead, 0.03) * math.sqrt(gain / 300.0)

    def step(self, body: Body) -> bool:
        w = self._rate
        qdd = np.clip(w * w * (self.q - body.q) - 2 * w * body.qd, -MOST_RAD_S2, MOST_RAD_S2)
        qd = body.qd + qdd * body.dt
        if float(np.abs(qd).max()) < 1e-6 and float(np.abs(self.q - body.q).max()) < 1e-7:
            qd = np.zeros(6)
        body.advance(np.clip(qd, -body.robot_model.velocity, body.robot_model.velocity))
        return False


class Speed(Motion):
    """speedj, or speedl with `linear`: the speed is approached with an acceleration and then held."""

    def __init__(self, target: Sequence[float], acceleration: float, linear: bool) -> None:
        self.target, self._a, self.linear = np.array(target), acceleration, linear

    def step(self, body: Body) -> bool:
        wanted, rate = self.target, self._a
        if self.linear:
            jacobian = body.jacobian()
            damped = jacobian.T @ jacobian + 1e-6 * np.eye(6)
            wanted = np.linalg.solve(damped, jacobian.T @ self.target)
            rate = max(self._a * 4.0, 4.0)  # Assumption: a tool acceleration as one of the joints
        body.advance(body.qd + np.clip(wanted - body.qd, -rate * body.dt, rate * body.dt))
        return False


class Stop(Motion):
    """stopj, stopl."""

    def __init__(self, rate: float) -> None:
        self._rate = max(rate, 0.1)

    def step(self, body: Body) -> bool:
        body.slow(self._rate)
        return not body.qd.any()
