"""Driver "pair": the robots of [robot] and [second_robot], led as one device.

May not: let one move on when the other has stopped itself, is lost or was stopped, take up motion again before both
have recovered, or judge more of how near they are than the two tool centre points.

Both are stopped by the next visit of the robot's process (at most 20 ms of real time) once either has a stop of its
own; then each brakes by its own controller, in its own time. A robot whose program has ended is stopped by its own
watchdog alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from labctl.axes import Axis, axes_of, composed, hand_of, prefixed
from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture, SecondRobot
from labctl.config.options import NoOptions
from labctl.devices import Actions, Batch, DeviceEvent, Kind, Robot, RobotStatus, Setpoints, StreamSpec, load
from labctl.drivers.pair.apart import Apart
from labctl.drivers.pair.joining import Answers, about_both, renamed, second_stream, seen_by_both, state_of, worse
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError
from labctl.plain import Json, RobotAbout

T = TypeVar("T")
STATE = "arm/state"
LONG_NS = SECOND // 4  # a robot that takes longer over its recovery has a call to itself
BAD = ("safety_stop", "fault", "lost")
NEVER_NEARER = 0.7  # of keep_apart_m, measured: setpoints end at all of it, and a robot that brakes goes a little on


class PairRobot:
    """See `labctl.devices.Robot` and the module. Axes, q, dq, gripper and setpoints are the first robot's and then the
    second's, arms before hands. Poses of the tool are (7,) of the first and (7,) of the second, each in the base frame
    of its own robot; `to_joints` takes (n, 7) too, and then leaves the second where it is.
    """

    def __init__(self, robots: tuple[Robot, Robot], second: SecondRobot) -> None:
        self._robots, self._second = robots, second
        self._names = (second.first_name, second.name)
        pretended: list[Kind] = [robot.kind for robot in robots if robot.kind != "real"]
        self.kind: Kind = pretended[0] if pretended else "real"
        self._dofs = tuple(robot.dof for robot in robots)
        self.dof = sum(self._dofs)
        own = [axes_of(robot) for robot in robots]
        self._hands = tuple(len(hand_of(axes)) for axes in own)
        self.axes = composed(*(prefixed(name, axes) for name, axes in zip(self._names, own, strict=True)))
        self.joint_names = tuple(axis.name for axis in self.axes if not axis.hand)
        self.control_hz = robots[0].control_hz
        self.streams = self._streams(own)
        self.takes_steps = all(bool(getattr(robot, "takes_steps", False)) for robot in robots)
        keep_m = second.keep_apart_m
        poses = [robot.to_pose for robot in robots]
        self._apart = None if keep_m is None else Apart(second, keep_m, NEVER_NEARER * keep_m, poses)
        self._answers: Answers | None = None
        self._held = np.zeros(self.dof)
        self._bad: set[int] = set()  # robots that have stopped themselves, and did so before the other was stopped
        self._waits: set[int] = set()  # robots that have to recover before any of them moves
        self._near = ""  # why both were stopped: the tools came too near
        self._to_stage: list[tuple[int, ...]] = []
        self._staging: tuple[int, ...] = ()
        self._task: tuple[Mapping[str, Json], int, int] | None = None  # of the scene they were sent home for last
        self._staged = True
        self._last_stop = self._since = object()  # of any thread; that after which they are sent home
        self._events: list[DeviceEvent] = []
        self._now_ns = 0
        self._clock = MonotonicClock()  # for how long a call took
        self._switch_s: float | None = None  # the process's, before a driver changed it

    def _streams(self, own: Sequence[Sequence[Axis]]) -> tuple[StreamSpec, ...]:
        found = list[StreamSpec]()
        for number, (robot, name) in enumerate(zip(self._robots, self._names, strict=True)):
            for spec in robot.streams:
                whole = state_of(spec, name, own[number]) if spec.name == STATE else spec
                found.append(replace(whole, name=second_stream(spec.name, name)) if number else whole)
        return tuple(found)

    @property
    def clipped(self) -> str:
        """The limit that shaped the last setpoints of either, "" when none did."""
        of = [
            f"{name}: {robot.clipped}" for name, robot in zip(self._names, self._robots, strict=True) if robot.clipped
        ]
        return ", ".join([*([self._apart.clipped] if self._apart is not None and self._apart.clipped else []), *of])

    def connect(self, now_ns: int) -> None:
        """Connect both at once: one after the other would take longer than a robot's process may be silent. Raises
        DeviceLost or DeviceRefused, and then neither is connected.
        """
        self._now_ns, self._switch_s = now_ns, sys.getswitchinterval()
        problems = list[Exception]()

        def connect(number: int) -> None:
            try:
                self._one(number, lambda robot: robot.connect(now_ns))
            except Exception as error:  # of either thread; raised below
                problems.append(error)

        beside = threading.Thread(target=connect, args=(1,), name="second robot")
        beside.start()
        connect(0)
        beside.join()
        if problems:
            self.close()
            raise problems[0]
        self._rebased()

    def _rebased(self) -> None:
        """The robots stand where they stand: what is held, and answered, goes on from there."""
        seen = [robot.observe() for robot in self._robots]
        self._held = np.concatenate([one["q"] for one in seen])
        self._answers = Answers(self._dofs, self._hands, [np.concatenate([one["q"], one["gripper"]]) for one in seen])
        if self._apart is not None:
            self._apart.forget()

    # -- staging, one after the other

    def stage(self, condition: Mapping[str, Json], seed: int, now_ns: int) -> None:
        """Each stages as it does alone, in the order that the cell declares; of the items of a simulated scene the
        first gets the larger half, and each scene is another one. Ends a stop. Raises as `recover`.
        """
        if self._near and (near := self._too_near()):
            raise DeviceRefused(near)
        order = {"first": [(0,), (1,)], "second": [(1,), (0,)], "together": [(0, 1)]}
        self._since = self._last_stop
        self._task = condition, seed, now_ns  # first: a stop that comes from here on takes it away
        self._near = ""
        self._bad.clear()
        self._waits.clear()
        self._to_stage = order[self._second.goes_home]
        self._staging, self._staged = (), False
        self._go_on()

    def _go_on(self) -> None:
        """Begin to stage who is next once those before are staged."""
        while not self._staged and all(self._robots[number].staged() for number in self._staging):
            left, task = self._to_stage, self._task  # a stop puts others in their place
            if self._stopped_meanwhile() or task is None:
                return
            if not left:
                self._staged, self._staging = True, ()
                self._rebased()
                return
            self._staging, self._to_stage = left[0], left[1:]
            for number in self._staging:
                self._stage_one(number, *task)
            self._stopped_meanwhile()  # maybe before one of them was sent home

    def _stopped_meanwhile(self) -> bool:
        """Whether a stop has begun, or ended, since both are sent home: then both are stopped, once more maybe."""
        if self._waits or self._last_stop is not self._since:
            self._halt()
            return True
        return False

    def _stage_one(self, number: int, condition: Mapping[str, Json], seed: int, now_ns: int) -> None:
        items = shared_items(condition, number)
        self._one(number, lambda robot: robot.stage(items, seed + number, now_ns))

    def staged(self) -> bool:
        """Have both staged, and has neither stopped since?"""
        if self._waits or self._near or self._task is None:
            return False
        self._go_on()
        return self._staged

    # -- what moves

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        """Tool poses (14,) for the axes of both (dof,)."""
        return np.concatenate([robot.to_pose(part) for robot, part in zip(self._robots, self._split(q), strict=True)])

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """The axes of both (n, dof) for tool poses (n, 14), continuing from q_seed (dof,); of (n, 7) the first's."""
        first, second = self._split(q_seed)
        led = self._robots[0].to_joints(poses[:, :7], first)
        if poses.shape[1] == 7:
            return np.column_stack([led, np.tile(second, (len(poses), 1))])
        return np.column_stack([led, self._robots[1].to_joints(poses[:, 7:], second)])

    def _split(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = self._dofs[0]
        return values[..., :at], values[..., at:]

    def follow(self, wanted: Setpoints) -> Actions:
        """As each does alone; while either has stopped both are given where they stand. Raises DeviceLost."""
        self._couple()
        if self._answers is None:
            self._rebased()
        assert self._answers is not None
        n = len(wanted.t_ns)
        q, hand = np.asarray(wanted.q), np.reshape(wanted.gripper, (n, sum(self._hands)))
        if n:
            self._answers.give(wanted.t_ns, np.column_stack([q, hand]))
            if self._waits or self._near:
                q = np.tile(self._held, (n, 1))
            elif self._apart is not None:
                q = self._apart.kept(q, self._dofs[0], self._held)
        fingers = np.split(hand, [self._hands[0]], axis=1)
        for number, part in enumerate(self._split(q)):
            own = fingers[number][:, 0] if self._hands[number] == 1 else fingers[number]
            self._answers.take(number, self._follow_one(number, Setpoints(wanted.t_ns, part, own)))
        answered = self._answers.answered()
        if len(answered.t_ns):
            self._held = answered.sent[-1, : self.dof]
        return answered

    def _follow_one(self, number: int, given: Setpoints) -> Actions:
        return self._one(number, lambda robot: robot.follow(given))

    # -- what is measured

    def drain(self, now_ns: int) -> list[Batch]:
        """The first robot's samples as its own, the second's by its name. Raises DeviceLost."""
        self._now_ns = now_ns
        self._couple()
        first = self._one(0, lambda robot: robot.drain(now_ns))
        return [*first, *renamed(self._one(1, lambda robot: robot.drain(now_ns)), self._second.name)]

    def observe(self) -> dict[str, np.ndarray]:
        """What both see; see `joining.seen_by_both`. Raises DeviceLost."""
        self._couple()
        first, second = (self._one(number, lambda robot: robot.observe()) for number in (0, 1))
        return seen_by_both(first, second, self._second.name)

    def events(self) -> list[DeviceEvent]:
        """What happened at both since the last call, in order, with whose it is: body `robot`."""
        found, self._events = self._events, []
        for name, robot in zip(self._names, self._robots, strict=True):
            found += [_of(event, name) for event in robot.events()]
        return sorted(found, key=lambda event: event.t_ns)

    def about(self) -> RobotAbout:
        return about_both(self._robots[0].about(), self._robots[1].about(), self._second.name)

    # -- what stops

    def status(self) -> RobotStatus:
        """The worse of the two; until both have recovered, a stop."""
        self._couple()
        found = worse([robot.status() for robot in self._robots], self._names)
        if self._near and found.mode not in BAD:
            return RobotStatus("safety_stop", self._near)
        if self._waits and found.mode in ("idle", "moving"):
            of = " and ".join(self._names[number] for number in sorted(self._waits))
            return RobotStatus("stopped", f"{of} has to recover before any of them moves")
        return found

    def _couple(self) -> None:
        """What stops one stops the other: a latched mode, a loss, or tools that came too near."""
        for number, robot in enumerate(self._robots):
            state = robot.status()
            if state.mode not in BAD:
                self._bad.discard(number)
            elif number not in self._bad:
                self._bad.add(number)
                alone = not self._waits
                self._halt()
                if alone:
                    text = f"{self._names[1 - number]} was stopped with {self._names[number]}"
                    self._events.append(DeviceEvent("note", self._now_ns, {"reason": text}))
        if self._apart is not None and not self._near and (near := self._too_near()):
            self._near = near
            self._halt()
            self._events.append(DeviceEvent("safety_stop", self._now_ns, {"reason": near}))

    def _too_near(self) -> str:
        """Why the tools are too near to each other, as measured; "" when they are not, or nobody knows."""
        if self._apart is None:
            return ""
        try:
            tools = [robot.observe()["tcp"][:3] for robot in self._robots]
        except DeviceError:
            return ""
        apart_m = self._apart.between(tools[0], tools[1])
        if apart_m >= self._apart.never_m:
            return ""
        text = f"the tools of {self._names[0]} and {self._names[1]} are {apart_m:.3f} m apart"
        return f"{text}, nearer than {self._apart.never_m:.3f} m; move one of them away by hand or at its pendant"

    def _halt(self) -> None:
        self._last_stop = object()
        self._waits = {0, 1}  # first: two of whom none is on the way any more would be taken for staged
        self._task, self._to_stage, self._staging = None, [], ()
        problems = list[Exception]()
        for robot in self._robots:
            try:
                robot.stop()
            except Exception as error:  # the other is stopped whatever becomes of this one
                problems.append(error)
        self._last_stop = object()  # whoever was sent home in between is stopped again
        if problems:
            raise problems[0]

    def stop(self) -> None:
        """Both brake, each by its own controller. Any thread; any number of times."""
        self._halt()

    def recover(self) -> None:
        """Allow motion again once both do. One that has recovered waits for the other, and is not asked again unless it
        has stopped meanwhile; while one takes its time over it, as for a gripper, the other's turn is the next call.
        Raises DeviceRefused, with the robot's name, while one of them does not.
        """
        if near := self._too_near():
            raise DeviceRefused(near)
        refused, began_ns = list[str](), self._clock.now_ns()
        waits = self._waits = self._waits or {0, 1}
        for number in sorted(waits):
            if self._clock.now_ns() - began_ns > LONG_NS:
                refused.append(f"{self._names[number]}: its turn is next")
                break
            try:
                self._one(number, lambda robot: robot.recover())
                waits.discard(number)
            except DeviceRefused as error:
                waits.add(number)
                refused.append(str(error))
        if self._waits is not waits:  # one of them may have recovered after that stop
            self._halt()
            refused.append("both were stopped meanwhile")
        if refused:
            raise DeviceRefused("; ".join(refused))
        self._near = ""
        self._bad.clear()
        self._rebased()

    def close(self) -> None:
        """Both, whatever becomes of one; what their drivers set for the whole process is put back as it was."""
        try:
            self._robots[1].close()
        finally:
            self._robots[0].close()
            if self._switch_s is not None:
                sys.setswitchinterval(self._switch_s)

    def _one(self, number: int, do: Callable[[Robot], T]) -> T:
        """Ask one of the robots. What it raises names it, and a loss of it has stopped the other."""
        try:
            return do(self._robots[number])
        except DeviceLost as error:
            self._robots[1 - number].stop()
            raise DeviceLost(f"{self._names[number]}: {error}") from error
        except DeviceRefused as error:
            raise DeviceRefused(f"{self._names[number]}: {error}") from error


def shared_items(condition: Mapping[str, Json], number: int) -> Mapping[str, Json]:
    """The condition as one of the two robots stages it in a simulated scene of its own: the first has the larger half
    of the items.
    """
    items = condition.get("items")
    if not isinstance(items, int):
        return condition
    return {**condition, "items": items // 2 if number else items - items // 2}


def _of(event: DeviceEvent, name: str) -> DeviceEvent:
    body: dict[str, Json] = {**event.body, "robot": name}
    if isinstance(reason := body.get("reason"), str):
        body["reason"] = f"{name}: {reason}"
    return DeviceEvent(event.kind, event.t_ns, body)


def build(options: NoOptions, *, cell: Cell, fixture: Fixture) -> PairRobot:
    """Both robots of a cell. It has no options: each robot's are in its own table. Raises InputError for a cell of one
    robot, and where a simulated scene cannot be shared.
    """
    second = cell.second_robot
    if second is None:
        raise InputError("the driver pair leads the robots of [robot] and [second_robot]; this cell has no second one")
    first, other = (load(side.robot.driver, side.robot.options, cell=side, fixture=fixture) for side in cell.sides)
    made = PairRobot((first, other), second)
    if made.kind != "real" and second.scene == "shared":
        text = 'a simulated scene is before one robot alone; say scene = "own" in [second_robot]'
        raise InputError(text)
    return made
