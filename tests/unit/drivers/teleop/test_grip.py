"""Nobody drops an item by letting go of the device, or by taking hold of it again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND
from labctl.drivers.teleop.grip import LET_GO_NS, Grip

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
