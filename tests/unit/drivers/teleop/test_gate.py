"""From a hand to actions: nothing moves without a clutch, beyond a cap, on stale input, or with a jump."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.drivers.teleop.gate import Caps, Gate, Reading, axis_map, mapped
from labctl.errors import InputError

CAPS = Caps(linear_m_s=0.2, angular_rad_s=0.5, joint_rad_s=1.0, deadband=0.1, stale_s=0.1, ramp_s=0.4, align_rad=0.5)
Q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.7])


def puck(*axes: float, t_ns: int = 0, engaged: bool = True) -> Reading:
    return Reading(t_ns, axes=np.array(axes, dtype=float), engaged=engaged)


def leader(joints: np.ndarray, t_ns: int = 0, engaged: bool = True) -> Reading:
    return Reading(t_ns, joints=joints, engaged=engaged)


def rate(caps: Caps = CAPS) -> Gate:
    return Gate(caps, quiet=False)


def test_without_the_clutch_nothing_moves():
    assert not rate().twist(puck(1, 1, 1, 1, 1, 1, engaged=False), 0).any()
    assert not rate().twist(None, 0).any()


def test_a_wish_comes_in_over_the_ramp_and_stops_at_once():
    gate, full = rate(), lambda ms: puck(1, 0, 0, 0, 0, 0, t_ns=ms * MILLISECOND)
    speeds = [gate.twist(full(ms), ms * MILLISECOND)[0] for ms in (0, 100, 200, 400, 800)]
    assert speeds == pytest.approx([0.0, 0.05, 0.1, 0.2, 0.2])
    assert not gate.twist(puck(1, 0, 0, 0, 0, 0, t_ns=900 * MILLISECOND, engaged=False), 900 * MILLISECOND).any()
    assert gate.twist(full(950), 950 * MILLISECOND)[0] == 0.0, "the ramp begins anew"


def test_stale_input_is_rest():
    gate = rate()
    gate.twist(puck(1, 0, 0, 0, 0, 0), 0)
    assert not gate.twist(puck(1, 0, 0, 0, 0, 0), 101 * MILLISECOND).any()


def test_small_deflections_are_rest_and_the_rest_is_stretched_to_full():
    gate = rate(Caps(linear_m_s=0.2, deadband=0.1, ramp_s=0.0))
    assert not gate.twist(puck(0.09, 0, 0, 0, 0, 0), 0).any()
    assert gate.twist(puck(1.0, 0, 0, 0, 0, 0), 0)[0] == pytest.approx(0.2)


@given(st.lists(st.floats(-40, 40), min_size=6, max_size=6))
def test_no_wish_is_faster_than_the_caps(axes):
    twist = rate(Caps(linear_m_s=0.2, angular_rad_s=0.5, ramp_s=0.0)).twist(puck(*axes), 0)
    assert np.linalg.norm(twist[:3]) <= 0.2 + 1e-12 and np.linalg.norm(twist[3:]) <= 0.5 + 1e-12


def test_a_leader_that_stands_elsewhere_is_not_ready_and_says_which_joint():
    gate = Gate(CAPS, quiet=False)
    away = Q + np.array([0, 0, 0, 0.8, 0, 0, 0])
    assert not gate.ready(leader(away), Q, 0)
    assert gate.why == "bring the leader to the robot: joint 4 is 0.80 rad away"
    assert not gate.ready(leader(Q, engaged=False), Q, 0) and gate.why == "hold the clutch"
    assert not gate.ready(leader(Q), Q, SECOND) and "fresh" in gate.why
    assert gate.ready(leader(Q + 0.1), Q, 0)


def test_a_leader_of_another_robot_is_told_in_words():
    gate = Gate(CAPS, quiet=False)
    says = "the leader has another number of joints (7) than the robot (6)"
    for engaged in (True, False):
        one = leader(Q, engaged=engaged)
        assert not gate.ready(one, Q[:6], 0) and gate.why == says
        assert not gate.wants(one, Q[:6], 0)
        told = gate.read(one, Q[:6], 0)
        assert told["waits"] == says and told["gap_rad"] is None


def test_the_arm_follows_a_leader_without_the_jump_to_it():
    gate, q = Gate(CAPS, quiet=False), Q.copy()
    first = gate.joints(leader(Q + 0.2), q, 0.05, 0)
    assert np.array_equal(first, q)
    for step in range(1, 40):
        now_ns = step * 50 * MILLISECOND
        q = gate.joints(leader(Q + 0.3, t_ns=now_ns), q, 0.05, now_ns)
    assert q == pytest.approx(Q + 0.1), "it moved as far as the leader did since the clutch took hold"


@given(st.lists(st.floats(-0.3, 0.3), min_size=7, max_size=7), st.integers(0, 2000))
def test_no_step_is_faster_than_the_cap(shift, ms):
    gate = Gate(CAPS, quiet=False)
    gate.joints(leader(Q), Q, 0.05, 0)
    now_ns = ms * MILLISECOND
    step = gate.joints(leader(Q + np.array(shift), t_ns=now_ns), Q, 0.05, now_ns) - Q
    assert np.abs(step).max() <= 1.0 * 0.05 + 1e-12


def test_a_leader_that_jumps_moves_nothing():
    gate = Gate(CAPS, quiet=False)
    gate.joints(leader(Q), Q, 0.05, 0)
    t_ns = 500 * MILLISECOND
    assert np.array_equal(gate.joints(leader(Q + 1.0, t_ns=t_ns), Q, 0.05, t_ns), Q)
    later = t_ns + 500 * MILLISECOND
    assert np.array_equal(gate.joints(leader(Q + 1.0, t_ns=later), Q, 0.05, later), Q), "from there on it follows anew"


def test_letting_go_of_a_leader_leaves_the_arm():
    gate = Gate(CAPS, quiet=False)
    gate.joints(leader(Q), Q, 0.05, 0)
    assert np.array_equal(gate.joints(leader(Q + 0.3, engaged=False), Q - 0.1, 0.05, 0), Q), "not where it lags"
    later = 30 * MILLISECOND
    assert np.array_equal(gate.joints(leader(Q + 0.3, t_ns=later), Q, 0.05, later), Q), "nor is there a jump"
    away = gate.joints(leader(Q + 0.3, t_ns=later, engaged=False), Q + 0.6, 0.05, later)
    assert np.array_equal(away, Q + 0.6), "a robot that somebody else has moved stays there"


def test_a_target_goes_on_from_the_last_one_and_not_from_joints_that_lag():
    """*Seen:* a hand at 0.8 rad/s, a cap of 0.8 rad/s, a robot whose joints lag 0.2 s: 0.18 rad/s."""
    gate, last = Gate(CAPS.model_copy(update={"ramp_s": 0.0}), quiet=False), Q
    for step in range(100):
        now_ns = step * 20 * MILLISECOND
        lagging = Q + 0.8 * max(0.0, 0.02 * step - 0.2)
        asked = gate.joints(leader(Q + 0.8 * 0.02 * step, t_ns=now_ns), lagging, 0.03, now_ns)
        assert step == 0 or asked - last == pytest.approx(np.full(7, 0.016))
        last = asked


def test_a_target_never_leads_an_arm_that_does_not_follow_by_more_than_half_a_second_of_the_cap():
    gate = Gate(CAPS.model_copy(update={"ramp_s": 0.0}), quiet=False)
    for step in range(200):
        now_ns = step * 20 * MILLISECOND
        asked = gate.joints(leader(Q + 0.01 * step, t_ns=now_ns), Q, 0.03, now_ns)
        assert np.abs(asked - Q).max() <= 0.5 * 1.0 + 1e-12
    assert np.abs(asked - Q).max() == pytest.approx(0.5)


def test_time_in_which_nobody_asked_is_not_caught_up():
    gate = Gate(CAPS.model_copy(update={"ramp_s": 0.0}), quiet=False)
    gate.joints(leader(Q), Q, 0.03, 0)
    asked = gate.joints(leader(Q + 0.3, t_ns=SECOND), Q, 0.03, SECOND)
    assert asked - Q == pytest.approx(np.full(7, 0.03)), "the cap for the 30 ms until it is due"


def test_axes_are_mapped_with_their_signs():
    axes = axis_map(("y", "-x", "z", "0", "ry", "rz"))
    assert mapped(puck(1, 2, 3, 4, 5, 6), axes).axes == pytest.approx([2, -1, 3, 0, 5, 6])


@pytest.mark.parametrize("names", [("x",), ("x", "y", "z", "rx", "ry", "up")])
def test_unknown_axes_are_one_line(names):
    with pytest.raises(InputError, match="axes"):
        axis_map(names)


def test_a_screen_is_told_what_is_missing_and_how_much_gets_through():
    gate = Gate(CAPS, quiet=False)
    away = Q + np.array([0, 0, 0, 0.8, 0, 0, 0])
    told = gate.read(leader(away), Q, 0)
    assert told["waits"] == "bring the leader to the robot: joint 4 is 0.80 rad away"
    assert told["gap_rad"] == [0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0] and told["limit_rad"] == 0.5
    assert (told["engaged"], told["fresh"], told["ramp"]) == (True, True, 0.0)
    gate.joints(leader(Q), Q, 0.05, 0)
    told = gate.read(leader(Q, t_ns=200 * MILLISECOND), Q, 200 * MILLISECOND)
    assert (told["waits"], told["ramp"]) == ("", 0.5)
    later = 400 * MILLISECOND
    gate.joints(leader(Q, t_ns=later, engaged=False), Q, 0.05, later)
    told = gate.read(leader(Q, t_ns=later, engaged=False), Q, later)
    assert (told["waits"], told["engaged"], told["ramp"]) == ("hold the clutch", False, 0.0)
    assert not gate.read(leader(Q), Q, SECOND)["fresh"]


def test_a_device_without_joints_has_no_gap_to_tell():
    told = rate().read(puck(1, 0, 0, 0, 0, 0), Q, 0)
    assert told["gap_rad"] is None and told["waits"] == ""
    assert rate().read(None, Q, 0)["waits"] == "no fresh input from the device"
