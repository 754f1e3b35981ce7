"""A real robot: setpoints limited in the loop, given to the vendor's client by a thread of its own, states read back.

May not: import a vendor's library (a `Link` does), move without setpoints or staging, recover without a person's word.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.config.cell_schema import Cell
from labctl.devices import Actions, Batch, DeviceEvent, Gripper, Kind, RobotStatus, Setpoints
from labctl.drivers.common.about import joined
from labctl.drivers.common.box_limited_ik import BoxLimitedIk
from labctl.drivers.common.limits import limits_of
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.common.servo.following import HOME_RAD, Following, beside, jump, not_staged
from labctl.drivers.common.servo.hand_opening import HandOpening
from labctl.drivers.common.servo.limited_setpoints import LimitedSetpoints
from labctl.drivers.common.servo.unrest import Unrest
from labctl.drivers.common.servo.vendor_link import Link
from labctl.drivers.common.servo.way_home import WayHome
from labctl.drivers.common.states import States, state_specs
from labctl.drivers.common.thread_faults import fault_of
from labctl.errors import DeviceError, DeviceLost, DeviceRefused
from labctl.plain import RobotAbout
from labctl.realtime import LOOP, ordinary, urgent

LOOK_NS = 20 * MILLISECOND
RESTLESS_NS = 5_000 * MILLISECOND  # a robot that should stand and does not for so long is stopped, and a person looks
SWITCH_S = 0.0005  # a thread that computes lets the reading and the servo thread in after this time, not after 5 ms
EXPLAIN_NS = 60 * MILLISECOND
STUCK_NS = 4_000 * MILLISECOND  # longer than a program takes to be sent
RECOVER_NS = 300 * MILLISECOND  # between two steps of a recovery
JOIN_S = 3.0


class ServoedRobot:
    """See `labctl.devices.Robot` for the verbs. `home` is where episodes begin, None to leave the robot where it is; it
    goes there at up to `home_rad_s`.
    """

    kind: Kind = "real"

    def __init__(
        self, model: RobotModel, link: Link, gripper: Gripper, cell: Cell, home: np.ndarray | None, home_rad_s: float
    ) -> None:
        robot = cell.robot
        self.robot_model, self.dof, self.joint_names = model, model.dof, model.joint_names
        self.control_hz = float(robot.control_hz)
        self.streams = state_specs(model, float(robot.state_hz), link.more)
        self._cell_limits = robot.limits
        self._limits = limits = limits_of(model, robot.limits, home)
        self._period_ns = round(SECOND / self.control_hz)
        self._setpoints = LimitedSetpoints(model, limits, link.law, self._measured, self.control_hz)
        self.takes_steps = link.law is not None
        self._ik = BoxLimitedIk(model, limits)
        self._states = States(gripper.opening)
        self._link, self._gripper, self._home = link, gripper, home
        self._clock = MonotonicClock()
        self._stop, self._end = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._asked_home = self._asked_recovery = False  # of the servo thread, by the loop
        self._staging = self._based = False  # not where episodes begin yet; is the limiter where it stands?
        self._lost = self._refusal = ""
        self._recover_after_ns = self._cycled_ns = 0
        self._latched: RobotStatus | None = None
        self._sound = RobotStatus("idle")
        self._homing = self._moving = self._halted = self._rested = False
        self._home_rad_s, self._opening = home_rad_s, HandOpening(gripper)
        self._following = Following(self.takes_steps, link.coast_s)
        self._way: WayHome | None = None
        self._unrest = Unrest()
        self._still_ns = 0  # when the robot was last seen to stand, or began to have to
        self._news: deque[DeviceEvent] = deque()  # never another one: both threads add to it
        self.clipped = ""

    def connect(self, now_ns: int) -> None:
        """Open the links to arm and gripper and start reading; moves nothing. Raises DeviceLost or DeviceRefused."""
        self._gripper.connect()
        try:
            self._link.open(self._states)
            self._ik.measured(self._link.measured)
            self._news += [DeviceEvent("note", now_ns, {"reason": text}) for text in self._link.news]
            self._cycled_ns = self._clock.now_ns()
            self._look(now_ns)
        except DeviceError:
            self._link.close()
            self._gripper.close()
            raise
        self._interval_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        urgent(LOOP)
        self._thread = threading.Thread(target=self._serve, name="servo", daemon=True)
        self._thread.start()

    # -- the loop's side

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """Joint angles (n, dof) in rad for tool poses (n, 7), continuing from q_seed (dof,); see `BoxLimitedIk`."""
        self._ik.seen(self._states.newest)
        q = self._ik.joints(poses, q_seed)
        if self._ik.news:
            self._news.append(DeviceEvent("note", self._clock.now_ns(), {"reason": self._ik.news}))
        return q

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for joint angles (dof,) in rad."""
        self._ik.seen(self._states.newest)
        return self._ik.pose(q)

    def follow(self, wanted: Setpoints) -> Actions:
        """Limit setpoints and queue them for the servo thread; returns those it has decided. Raises DeviceLost."""
        self._raise_if_lost()
        if len(wanted.t_ns):
            self._setpoints.add(wanted, self._gripper.stroke_m, ready=self._ready())
            self.clipped = self._setpoints.limiter.clipped
        return self._setpoints.answered()

    def _measured(self) -> np.ndarray | None:
        return None if self._states.newest is None else self._states.newest.q

    def _ready(self) -> bool:
        """May setpoints be given? Then the limiter stands where the robot stands."""
        if self._stop.is_set() or self._homeward() or self._sound.mode != "idle":
            self._based, self.clipped = False, ""
            return False
        if self._rested and not self._moving and not len(self._setpoints):
            self._based = False  # after a pause the robot may stand elsewhere than where it was sent last
        self._rested = False
        if not self._based:
            if restless := self._states.restless():
                if self._unrest.left_out(self._clock.now_ns()):
                    reason = f"it takes no setpoints while it does not come to rest: {restless}"
                    self._latched = self._latched or RobotStatus("safety_stop", reason)
                return False
            self._unrest.over()
            start = self._link.start_q()
            self._setpoints.base(start, self._gripper.opening())
            self._based = True
        return True

    def drain(self, now_ns: int) -> list[Batch]:
        """All states read since the last drain. Raises DeviceLost."""
        self._raise_if_lost()
        return self._states.drain()

    def observe(self) -> dict[str, np.ndarray]:
        """The newest state: q, dq (dof,), tcp (7,), gripper (1,); wrench (6,) where the robot tells one. Raises
        DeviceLost.
        """
        self._raise_if_lost()
        if (newest := self._states.newest) is None:
            raise DeviceLost("the robot has not sent a state yet")
        seen = {"q": newest.q, "dq": newest.dq, "tcp": newest.tcp, "gripper": np.array([self._gripper.opening()])}
        return {**seen, "wrench": newest.wrench} if newest.wrench.size else seen

    def events(self) -> list[DeviceEvent]:
        """What happened since the last call, at its measured time."""
        return [self._news.popleft() for _ in range(len(self._news))]

    def status(self) -> RobotStatus:
        if self._lost:
            return RobotStatus("lost", self._lost)
        if (sound := self._sound).mode != "idle":
            return sound
        if self._stop.is_set():
            return RobotStatus("stopped", "stop was asked for")
        return RobotStatus("moving" if self._moving or self._homing else "idle")

    def about(self) -> RobotAbout:
        return joined(self._link, self._gripper, self._cell_limits, self.robot_model)

    def stage(self, condition: Mapping[str, Any], seed: int, now_ns: int) -> None:
        """Open the hand, then go home slowly, if the cell says where that is. Ends a stop. Raises as `recover`."""
        self._raise_if_lost()
        if (sound := self._sound).mode != "idle":
            raise DeviceRefused(sound.reason)
        self._based, self._asked_recovery = False, False
        self._stop.clear()
        self._still_ns = self._clock.now_ns()
        self._staging = self._asked_home = True

    def staged(self) -> bool:
        """Is the robot at rest where episodes begin, and nothing wrong with it?"""
        self._raise_if_lost()
        if self._homeward() or self._stop.is_set() or self._sound.mode != "idle":
            return False
        away = bool(self._states.restless() or beside(self._measured(), self._home))
        self._staging = self._staging and away  # ends the wait, and never begins one
        return not away

    def _homeward(self) -> bool:
        return self._asked_home or self._homing  # this order: the servo thread sets the second and clears the first

    def stop(self) -> None:
        """The servo thread slows the robot down at its next cycle. Any thread; any number of times."""
        self._stop.set()  # first: a robot that nobody sends home any more would be taken for staged
        self._asked_home = self._asked_recovery = self._staging = False
        self._gripper.stop()

    def recover(self) -> None:
        """Allow motion again, on an operator's word. Raises DeviceRefused while the robot is not there yet."""
        self._raise_if_lost()
        if restless := self._states.restless():
            raise DeviceRefused(f"the robot is still moving ({restless}): wait until it stands, then recover")
        if self._gripper.status().mode in ("fault", "lost"):
            self._gripper.recover()
        if (sound := self._sound).mode != "idle":
            self._asked_recovery = True
            raise DeviceRefused(self._refusal or sound.reason)
        if self._stop.is_set():
            self._asked_home = self._staging = False  # the stop may have come while it was asked for
            if self._homing or self._moving:
                raise DeviceRefused("it is not stopped yet: recover once it is")
        self._based = False
        self._stop.clear()

    def close(self) -> None:
        """Stop, end the servo thread, close the links. Any number of times."""
        self.stop()
        self._end.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None
            self._link.close()
            self._gripper.close()
            sys.setswitchinterval(self._interval_s)
            ordinary()

    def _raise_if_lost(self) -> None:
        """The servo thread says so, or cannot any more: a vendor's client may hang in a call once its link is gone."""
        if self._lost:
            raise DeviceLost(self._lost)
        if self._thread is not None and (why := self._link.lost()):
            raise DeviceLost(why)
        if self._thread is not None and self._clock.now_ns() - self._cycled_ns > STUCK_NS:
            raise DeviceLost("the robot's client library has not returned from a call")

    # -- the servo thread's side

    def _serve(self) -> None:
        urgent()
        reachable = True
        try:
            self._cycles()
        except DeviceLost as error:
            self._lost, reachable = str(error), False
        except Exception as error:  # a bug in labctl or in the link: whoever leads the robot must hear of it
            self._lost = f"the thread that leads the robot failed ({fault_of('the servo thread', error)})"
        self._setpoints.discard()
        if reachable:
            with contextlib.suppress(Exception):  # nobody is left to hear of it
                self._link.halt()
                for _ in range(SECOND // self._period_ns):  # some links give the way to rest cycle by cycle
                    if not self._end.wait(self._period_ns / SECOND):
                        self._link.keep_alive()

    def _cycles(self) -> None:
        due, look = self._clock.now_ns(), 0
        while not self._end.is_set():
            self._clock.sleep_until(due)
            now = self._cycled_ns = self._clock.now_ns()
            due = due + self._period_ns if now - due < 5 * self._period_ns else now + self._period_ns
            try:
                if now >= look:
                    look = now + LOOK_NS
                    self._look(now)
                self._cycle(now)
            except DeviceRefused as error:
                self._fail(str(error), now)

    def _fail(self, reason: str, now_ns: int) -> None:
        """The client refused. If no stop of the robot's own explains it, or on the way home, a person has to look."""
        home = f"the robot did not reach home: {reason}" if self._homing else ""
        self._following.reset()
        self._moving = self._homing = self._staging = False
        self._still_ns, until = now_ns, now_ns + EXPLAIN_NS  # the robot's own state may come a moment after its refusal
        self._look(now_ns)
        while self._sound.mode == "idle" and (now_ns := self._clock.now_ns()) < until:
            self._clock.sleep_until(now_ns + MILLISECOND)
            self._look(now_ns)
        if self._sound.mode == "idle" or home:
            self._latched = RobotStatus("safety_stop", home or reason)
            self._look(now_ns)

    def _cycle(self, now_ns: int) -> None:
        if self._stop.is_set() or self._sound.mode != "idle":
            self._setpoints.discard()
            halts = not self._halted and (self._moving or self._homing)
            if not self._halted and self._stop.is_set():
                self._gripper.stop()  # once more: this thread may have asked it to move after the stop
            if self._sound.mode != "idle":
                if self._homeward() and self._latched is None:
                    self._latched = RobotStatus("safety_stop", f"the robot did not reach home: {self._sound.reason}")
                self._asked_home = self._staging = False
            self._halted = True
            self._moving = self._homing = False
            self._link.halt() if halts else self._link.keep_alive()
        elif self._asked_home:
            self._setpoints.discard()
            if self._moving:
                self._link.halt()
            self._halted, self._moving, self._way = False, False, None
            self._opening.begin(now_ns)
            self._homing, self._asked_home = True, False  # in this order
        elif self._homing:
            self._go_home(now_ns)
        else:
            self._halted = False
            self._play(now_ns)
        if self._asked_recovery and (self._sound.mode == "idle" or self._moving or self._homing):
            self._asked_recovery = False  # of a hold that is over: nothing is recovered in the middle of a motion
        if self._asked_recovery and now_ns >= self._recover_after_ns:
            self._recover_after_ns, self._asked_recovery = now_ns + RECOVER_NS, False
            try:
                if self._link.recover():
                    self._latched, self._staging = None, False
                self._refusal = ""
            except DeviceRefused as error:
                self._refusal = str(error)
            self._look(now_ns)

    def _go_home(self, now_ns: int) -> None:
        if self._way is None:
            if (restless := self._states.restless()) or not self._opening.done(now_ns):
                self._link.keep_alive()
                if restless and now_ns - self._still_ns > RESTLESS_NS:
                    raise DeviceRefused(f"it does not come to rest: {restless}")
                return
            if self._home is None:
                self._homing, self._still_ns = False, now_ns
                return
            start, speed = self._link.start_q(), self._home_rad_s
            self._way = WayHome(self.robot_model, self._limits, start, self._home, speed, self.control_hz)
        assert self._home is not None
        if not self._way.ready():
            self._link.keep_alive()
        elif (step := self._way.step()) is not None:
            if not self._lead(*step):
                self._way.again()
        elif self._link.hold(self._home):
            far = float(np.abs(self._home - self._link.start_q()).max())
            if far > HOME_RAD:
                raise DeviceRefused(f"it stopped {far:.2f} rad from there")
            self._following.reset()
            self._homing, self._still_ns = False, now_ns

    def _lead(self, q: np.ndarray, before: np.ndarray) -> bool:
        """Give the setpoint after `before`, if that can be. Raises DeviceRefused for a robot that went elsewhere."""
        dq = (q - before) * self.control_hz
        given = self._link.send_setpoint(q, dq, by_joints=self._homing) is not False
        if not given or (newest := self._states.newest) is None:
            return given
        self._following.give(float(newest.device_s), self._cycled_ns / SECOND, q, dq)
        if wrong := self._following.wrong(newest.q):
            self._halted = True
            self._link.halt()
            raise DeviceRefused(wrong)
        return True

    def _play(self, now_ns: int) -> None:
        before = self._setpoints.last
        row = self._setpoints.take(now_ns)
        if row is not None:
            if not self._moving and not self.takes_steps and (far := jump(row[:-1], self._link.start_q())):
                self._stop.set()
                raise DeviceRefused(far)
            self._moving = True
            self._lead(row[:-1], before[:-1])
            self._gripper.target(float(row[-1]))
        elif self._moving:
            self._moving = not self._link.hold(before[:-1])
            self._rested = not self._moving
        else:
            self._following.reset()
            self._link.keep_alive()

    def _look(self, now_ns: int) -> None:
        """Has the robot stopped itself since the last look?"""
        was, now, held = self._sound, self._link.health(), self._gripper.status()
        if now.mode == "idle" and held.mode in ("fault", "lost"):
            now = RobotStatus("fault", f"gripper: {held.reason}")
        if self._staging and self._latched is None and not self._homeward() and now_ns - self._still_ns > RESTLESS_NS:
            if reason := not_staged(self._states.restless(), beside(self._measured(), self._home)):
                self._latched = RobotStatus("safety_stop", reason)
            self._staging = False
        self._sound = now = self._latched if self._latched and now.mode == "idle" else now
        if now.mode == "lost":
            raise DeviceLost(now.reason)
        if now.mode != "idle" and was.mode == "idle":
            kind = "fault" if now.mode == "fault" else "safety_stop"
            self._news.append(DeviceEvent(kind, now_ns, {"reason": now.reason}))
