"""The clock page in a real browser: its script draws the code that labctl reads, and knows when it showed it."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image
from support.cameras.mjpeg import CLOCK
from support.screens.browser import browsing

from labctl.checks import clock_code
from labctl.checks.clock_page import ClockPage
from labctl.checks.latency import delays, wait_for_page
from labctl.devices import Frame

pytestmark = pytest.mark.interop
SHOTS = 25


def test_screenshots_of_the_page_show_numbers_that_were_on_the_screen_when_they_were_taken() -> None:
    """A screenshot is a camera whose latency lies between nothing and the time that taking it took."""
    read: dict[int, list[int]] = {}
    took_ns, seen = [], []
    with ClockPage(CLOCK) as page, browsing(800, 700) as tab:
        page.say = "seen"
        tab.open(page.url)
        wait_for_page(page, CLOCK, 60.0)
        for _ in range(SHOTS):
            before_ns = CLOCK.now_ns()
            frame = screenshot(tab)
            took_ns.append(CLOCK.now_ns() - before_ns)
            number = clock_code.read(frame.image)
            if number is not None:
                read.setdefault(number, []).append(frame.host_ns)
                seen.append(number)
        tab.rest(0.5)  # until the page has told of the last ones
        late = delays(read, page)
        said = tab.value("document.querySelector('span').textContent")
        errors, asked = list(tab.errors), set(tab.requests)
    assert len(seen) >= SHOTS - 1, "the page's code is the one that is read"
    assert seen == sorted(seen) and len(late) == len(seen), "every number that was read was shown"
    print(f"\nscreenshots: {np.median(late) / 1e6:.0f} ms late (median), each took {np.median(took_ns) / 1e6:.0f} ms")
    assert (late > -20e6).all() and (late <= max(took_ns) + 100e6).all()
    assert said == "seen" and [error for error in errors if "favicon" not in error and "404" not in error] == []
    assert {url.split("/", 3)[2] for url in asked if url.startswith("http")} == {page.url.split("/", 3)[2]}


def screenshot(tab) -> Frame:
    """The page as a frame, received when it is decoded."""
    raw = base64.b64decode(tab.ask("Page.captureScreenshot", format="png")["data"])
    image = np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))
    return Frame(image, CLOCK.now_ns(), 0.0, 0)
