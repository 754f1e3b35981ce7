"""How late a camera's frames arrive: it films a code whose time on the screen is known.

May not: take off what it cannot see; the screen's own delay is in the result, and said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from labctl.checks import clock_code
from labctl.checks.clock_page import TWO, ClockPage
from labctl.clock import MILLISECOND, SECOND, Clock
from labctl.config.cell_schema import MOST_LATENCY_S, Setup
from labctl.devices import Camera
from labctl.errors import DeviceLost, DeviceRefused, InputError, LabctlError
from labctl.plain import Json
from labctl.runtime.hosting.cell_nodes import load_camera

ENOUGH = 150  # frames in which a code was read
PATIENCE_S = 30.0  # for that many; and to the first one
FEWEST = 30
PAGE_PATIENCE_S = 300.0
EARLY_S = 0.02  # before it was shown: a refresh of the screen, and what the browser's clock is off
SCREEN_NOTE = "the screen's own delay is in it: some 10 to 30 ms for most screens"


@dataclass(frozen=True, slots=True)
class Latency:
    """From a number's middle time on the screen to the frame's receipt, over n frames; `seen` of all frames read.

    error_ms: how far off the browser's clock may be.
    """

    camera: str
    n: int
    seen: int
    median_s: float
    p95_s: float
    error_ms: float

    def line(self) -> str:
        """What to put into the camera's table of the cell file, and what to know of it."""
        if self.median_s > MOST_LATENCY_S:
            most = f"a cell file takes a latency_s of {MOST_LATENCY_S:g} at most"
            return f"{most}; have the camera or its stream buffer less, and measure again"
        line = f"latency_s = {max(0.0, self.median_s):.3f}"
        return f"{line}   # into the [[camera]] table of {self.camera}; {SCREEN_NOTE}"

    def body(self) -> dict[str, Json]:
        """As plain values."""
        times = {"median_s": round(self.median_s, 4), "p95_s": round(self.p95_s, 4)}
        return {"camera": self.camera, "n": self.n, "seen": self.seen, **times, "error_ms": round(self.error_ms, 2)}


def measure(
    name: str,
    camera: Camera,
    page: ClockPage,
    clock: Clock,
    *,
    enough: int = ENOUGH,
    patience_s: float = PATIENCE_S,
    say: Callable[[str], None] = lambda text: None,
) -> Latency:
    """Film the page with a camera that is not connected yet; it is closed again. `say` hears how far it is.

    What was read before the page was loaded again is of other numbers, and left out.

    Raises DeviceLost when the camera is not there, or sees no code, or too few, and where two windows show the page.
    """
    read: dict[int, list[int]] = {}  # number -> when frames with it were received
    seen = found = 0
    loads = page.loads
    try:
        camera.connect(clock.now_ns())
        over_ns = clock.now_ns() + round(patience_s * SECOND)
        while found < enough and clock.now_ns() < over_ns:
            frame = camera.grab(clock.now_ns())
            if frame is None:
                clock.sleep_until(clock.now_ns() + 2 * MILLISECOND)
                continue
            if page.loads != loads:
                if page.two:
                    raise DeviceLost(f"camera {name}: {TWO}")
                loads = page.loads
                read, seen, found = {}, 0, 0
            seen += 1
            number = clock_code.read(frame.image)
            if number is not None:
                read.setdefault(number, []).append(frame.host_ns)
                found += 1
            say(f"{name}: code read in {found} of {seen} frames")
    finally:
        camera.close()
    late = delays(read, page)
    if len(late) < min(FEWEST, enough):
        raise DeviceLost(advice(name, seen, found, len(late)))
    median, p95 = (float(np.percentile(late, share)) / SECOND for share in (50, 95))
    if median < -EARLY_S:
        early = f"its pictures would have come {-1e3 * median:.0f} ms before they were shown"
        raise DeviceLost(f"camera {name}: {early}; leave the page open as it is, and measure again")
    return Latency(name, len(late), seen, median, p95, page.clock.error_ms)


def delays(read: Mapping[int, list[int]], page: ClockPage) -> np.ndarray:
    """ns from the middle of a number's time on the screen to each receipt; a number never shown is left out."""
    found = []
    for number, received in read.items():
        times = page.shown(number)
        if times is not None:
            middle = (times[0] + times[1]) // 2
            found += [host_ns - middle for host_ns in received]
    return np.array(found, dtype=np.int64)


def advice(name: str, seen: int, found: int, known: int) -> str:
    """Why too little is known: of `seen` pictures `found` showed a code, `known` of them one that the page showed."""
    if not seen:
        return f"camera {name} gave no picture"
    if not found:
        return f"camera {name}: no code in {seen} pictures; it must see the whole square, with white around it, sharply"
    if 2 * known < found:  # the last few may not have been reported yet
        return f"camera {name}: {found} codes were read, {known} of this page; is another such page in view?"
    few = f"the code was read in {found} of {seen} pictures, {FEWEST} are needed"
    return f"camera {name}: {few}; bring it closer to the screen, or make its picture sharper"


def wait_for_page(page: ClockPage, clock: Clock, patience_s: float = PAGE_PATIENCE_S) -> None:
    """Until a browser shows the page. Raises DeviceLost when none does, or two windows to the end."""
    over_ns = clock.now_ns() + round(patience_s * SECOND)
    while not page.open:
        if clock.now_ns() > over_ns:
            raise DeviceLost(TWO if page.two else f"no browser has opened {page.url} within {patience_s:g} s")
        if page.two:
            page.say = TWO
        clock.sleep_until(clock.now_ns() + SECOND // 20)


def measure_all(setup: Setup, only: str | None, page: ClockPage, clock: Clock) -> tuple[list[Latency], list[str]]:
    """Every camera of a cell, or `only` one, after the other; and why some could not be measured.

    Raises InputError when there is no such camera.
    """
    entries = [entry for entry in setup.cell.camera if only in (None, entry.name)]
    if not entries:
        names = ", ".join(entry.name for entry in setup.cell.camera) or "none"
        raise InputError(f"no camera {only!r} in this cell; it has: {names}" if only else "this cell has no [[camera]]")
    found, failed = [], []

    def say(text: str) -> None:
        page.say = text

    for entry in entries:
        try:
            camera = load_camera(entry, setup)
            if camera.kind == "sim":
                raise DeviceRefused(f"camera {entry.name} is simulated and films no screen; its latency is 0")
            found.append(measure(entry.name, camera, page, clock, say=say))
        except LabctlError as error:
            failed.append(str(error))
    return found, failed
