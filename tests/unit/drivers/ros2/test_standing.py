"""A robot behind ROS 2 that takes commands and stands; and which do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labctl.drivers.ros2.standing import LED_RAD, STANDS_S, Standing

HZ = 50
ONE = np.eye(6)[0]


def stood(led: Any, at: Any, seconds: float = 10.0, standing: Standing | None = None) -> float | None:
    """When, s, a robot is found to stand that is led along a joint by led(s) and seen there at at(s)."""
    standing = standing or Standing()
    for k in range(round(seconds * HZ)):
        if standing.led(led(k / HZ) * ONE, at(k / HZ) * ONE, 100 + k / HZ):
            return k / HZ
    return None


def test_an_arm_that_is_led_and_has_not_moved_at_all_is_found() -> None:
    """A controller that is inactive hears it all: an episode was played on an arm that stood."""
    assert stood(lambda s: 0.1 * s, lambda _: 0.0) == pytest.approx(0.2 + STANDS_S, abs=0.05)
    assert stood(lambda s: 0.12 * np.sin(s), lambda _: 0.0) is not None
    assert stood(lambda s: 0.1 * (s % 0.5), lambda s: 1e-4 * np.sin(50 * s)) is not None, "from where it is, each time"


@pytest.mark.parametrize(
    ("led", "at"),
    [
        (lambda _: 0.0, lambda _: 0.0),
        (lambda _: 0.009, lambda _: 0.0),  # off by as much as a robot at home may be
        (lambda s: 0.4 * LED_RAD * np.sin(9 * s), lambda _: 0.0),  # a policy that stands, and its noise
        (lambda s: 1e-3 * s, lambda s: 1e-3 * s),
        (lambda s: 0.1 * s, lambda s: 0.1 * max(0.0, s - 0.8)),  # a servo that begins late
        (lambda s: 0.1 * s, lambda s: min(0.1 * s, 0.05)),  # something holds it: "does not follow" says so
    ],
    ids=["stands", "off", "noise", "slowly", "late", "held"],
)
def test_a_sound_arm_is_never_taken_for_it(led: Any, at: Any) -> None:
    assert stood(led, at, 60.0) is None


def test_an_arm_whose_time_stands_has_not_stood() -> None:
    standing = Standing()
    assert not any(standing.led(0.1 * k * ONE, np.zeros(6), 100.0) for k in range(1000))


def test_what_was_asked_before_it_was_home_again_counts_for_nothing() -> None:
    standing = Standing()
    assert stood(lambda s: 0.1 * s, lambda s: 0.1 * s, standing=standing) is None
    assert stood(lambda s: 0.1 * s, lambda _: 1.0, standing=standing) is None, "it has moved"
    standing.again()
    assert stood(lambda _: 0.0, lambda _: 1.0, standing=standing) is None
    assert stood(lambda s: 0.1 * s, lambda _: 1.0, standing=standing) is not None
