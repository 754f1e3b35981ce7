"""A person drives one robot with a device, as one arm of the experiment like any other.

May not: move on when the hand lets go, the input is stale or the device is gone; start the clock before the clutch is
held and a leader stands near the arm; or take a deflection for a wish before all of the device was seen at rest.

The cell's [teleop] table names the device and the caps. Alignment and clutch come before go: the episode is ready once
they hold; whoever is not ready when it is due to start is told what is missing and the start is given again. Without a
person at a console it is void.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.config.cell_schema import Caps, Cell
from labctl.devices import ActionChunk, Kind, Observation, Pace, declared_axes, load
from labctl.drivers.teleop.gate import HOLD, Device, Gate, Reading, axis_map, mapped, of_another_robot
from labctl.drivers.teleop.other_axes import HandGrip, OpeningGrip, OtherAxes, other_axes
from labctl.drivers.teleop.polling import Poller
from labctl.drivers.teleop.rest import Rest
from labctl.errors import DeviceLost, InputError
from labctl.plain import Hand

# A hand is asked with every observation, 50 times a second. A leader's target is due when the next one comes; a rate
# device's speed is held for longer, which covers a question that is answered late.
DT_S = 0.02
LEADER_S = (0.03, 0.15)  # a leader's target is due after as long as passed since the last question, within these
ACTIONS = 5
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
        others: OtherAxes | None = None,
        clock: Clock | None = None,
    ) -> None:
        """others: of a robot whose axes are more than joints and one opening."""
        self.load_s = self.warm_s = 0.0
        ahead_s = LEADER_S[0] if device.leader else DT_S * ACTIONS  # with the next observation
        self.pace = Pace(ask_ahead_s=ahead_s, give_up_s=2.0)
        self._clock = clock or MonotonicClock()
        self._device, self._what, self._caps, self._axes, self._opening_m = device, what, caps, axes, opening_m
        self._others = others
        self._rest = Rest(caps.deadband)
        self._poller = Poller(device, what, self._clock, self._see)
        self._done = False  # said since the last answer
        self._answers = self._had_hold = False
        self._asked_ns: int | None = None  # last, of this grip
        self._grip = self._new_grip()
        self._presses = 0  # of a button that opens and closes by turns, as many as count no more
        self._turned: float | None = None  # where they have turned the gripper in this hold of the clutch
        self._q: np.ndarray | None = None  # of a robot of more axes: where those that a leader does not lead stay
        self.reset(0)

    @property
    def leader(self) -> bool:
        """Whether its device is a small copy of the robot."""
        return self._device.leader

    @property
    def slides(self) -> bool:
        """Whether its device drives a rail or a base."""
        return self._others is not None and len(self._others.columns) > 0

    def load(self) -> None:
        """Open the device. Raises DeviceLost."""
        self._poller.start()

    def ready(self, observation: Observation) -> bool:
        """Whether the clutch is held and a leader stands near the arm now. Raises DeviceLost."""
        ready = self._gate.ready(*self._led(observation), self._clock.now_ns())
        self._had_hold = self._had_hold or ready
        return ready

    def closed(self, wait_s: float) -> bool:
        """Waits so long; whether it was closed."""
        return self._poller.rest(wait_s)

    def warm(self, observation: Observation) -> None:
        """Wait until the clutch is held and a leader stands near the arm; whoever waits in vain is not ready."""
        while not self.ready(observation):
            if self.closed(0.02):
                raise DeviceLost(f"closed before the hand was ready: {self._gate.why}")

    def reset(self, seed: int) -> None:
        """A new episode: the clutch takes hold anew, and of the gripper. That it had hold while it was waited for stays
        known until the hand has been asked.
        """
        self._done, self._answers, self._had_hold = False, False, self._had_hold and not self._answers
        self._asked_ns = self._turned = None
        self._gate = Gate(self._caps, quiet=self._device.quiet)
        silent, self._grip, self._q = self._grip.silent, self._new_grip(), None
        if silent:  # a button that is pressed with the clutch, before go, counts
            self._grip.hear(None)

    def hold(self, hand: np.ndarray) -> None:
        """Somebody else has asked the hand for this, (h,), an opening in m where nothing else is declared: it stays
        until the person takes it over.
        """
        self._grip.hold(hand)
        self._turned = None

    def wants(self, observation: Observation) -> bool:
        """Whether the hand takes the arm, or keeps it: for a take-over during a policy episode. Raises DeviceLost."""
        return self._gate.wants(*self._led(observation), self._clock.now_ns())

    def infer(self, observation: Observation) -> ActionChunk:
        """What the hand asks for now. Raises DeviceLost."""
        reading, now_ns = self._newest(), self._clock.now_ns()
        hand = self._hand(reading, observation, now_ns)
        kept, self._done, self._answers = self._done and self._answers, False, True  # before go it said nothing
        done = kept or bool(reading and reading.done)
        if self._device.leader:
            since_s = 0.0 if self._asked_ns is None else (now_ns - self._asked_ns) / SECOND
            dt_s = min(max(since_s, LEADER_S[0]), LEADER_S[1])
            self._asked_ns = now_ns
            q = np.asarray(observation.arrays["q"], dtype=float)
            target = self._whole(q, self._gate.joints(reading, self._turning(q), dt_s, now_ns))
            return ActionChunk("joint_position", target[None, :], _rows(hand, 1), dt_s, 1, done=done)
        slides = self._gate.slides(reading, now_ns)
        if self._others is not None and slides.any():
            speeds = np.zeros(np.size(observation.arrays["q"]))
            speeds[self._others.columns] = slides * self._others.speeds
            led, space = np.tile(speeds, (ACTIONS, 1)), "joint_velocity"
        else:
            led, space = np.tile(self._gate.twist(reading, now_ns), (ACTIONS, 1)), "tcp_velocity"
        return ActionChunk(space, led, _rows(hand, ACTIONS), DT_S, ACTIONS, done=done)

    def hand(self, q: np.ndarray) -> Hand:
        """What the person at the device has to see: the device, and `Gate.told`. Raises nothing; from any thread. Of a
        device whose clutch is not held for long (`momentary`, a keyboard) it is enough that it had hold once.
        """
        try:
            reading, lost = self._newest(), ""
        except DeviceLost as error:
            reading, lost = None, str(error)
        hand = self._gate.read(reading, self._turning(q), self._clock.now_ns(), self._what)
        waits = hand["waits"]
        if waits == HOLD:
            typed = self._had_hold and getattr(self._device, "momentary", False)
            waits = "" if typed else getattr(self._device, "clutch", HOLD)
        return {**hand, "waits": lost or waits}

    def _led(self, observation: Observation) -> tuple[Reading | None, np.ndarray]:
        """The newest reading and the joints that a leader leads. Raises DeviceLost, also for a leader of others."""
        reading, q = self._newest(), self._turning(observation.arrays["q"])
        if other := of_another_robot(reading, q):
            raise DeviceLost(f"{self._what}: {other}; correct [teleop.options]")
        return reading, q

    def _see(self, reading: Reading) -> None:
        """Every reading, also one between two questions: a key is pressed in one of them."""
        self._rest.see(reading)
        self._done = self._done or reading.done

    def _newest(self) -> Reading | None:
        reading = self._poller.newest()
        if reading is not None:
            self._grip.hear(reading.grip)
            if not reading.engaged:  # a press of a hold that is over
                self._presses = max(self._presses, reading.presses)
        return None if reading is None else replace(self._mapped(reading), waits=self._rest.missing)

    def _mapped(self, reading: Reading) -> Reading:
        return mapped(reading, self._axes, None if self._others is None else self._others.slides)

    def _turning(self, q: np.ndarray) -> np.ndarray:
        """Of the arm's axes those that turn, which a leader leads."""
        q = np.asarray(q, dtype=float)
        return q if self._others is None else q[self._others.joints]

    def _whole(self, q: np.ndarray, turning: np.ndarray) -> np.ndarray:
        """All of the arm's axes: what a leader does not lead stays where it was when asked first; a base rests."""
        if self._others is None:
            return turning
        if self._q is None:
            self._q = q.copy()
        target = self._q.copy()
        target[self._others.joints] = turning
        target[self._others.twist] = 0.0
        return target

    def _new_grip(self) -> HandGrip | OpeningGrip:
        if self._others is not None:
            return HandGrip(self._others.closed, self._others.open, trigger=self._device.leader)
        return OpeningGrip(*self._opening_m, trigger=self._device.leader)

    def _hand(self, reading: Reading | None, observation: Observation, now_ns: int) -> np.ndarray:
        """The hand's axes, (h,): what the person asks for, or what was asked for before they let go."""
        measured = np.ravel(observation.arrays["gripper"]).astype(float)
        engaged = reading is not None and not self._gate.resting(reading, now_ns)
        if reading is None or not engaged:
            self._turned = None
        elif (reading.presses - self._presses) % 2:
            self._turned = self._grip.opposite(measured)
        if reading is not None and engaged:
            self._presses = max(self._presses, reading.presses)
        grip = self._turned if reading is None or reading.grip is None else reading.grip
        return self._grip.asks(grip, measured, now_ns, engaged=engaged)

    def close(self) -> None:
        self._poller.stop()


def _rows(hand: np.ndarray, n: int) -> np.ndarray:
    """n times the same, as `ActionChunk.gripper` has it."""
    return np.full(n, hand[0]) if len(hand) == 1 else np.tile(hand, (n, 1))


def of_side(cell: Cell) -> Teleop:
    """A person at the device of a cell, or of one of its robots. Raises InputError for a cell without [teleop]."""
    table = cell.teleop
    if table is None:
        raise InputError(f"the cell has no [teleop] table; add one with device = one of {', '.join(DEVICES)}")
    device, opening = load(table.driver, table.options), (table.closed_m, table.open_m)
    axes = declared_axes(cell.robot.driver, cell.robot.options)
    others = None if axes is None else other_axes(table, axes)
    return Teleop(device, table.device, table, axes=axis_map(table.axes), opening_m=opening, others=others)
