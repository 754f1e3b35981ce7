"""Does a robot go where it is sent? What counts as having been sent there."""

from __future__ import annotations

import numpy as np

from labctl.drivers.common.servo.following import OFF_RAD, WINDOW_S, Following

SPEED = np.array([1.0, 0.0])
COAST_S = 0.15


def led(following: Following, until_s: float) -> np.ndarray:
    """Setpoints at 100 Hz and 1 rad/s, from 0 rad at 0 s on; the last."""
    for at_s in np.arange(0.0, until_s, 0.01):
        following.give(float(at_s), float(at_s), SPEED * at_s, SPEED)
    return SPEED * at_s


def test_a_robot_beyond_its_last_setpoint_does_not_follow_unless_nothing_was_given_meanwhile() -> None:
    """A stall of .3 s: the robot went on at its speed for as long as it may."""
    prompt, late = Following(coast_s=COAST_S), Following(coast_s=COAST_S)
    last = led(prompt, 1.0)
    led(late, 1.0)
    far = last + SPEED * (COAST_S + 0.9 * OFF_RAD)
    prompt.give(1.0, 1.0, SPEED, SPEED)
    late.give(1.29, 1.29, SPEED, SPEED)
    assert "does not follow" in prompt.wrong(far)
    assert not late.wrong(far)
    assert "joint 1 is" in late.wrong(far + SPEED * OFF_RAD)


def test_however_long_nothing_was_given_a_robot_goes_no_further_than_it_may_by_itself() -> None:
    following = Following(coast_s=COAST_S)
    last = led(following, 1.0)
    following.give(1.0 + 0.9 * WINDOW_S, 1.0 + 0.9 * WINDOW_S, SPEED, SPEED)
    assert not following.wrong(last + SPEED * (COAST_S + 0.9 * OFF_RAD))
    assert "does not follow" in following.wrong(last + SPEED * (COAST_S + 1.2 * OFF_RAD))


def test_a_robot_that_stays_at_its_last_setpoint_is_never_sent_beyond_it() -> None:
    following = Following()
    last = led(following, 1.0)
    following.give(1.3, 1.3, SPEED, SPEED)
    assert "does not follow" in following.wrong(last + SPEED * 1.2 * OFF_RAD)


def test_what_was_given_long_ago_counts_no_more() -> None:
    following = Following(coast_s=COAST_S)
    led(following, 1.0)
    following.give(1.0 + 2 * WINDOW_S, 1.0 + 2 * WINDOW_S, 2 * SPEED, SPEED)
    assert "does not follow" in following.wrong(0.5 * SPEED)


SHARE = 0.43  # of the time: an emulated FR3 on a machine of which other programs had 1.7 of 2 cores


def test_a_robot_that_has_less_time_than_who_leads_it_may_be_as_far_behind_and_no_further() -> None:
    """It was on its way still when setpoints had stood at the end of it for two seconds of its own time, and was
    stopped: "joint 5 is 0.15 rad from where it was sent".
    """
    following = Following()
    for host_s in np.arange(0.0, 10.0, 0.01):
        following.give(float(SHARE * host_s), float(host_s), SPEED * min(host_s, 5.0), SPEED)
    had_s = SHARE * 10.0
    assert not following.wrong(SPEED * had_s) and not following.wrong(SPEED * (had_s - WINDOW_S))
    assert "does not follow" in following.wrong(SPEED * (had_s - WINDOW_S - OFF_RAD - 0.02))


def test_a_robot_that_has_less_time_and_does_not_go_on_is_found() -> None:
    following = Following()
    led(following, 1.0)
    for host_s in np.arange(1.0, 1.0 + 1.2 * WINDOW_S / SHARE, 0.01):
        following.give(float(1.0 + (host_s - 1.0) * SHARE), float(host_s), SPEED, np.zeros(2))
    assert not following.wrong(SPEED * (1.0 - 0.9 * OFF_RAD))
    assert "does not follow" in following.wrong(SPEED * (1.0 - 1.1 * OFF_RAD))
