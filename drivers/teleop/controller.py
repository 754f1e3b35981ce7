"""Driver "teleop": a person drives the arm, as one arm of the experiment like any other.

May not: move on when the hand lets go, the input is stale or the device is gone; start the clock before the clutch is
held and a leader stands near the arm; or take a deflection for a wish before all of the device was seen at rest.

The cell's [teleop] table names the device and the caps. Alignment and clutch come before go: the episode is ready once
they hold; whoever is not ready when the arming time is over voids it, as a policy that is not would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from labctl.drivers.teleop.gate import Device, Gate, Reading, axis_map, mapped
from labctl.drivers.teleop.polling import Poller
from labctl.drivers.teleop.rest import Rest

from labctl.clock import Clock, MonotonicClock
from labctl.config.cell_schema import Caps, TeleopTable
from labctl.config.options import NoOptions
from labctl.devices import ActionChunk, Kind, Observation, Pace, load
from labctl.errors import DeviceLost, InputError

DT_S = 0.05
ACTIONS = 2  # of a rate device: the second covers a question that is answered late
ASK_AHEAD_S = 0.05
DEVICES = ("keyboard", "gamepad", "spacemouse", "gello")


class Teleop:
    """See the module. A `labctl.devices.Controller` of kind "real"."""

    kind: Kind = "real"

    def __init__(
        self,
        device: Device,
        what: str,
        caps: Caps,
        *,
        axes: np.ndarray,
        opening_m: tuple[float, float],
        clock: Clock | None = None,
    ) -> None:
        self.load_s = self.warm_s = 0.0
        self.pace = Pace(ask_ahead_s=ASK_AHEAD_S, give_up_s=2.0)
        self._clock = clock or MonotonicClock()
        self._device, self._what, self._caps, self._axes, self._opening_m = device, what, caps, axes, opening_m
        self._rest = Rest(caps.deadband)
        self._poller = Poller(device, what, self._clock, self._rest.see)
        self._gate = self._fresh()

    def _fresh(self) -> Gate:
        return Gate(self._caps, leader=self._device.leader, quiet=self._device.quiet)

    def load(self) -> None:
        """Open the device. Raises DeviceLost."""
        self._poller.start()

    def warm(self, observation: Observation) -> None:
        """Wait until the clutch is held and a leader stands near the arm; whoever waits in vain is not ready."""
        q = np.asarray(observation.arrays["q"], dtype=float)
        while not self._gate.ready(self._newest(), q, self._clock.now_ns()):
            if self._poller.rest(0.02):
                raise DeviceLost(f"closed before the hand was ready: {self._gate.why}")

    def reset(self, seed: int) -> None:
        """A new episode: the clutch takes hold anew."""
        self._gate = self._fresh()

    def wants(self, observation: Observation) -> bool:
        """Whether the hand takes the arm, or keeps it: for a take-over during a policy episode. Raises DeviceLost."""
        q = np.asarray(observation.arrays["q"], dtype=float)
        return self._gate.wants(self._newest(), q, self._clock.now_ns())

    def infer(self, observation: Observation) -> ActionChunk:
        """What the hand asks for now. Raises DeviceLost."""
        reading, now_ns = self._newest(), self._clock.now_ns()
        opening = self._opening(reading, observation)
        done = bool(reading and reading.done)
        if self._device.leader:
            q = self._gate.joints(reading, np.asarray(observation.arrays["q"], dtype=float), DT_S, now_ns)
            return ActionChunk("joint_position", q[None, :], np.array([opening]), DT_S, 1, done=done)
        twist = np.tile(self._gate.twist(reading, now_ns), (ACTIONS, 1))
        return ActionChunk("tcp_velocity", twist, np.full(ACTIONS, opening), DT_S, ACTIONS, done=done)

    def hand(self, q: np.ndarray) -> dict[str, Any]:
        """What the person at the device has to see: the device, and `Gate.told`. Raises nothing; from any thread."""
        try:
            reading, lost = self._newest(), ""
        except DeviceLost as error:
            reading, lost = None, str(error)
        told = self._gate.told(reading, np.asarray(q, dtype=float), self._clock.now_ns())
        return {"device": self._what, **told, **({"waits": lost} if lost else {})}

    def _newest(self) -> Reading | None:
        reading = self._poller.newest()
        return None if reading is None else replace(mapped(reading, self._axes), waits=self._rest.missing)

    def _opening(self, reading: Reading | None, observation: Observation) -> float:
        """The gripper's opening in m: what the hand asks for, or what it is."""
        if reading is None or reading.grip is None:
            return float(np.ravel(observation.arrays["gripper"])[0])
        closed, opened = self._opening_m
        return closed + reading.grip * (opened - closed)

    def close(self) -> None:
        self._poller.stop()


def build(options: NoOptions, *, cell: Mapping[str, Any], fixture: Mapping[str, Any]) -> Teleop:
    """A person at the cell's teleoperation device. It has no options: the device is the cell's.

    Raises InputError for a cell without [teleop].
    """
    if cell.get("teleop") is None:
        raise InputError(f"the cell has no [teleop] table; add one with device = one of {', '.join(DEVICES)}")
    table = TeleopTable.model_validate(cell["teleop"])
    device, opening = load(table.driver, table.options), (table.closed_m, table.open_m)
    return Teleop(device, table.device, table, axes=axis_map(table.axes), opening_m=opening)
