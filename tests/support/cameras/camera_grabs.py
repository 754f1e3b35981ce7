"""Grabbing from a live camera until it has given what a test waits for; in bounded time."""

from __future__ import annotations

from collections.abc import Callable

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Camera, Frame
from labctl.errors import DeviceError

CLOCK = MonotonicClock()
PATIENCE_NS = 60 * SECOND


def frames(made: Camera, count: int) -> list[Frame]:
    """The next frames of a live camera."""
    found: list[Frame] = []
    over_ns = CLOCK.now_ns() + PATIENCE_NS
    while len(found) < count:
        assert CLOCK.now_ns() < over_ns, f"only {len(found)} frames came"
        frame = made.grab(CLOCK.now_ns())
        found += [frame] if frame is not None else []
    return found


def until(made: Camera, found: Callable[[Frame], bool]) -> Frame:
    """The next frame that is as asked for."""
    over_ns = CLOCK.now_ns() + PATIENCE_NS
    while CLOCK.now_ns() < over_ns:
        frame = made.grab(CLOCK.now_ns())
        if frame is not None and found(frame):
            return frame
    raise AssertionError("waited in vain")


def until_lost(made: Camera) -> DeviceError:
    """Grab until the camera is lost: the error."""
    began_ns = CLOCK.now_ns()
    while CLOCK.now_ns() < began_ns + PATIENCE_NS:
        try:
            made.grab(CLOCK.now_ns())
        except DeviceError as error:
            return error
    raise AssertionError("it was not lost")
