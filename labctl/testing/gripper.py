"""What every gripper does: moves nothing by connecting, follows the latest target, stays where it is stopped, activates
on a person's word, and leaves no thread behind.

May not: know a driver. A test class names its gripper by a fixture `gripper`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import numpy as np
import pytest

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import Gripper
from labctl.errors import DeviceRefused

CLOCK = MonotonicClock()


def until(what: str, found: Callable[[], bool]) -> None:
    over_ns = CLOCK.now_ns() + 60 * SECOND
    while not found():
        assert CLOCK.now_ns() < over_ns, f"waited for {what} in vain"
        CLOCK.sleep_until(CLOCK.now_ns() + 5 * MILLISECOND)


class GripperConformance:
    """What every gripper of at least 70 mm does, in the time of this machine.

    threads_left: names of the threads that the driver starts, and how many of each may be there once it is closed (an
    emulator in the same process may have one of that name).
    """

    threads_left: ClassVar[Mapping[str, int]] = {}
    resolution_m: ClassVar[float] = 5e-4  # of its position, both asked for and read

    @pytest.fixture
    def gripper(self) -> Iterator[Gripper]:
        """A gripper that is not connected yet, closed afterwards. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `gripper` that yields one")

    @pytest.fixture
    def active(self, gripper: Gripper) -> Gripper:
        """Connected and activated, on a person's word."""
        gripper.connect()
        until("the activation", lambda: _recovered(gripper))
        return gripper

    def test_it_says_what_it_is_once_it_is_connected(self, gripper: Gripper) -> None:
        gripper.connect()
        about = gripper.about()
        assert json.loads(json.dumps(about)) == about, "a journal keeps it"
        assert about["model"] and about["client"] and {"serial", "firmware"} <= set(about)

    def test_connecting_moves_nothing_and_says_what_a_person_has_to_do(self, gripper: Gripper) -> None:
        assert isinstance(gripper, Gripper) and 0.07 < gripper.stroke_m < 0.5
        gripper.connect()
        opening = gripper.opening()
        gripper.target(0.02)
        status = gripper.status()
        if status.mode == "fault":
            assert "acknowledge to activate it, the fingers will move" in status.reason
            assert abs(gripper.opening() - opening) < 1e-3

    def test_what_is_asked_for_in_a_fault_is_not_done_once_a_person_has_acknowledged_it(self, gripper: Gripper) -> None:
        """Of a gripper that has a fault when it is connected, as one that has to be activated."""
        gripper.connect()
        if gripper.status().mode != "fault":
            return
        gripper.target(0.02)
        until("the activation", lambda: _recovered(gripper))
        until("rest", lambda: _rests(gripper))
        assert abs(gripper.opening() - 0.02) > 2e-3

    def test_the_latest_target_wins_and_is_reached(self, active: Gripper) -> None:
        for opening in np.linspace(0.07, 0.02, 6):
            active.target(float(opening))
        until("0.02 m", lambda: abs(active.opening() - 0.02) < 2e-3)
        active.target(0.06)
        until("0.06 m", lambda: abs(active.opening() - 0.06) < 2e-3)
        until("rest", lambda: active.status().mode == "idle")

    def test_what_is_asked_for_is_what_is_read_over_the_whole_stroke(self, active: Gripper) -> None:
        """Within the gripper's resolution, with nothing between the fingers; at both ends, and from both sides."""
        steps = np.linspace(0.0, active.stroke_m, 6)
        active.target(0.0)
        until("closed", lambda: active.opening() < self.resolution_m and active.status().mode == "idle")
        for opening in (*steps[1:], *steps[::-1][1:]):
            active.target(float(opening))
            until(
                f"{opening * 1e3:.1f} mm, and rest there",
                lambda opening=opening: (
                    abs(active.opening() - opening) <= self.resolution_m and active.status().mode == "idle"
                ),
            )

    def test_a_slow_closing_is_followed_without_opening_again(self, active: Gripper) -> None:
        """A target that closes over a second, as a person's trigger gives it; a small step at its end is taken too."""
        active.target(active.stroke_m)
        until("open, and rest", lambda: active.stroke_m - active.opening() < 2e-3 and _rests(active))
        seen, begun_ns = [active.opening()], CLOCK.now_ns()
        while (passed_ns := CLOCK.now_ns() - begun_ns) < SECOND:
            active.target(active.stroke_m - (active.stroke_m - 0.033) * passed_ns / SECOND)
            seen.append(active.opening())
            CLOCK.sleep_until(CLOCK.now_ns() + 10 * MILLISECOND)
        active.target(0.030)
        until("its end", lambda: abs(active.opening() - 0.030) < 1.5e-3 and active.status().mode == "idle")
        assert np.diff(seen).max() < 1e-3, "it opened on the way"

    def test_a_stop_leaves_the_fingers_where_they_are_until_a_new_target(self, active: Gripper) -> None:
        active.target(0.0)
        until("closing", lambda: active.opening() < 0.07)
        threads = [threading.Thread(target=active.stop) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        last = [active.opening()]

        def still() -> bool:
            last.append(active.opening())
            return len(last) > 40 and max(last[-40:]) - min(last[-40:]) < 5e-4

        until("rest", still)
        assert active.opening() > 0.005
        active.target(0.07)
        until("0.07 m", lambda: abs(active.opening() - 0.07) < 2e-3)

    def test_close_leaves_no_thread_and_may_be_repeated(self, active: Gripper) -> None:
        active.target(0.03)
        active.close()
        active.close()
        names = [thread.name for thread in threading.enumerate()]
        for name, most in self.threads_left.items():
            assert names.count(name) <= most


def _recovered(gripper: Gripper) -> bool:
    try:
        gripper.recover()
    except DeviceRefused:
        return False
    return True


def _rests(gripper: Gripper) -> bool:
    """Whether its fingers stand: a gripper that has not heard its newest target yet is idle, too."""
    before = gripper.opening()
    CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 5)
    return gripper.opening() == before and gripper.status().mode == "idle"
