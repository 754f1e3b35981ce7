"""A policy behind a card and a link, as a controller: start its server if it is ours, connect, warm, ask, let go.

May not: outlive its time in any verb, use an answer the card does not describe, or start motion of its own.

`load` waits for the server for `ready_s` and then gives up; if the trial's arming time is over first, the run process
voids the episode as `not_ready` and ends this process. `warm` asks real questions, so that what is wrong is found, and
what compiles is compiled, before the clock. A client is made for one episode: what went wrong in it ends with it.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from labctl.axes import GRIPPER, Axis, composed, hand_of, prefixed, twist_of
from labctl.clock import SECOND, MonotonicClock
from labctl.config.axes import action_problem
from labctl.config.cell_schema import Cell
from labctl.config.policy_card import Card
from labctl.devices import ActionChunk, Kind, Observation, Pace, declared_axes
from labctl.drivers.common.flange import tool_of
from labctl.drivers.policy.actions import seen_from_tool, width_of
from labctl.drivers.policy.body import Body, body_of
from labctl.drivers.policy.inputs import history_s
from labctl.drivers.policy.options import PolicyOptions
from labctl.drivers.policy.server_metadata import (
    CALL_TIMES,
    MODEL_TIMES,
    greatest,
    resources_reported,
    seconds_reported,
)
from labctl.drivers.policy.server_process import ServerProcess
from labctl.drivers.policy.software import loaded, reported
from labctl.errors import DeviceLost, InputError
from labctl.realtime import VISIT_NS

RETRY_S = 0.2
BEYOND_S = 0.5  # the controller node gives up first; then the wire may


class Link(Protocol):
    """The wire to one policy. Each verb ends within `timeout_s`, or soon after `close` in another thread.

    connect: what the server says of itself; DeviceLost when it is not there yet, DeviceRefused when it does not fit the
    card. ask: the answer as {name: array}, with whatever else was in it. reset: a new episode begins; `session` tells
    it from others.
    """

    def connect(self, timeout_s: float) -> Mapping[str, Any]: ...
    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]: ...
    def reset(self, session: str, timeout_s: float) -> None: ...
    def close(self) -> None: ...


class PolicyClient:
    """See the module and `labctl.devices.Controller`, `Telling`."""

    kind: Kind = "real"

    def __init__(self, card: Card, link: Link, body: Body) -> None:
        self._card = card
        self._link = link
        self._body = body
        self._clock = MonotonicClock()
        self._closed = threading.Event()
        self._server = ServerProcess(card.server) if card.server.start else None
        self._connected = False
        self.load_s = self.warm_s = 0.0
        self.told: Mapping[str, float] = {}
        self.software: Mapping[str, str] = {}
        self.pace = pace_of(card)

    def load(self) -> None:
        """Start the server if the card says how, and connect within `ready_s`. Raises DeviceLost, DeviceRefused."""
        began_ns = self._clock.now_ns()
        until_ns = began_ns + round(self._card.server.ready_s * SECOND)
        if self._server is not None:
            self._server.start()
            if self._closed.is_set():  # `close` may have come before there was one to stop
                self._server.stop()
        last = "it was not asked"
        while (left_ns := until_ns - self._clock.now_ns()) > 0:
            try:
                said = self._link.connect(left_ns / SECOND)
                self.told = resources_reported(said)
                self.software = {**self._card.server.software, **reported(said)}
            except DeviceLost as error:
                why = (self._server.waits_for() if self._server is not None else None) or str(error)
                if why != last:  # for the controller's log: an episode that is void before this gives up has it
                    sys.stderr.write(f"waiting for the policy server: {why}\n")
                    sys.stderr.flush()
                last = why
            else:
                self._connected = True
                self.load_s = (self._clock.now_ns() - began_ns) / SECOND
                return
            problem = None if self._server is None else self._server.problem()
            if problem is not None:
                raise DeviceLost(problem)
            if self._closed.wait(RETRY_S):
                raise DeviceLost("closed while it waited for the policy server")
        raise DeviceLost(f"no policy server within {self._card.server.ready_s:g} s: {last}")

    def warm(self, observation: Observation) -> None:
        """Ask `warm_calls` questions, whose answers must be ones that could be followed. Raises DeviceLost,
        DeviceRefused.
        """
        began_ns = self._clock.now_ns()
        for _ in range(self._card.timing.warm_calls):
            _, resources = self._answer(observation, self._card.server.ready_s)
            self.told = greatest(self.told, resources)
        self.warm_s = (self._clock.now_ns() - began_ns) / SECOND
        if (module := getattr(self._link, "module", None)) is not None:  # what it imports at its first call, too
            self.software = {**self.software, **loaded(module)}

    def reset(self, seed: int) -> None:
        """A new episode begins: the server forgets the last one, where its dialect has a reset."""
        if self._connected:
            self._link.reset(f"{seed:016x}", self._card.timing.give_up_s)

    def infer(self, observation: Observation) -> ActionChunk:
        """The policy's answer. Raises DeviceLost, DeviceRefused."""
        began_ns = self._clock.now_ns()
        chunk, _ = self._answer(observation, self._card.timing.give_up_s + BEYOND_S)
        chunk.delay_s = (self._clock.now_ns() - began_ns) / SECOND
        return chunk

    def _answer(self, seen: Observation, timeout_s: float) -> tuple[ActionChunk, Mapping[str, float]]:
        answer = self._link.ask(self._body.question(seen), timeout_s)
        chunk = self._body.chunk(answer, seen.arrays)
        resources = resources_reported(answer)
        chunk.server_s, chunk.call_s = seconds_reported(answer, MODEL_TIMES), seconds_reported(answer, CALL_TIMES)
        chunk.gpu_memory_mb = resources.get("gpu_memory_mb", math.nan)
        return chunk, resources

    def close(self) -> None:
        """Let go of the connection and of the server, if it is ours. Any thread; idempotent; returns at once."""
        self._closed.set()
        self._link.close()
        if self._server is not None:
            self._server.stop()


def pace_of(card: Card) -> Pace:
    """How a card wants its policy to be asked."""
    timing = card.timing
    cameras = card.cameras
    return Pace(
        cameras=cameras,
        max_age_s=card.image.max_age_s if cameras else math.inf,
        history_s=history_s(card),
        deadline_s=timing.deadline_s,
        late=timing.late,
        give_up_s=timing.give_up_s,
        ask_ahead_s=timing.ask_ahead_s,
    )


def card_for(driver: str, options: PolicyOptions, cell: Cell) -> tuple[Card, Body]:
    """The card of an arm's options, its [tool] as seen from the cell's tool centre point, and what it leads of the
    cell, after comparing the two.

    Raises InputError for a card of another dialect, a camera the cell has not, a frame that nobody knows, or actions
    and steps that this robot cannot follow.
    """
    card = options.card
    dialect = driver.removeprefix("policy_")
    if card.policy.dialect != dialect:
        raise InputError(f"{driver} speaks {dialect}, its card says {card.policy.dialect!r}")
    there = [camera.name for camera in cell.camera]
    for camera in card.cameras:
        if camera not in there:
            raise InputError(f"the card reads camera {camera!r}; this cell has: {', '.join(there) or 'none'}")
    _check_axes(card, cell)
    for side in cell.sides:
        _check_robot(card, side)
    cards = tuple(in_frame_of(card, side) for side in cell.sides)
    return cards[0], body_of(cards, cell)


def _check_robot(card: Card, cell: Cell) -> None:
    """Actions and steps that a robot of a cell cannot follow. Raises InputError."""
    action, timing, robot, dof = card.action, card.timing, cell.robot, cell.joints
    width = width_of(action, dof)
    if action.scale is not None and len(action.scale) != width:
        raise InputError(f"the card's scale has {len(action.scale)} values; {action.space} needs {width} here")
    if "joint" in action.space and action.space.startswith("droid") and dof != 7:
        raise InputError(f"the card's {action.space} is for seven joints; this cell's robot has {dof}")
    real_time = cell.cell.clock != "manual"  # where the robot is visited, and measured, at least so often
    measured_hz = max(robot.observe_hz, SECOND / VISIT_NS) if real_time else robot.observe_hz
    if action.stepped and measured_hz < timing.rate_hz:
        text = f"counts from what is measured at each of {timing.rate_hz:g} steps a second"
        raise InputError(f"{action.space} {text}; this cell measures {measured_hz:g} times: raise its observe_hz")


def _check_axes(card: Card, cell: Cell) -> None:
    """A card of named axes names those of this robot, in their units; one of another space gives one opening, and one
    that reads an opening reads it of a hand that has one.
    """
    space, every = card.action.space, list[Sequence[Axis]]()
    read = {name.rpartition(".")[::2] for entry in card.input for name in entry.state or ()}
    drivers = " and ".join(robot.driver for robot in cell.robots)
    for name, robot in zip(cell.names, cell.robots, strict=True):
        own = declared_axes(robot.driver, robot.options)
        if space == "axes" and own is None:
            raise InputError(f"the card names axes, and {robot.driver} declares none; use joint_position and a gripper")
        states = {state for of, state in read if of == name}
        if "axes" in states and own is None:
            text = f"the card reads the state axes, and {robot.driver} declares none"
            raise InputError(f"{text}; use joint_position and gripper")
        if own is not None and [(axis.name, axis.kind) for axis in hand_of(own)] != [(GRIPPER, "opening")]:
            hand = ", ".join(f"{axis.name} [{axis.unit}]" for axis in hand_of(own))
            text = f"one opening; the hand of {robot.driver} has {hand}"
            if space != "axes":
                raise InputError(f'the card\'s {space} ends in {text}: say space = "axes" and name them')
            if "gripper" in states:
                raise InputError(f"the card reads the state gripper, {text}: read axes, all of them in their units")
        if "joint" in space and twist_of(own or ()):
            text = f"the card's {space} does not say which numbers are speeds, and {robot.driver} has a base"
            raise InputError(f'{text}: say space = "axes" and name them')
        every.append(prefixed(name, own or ()) if name else own or ())
    if space == "axes" and (problem := action_problem(card.action.axis, composed(*every), drivers)):
        raise InputError(problem)


def in_frame_of(card: Card, cell: Cell) -> Card:
    """The card with its [tool] as seen from the tool centre point of a cell. Raises InputError."""
    if card.tool.frame != "flange":
        return card
    tool = seen_from_tool(card.tool, tool_of(cell))
    if card.action.space == "tcp_velocity" and any(tool.shift_m):
        raise InputError(
            "the card's tcp_velocity is in frame \"flange\", which is not this cell's tool centre point; "
            'such a velocity cannot be followed: have the policy give it of the tool, and say frame = "tcp"'
        )
    return card.model_copy(update={"tool": tool})
