"""Nobody drops an item by letting go of the device, or by taking hold of it again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, ManualClock
from labctl.devices import Observation
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Caps, Reading, axis_map
from labctl.drivers.teleop.grip import LET_GO_NS, Grip
from labctl.drivers.teleop.other_axes import OtherAxes
from labctl.nodes.takeover import TakeOver

OPEN_M = 0.08
STEP_NS = 20 * MILLISECOND


class Trigger:
    """A leader's trigger, asked every 20 ms. pull from 0 (let go) to 1; its first fifth is the clutch (see gello)."""

    def __init__(self, *, trigger: bool = True, measured_m: float = OPEN_M) -> None:
        self.grip, self.now_ns, self.measured_m = Grip(0.0, OPEN_M, trigger=trigger), 0, measured_m

    def pull(self, *pulls: float) -> float:
        for pull in pulls:
            self.now_ns += STEP_NS
            share = 1.0 - float(np.clip((pull - 0.2) / 0.8, 0.0, 1.0))
            asked = self.grip.asks(share, self.measured_m, self.now_ns, engaged=pull > 0.05)
        return asked


def test_a_trigger_that_is_let_go_leaves_the_item_in_the_fingers() -> None:
    hand = Trigger()
    assert hand.pull(0.1, 0.5, 1.0) == 0.0
    assert hand.pull(0.6, 0.15, 0.0) == 0.0, "its spring takes it through open to rest"
    assert hand.pull(*[0.0] * 100) == 0.0


def test_a_trigger_that_stays_in_the_clutch_opens() -> None:
    hand = Trigger()
    hand.pull(0.1, 1.0)
    assert hand.pull(*[0.1] * (LET_GO_NS // STEP_NS + 2)) == OPEN_M


def test_closing_counts_at_once() -> None:
    hand = Trigger()
    hand.pull(0.1)
    assert hand.pull(0.6) == pytest.approx(OPEN_M / 2)


def test_who_takes_hold_again_drops_nothing_until_the_trigger_has_come_to_where_the_gripper_is() -> None:
    hand = Trigger()
    hand.pull(0.1, 1.0, 0.0)
    assert hand.pull(0.1, 0.3, 0.6, 0.9) == 0.0
    assert hand.pull(1.0) == 0.0
    assert hand.pull(*[0.6] * 12) == pytest.approx(OPEN_M / 2), "from there on it is the hand's"


def test_what_somebody_else_asked_for_stays_until_the_hand_takes_it_over() -> None:
    hand = Trigger(measured_m=0.031)
    hand.grip.hold(0.0)
    assert hand.pull(0.1, 0.1, 0.4) == 0.0, "not what is measured between fingers that hold an item"
    assert hand.pull(1.0, *[0.1] * 12) == OPEN_M


def test_a_button_counts_when_it_is_first_pressed() -> None:
    grip = Grip(0.0, OPEN_M, trigger=False)
    grip.hold(0.03)
    assert [grip.asks(share, 0.03, 0, engaged=True) for share in (None, None, 1.0, 0.0)] == [0.03, 0.03, OPEN_M, 0.0]
    assert grip.asks(0.0, 0.03, 0, engaged=False) == 0.0
    assert grip.asks(0.0, 0.03, 0, engaged=True) == 0.0


def test_before_anybody_asked_it_is_left_as_it_was_first_seen() -> None:
    grip = Grip(0.0, OPEN_M, trigger=False)
    assert [grip.asks(None, at, 0, engaged=True) for at in (0.05, 0.02)] == [0.05, 0.05]


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.booleans())
def test_without_the_clutch_nothing_changes_what_is_asked(steps: list[tuple[float, bool]], trigger: bool) -> None:
    grip, before = Grip(0.0, OPEN_M, trigger=trigger), 0.04
    for number, (share, engaged) in enumerate(steps):
        asked = grip.asks(share, 0.04, number * STEP_NS, engaged=engaged)
        assert engaged or asked == before
        before = asked


def test_a_button_that_is_pressed_with_the_clutch_before_go_counts() -> None:
    grip = Grip(0.0, OPEN_M, trigger=False)
    grip.hear(None)
    assert grip.asks(0.0, OPEN_M, 0, engaged=True) == 0.0 and not grip.silent


FINGERS = OtherAxes(
    joints=np.arange(7), columns=np.array([], int), slides=np.zeros((0, 6)), speeds=np.zeros(0),
    closed=np.array([1.5, 1.0]), open=np.array([0.0, 0.2]), twist=np.array([], int),
)  # fmt: skip


class Button:
    """A hand whose device has one button that opens and closes by turns: a SpaceMouse, a keyboard."""

    def __init__(self, others: OtherAxes | None = None) -> None:
        self.clock, self.presses = ManualClock(), 0
        axes = axis_map(("x", "y", "z", "rx", "ry", "rz"))
        device: Any = SimpleNamespace(leader=False, quiet=True)
        self.hand = Teleop(
            device, "puck", Caps(ramp_s=0.0), axes=axes, opening_m=(0.0, OPEN_M), others=others, clock=self.clock
        )
        self.says()

    def says(self, *, held: bool = False, pressed: int = 0) -> None:
        self.presses += pressed
        self.clock.sleep_until(self.clock.now_ns() + STEP_NS)
        reading = Reading(self.clock.now_ns(), axes=np.zeros(6), engaged=held, presses=self.presses)
        self.hand._poller = SimpleNamespace(newest=lambda: reading)  # type: ignore[assignment]
        self.hand._see(reading)

    def seen(self, *measured: float) -> Observation:
        return Observation(self.clock.now_ns(), {"q": np.zeros(7), "gripper": np.array(measured or (OPEN_M,))})

    def asks(self, *, held: bool = True, pressed: int = 0) -> float:
        self.says(held=held, pressed=pressed)
        return float(self.hand.infer(self.seen()).gripper[-1])


def test_a_button_that_opens_and_closes_by_turns_begins_with_the_gripper_as_it_is() -> None:
    one = Button()
    assert [one.asks(), one.asks(pressed=1), one.asks(), one.asks(pressed=1), one.asks(pressed=3)] == [
        *(OPEN_M, 0.0, 0.0, OPEN_M),
        0.0,
    ], "open as measured; three presses between two questions are one"
    assert one.asks(held=False, pressed=1) == 0.0 and one.asks() == 0.0, "a press of a hold that is over is none"
    assert one.asks(pressed=1) == OPEN_M


def test_a_press_of_such_a_button_before_go_counts() -> None:
    one = Button()
    one.says(held=True, pressed=1)
    one.hand.warm(one.seen())
    one.hand.reset(0)
    assert one.asks() == 0.0


@pytest.mark.parametrize(("policy", "first"), [(OPEN_M, 0.0), (0.0, OPEN_M)])
@pytest.mark.parametrize("with_the_clutch", [True, False])
def test_the_first_press_of_any_take_over_turns_the_gripper_from_where_the_policy_has_it(
    policy: float, first: float, with_the_clutch: bool
) -> None:
    """In a second take-over it did nothing, or shut what the policy had opened since only at the second press."""
    one = Button()
    over = TakeOver(one.hand)

    def look(*, held: bool, pressed: int = 0) -> float | None:
        one.says(held=held, pressed=pressed)
        chunk = over.look(one.seen(), one.clock.now_ns(), np.array([policy]))
        return None if chunk is None else float(chunk.gripper[-1])

    for take_over in ("first", "second", "third"):
        assert look(held=False) is None
        if with_the_clutch:
            assert look(held=True, pressed=1) == first, take_over
        else:
            assert look(held=True) == policy
            over._next_ns = 0  # it is asked again at once
            assert look(held=True, pressed=1) == first, take_over
        assert look(held=False) == first and not over.driving


def test_a_hand_of_several_fingers_closes_and_opens_by_turns_from_where_it_was_asked_to_be() -> None:
    one = Button(FINGERS)
    one.hand.hold(np.array([1.4, 0.9]))
    for pressed, fingers in ((0, [1.4, 0.9]), (1, [0.0, 0.2]), (1, [1.5, 1.0])):
        one.says(held=True, pressed=pressed)
        assert one.hand.infer(one.seen(1.0, 0.5)).gripper[-1] == pytest.approx(fingers)
