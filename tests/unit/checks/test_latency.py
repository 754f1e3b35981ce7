"""A camera's latency is found from a filmed clock, whatever the browser's clock says; what cannot be found says why."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.cameras.filmed_screen import OFFSET_MS, REFRESH_NS, Absent, Screen, ScreenCamera, ScreenClock
from support.robots.cells import FIXTURE, cell_named

from labctl.checks.clock_page import KEPT, ClockPage, PageClock
from labctl.checks.latency import Latency, advice, delays, measure, measure_all, wait_for_page
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.config.cell_schema import Setup
from labctl.devices import Frame
from labctl.errors import DeviceLost, InputError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def clock() -> ScreenClock:
    return ScreenClock(100 * SECOND)


@pytest.fixture
def page(clock: ScreenClock) -> Iterator[ClockPage]:
    with ClockPage(clock) as made:
        yield made


@pytest.fixture
def screen(page: ClockPage, clock: ScreenClock) -> Screen:
    clock.screen = Screen(page, clock)
    wait_for_page(page, clock, 20.0)
    return clock.screen


@pytest.mark.parametrize("latency_s", [0.0, 0.045, 0.12])
def test_a_known_latency_is_found_to_a_few_milliseconds(
    page: ClockPage, screen: Screen, clock: ScreenClock, latency_s: float
) -> None:
    """A frame is exposed at any moment of a refresh, so that single delays spread by half of one to each side."""
    camera = ScreenCamera(screen.start_ns, latency_s)
    found = measure("wrist", camera, page, clock, enough=60)
    assert found.median_s == pytest.approx(latency_s, abs=0.005)
    assert found.p95_s - found.median_s <= REFRESH_NS / SECOND / 2 + 0.002
    assert found.n >= 55 and camera.closed
    assert found.line().startswith(f"latency_s = {abs(found.median_s):.3f}   # into the [[camera]] table of wrist; ")


class Reloading(ScreenCamera):
    """After so many frames the page that it films is loaded again; `again`: in a second window, beside the first."""

    def __init__(self, page: ClockPage, clock: ScreenClock, after: int, *, again: bool = False) -> None:
        assert clock.screen is not None
        super().__init__(clock.screen.start_ns, 0.05)
        self._page, self._screens, self._left, self._again = page, clock, after, again

    def grab(self, now_ns: int) -> Frame | None:
        frame = super().grab(now_ns)
        self._left -= frame is not None
        if frame is not None and (self._left == 0 or (self._again and self._left < 0)):
            other = Screen(self._page, self._screens, load=2)
            if self._again:
                other.start_ns = self._start_ns
                other.tell()
            else:
                self._screens.screen = other
                self._start_ns = other.start_ns
        return frame


@pytest.mark.thorough
def test_what_was_read_before_the_page_was_loaded_again_does_not_count(
    page: ClockPage, screen: Screen, clock: ScreenClock
) -> None:
    """Numbers of the old page were looked up among the new one's: of 50 ms came -1.767 s, for the cell file."""
    found = measure("wrist", Reloading(page, clock, after=90), page, clock, enough=150)
    assert found.median_s == pytest.approx(0.05, abs=0.005)
    assert abs(found.p95_s - 0.05) <= REFRESH_NS / SECOND / 2 + 0.002 and found.n >= 140


def test_two_windows_of_the_page_are_told_to_whoever_measures(
    page: ClockPage, screen: Screen, clock: ScreenClock
) -> None:
    with pytest.raises(DeviceLost, match=r"camera wrist: two windows show this page, .*: close one of them"):
        measure("wrist", Reloading(page, clock, after=20, again=True), page, clock)


def test_two_windows_of_the_page_are_told_to_whoever_waits_for_it(page: ClockPage) -> None:
    """They forget each other's clock again and again: it was said that no browser had opened the page."""
    clock = ScreenClock(100 * SECOND)
    one, other = Screen(page, clock), Screen(page, clock, load=2)

    class Both:
        def tell(self) -> None:
            one.tell()
            other.tell()

    clock.screen = Both()  # type: ignore[assignment]
    with pytest.raises(DeviceLost, match="two windows show this page"):
        wait_for_page(page, clock, 1.0)
    assert "close one of them" in page.say, "on the page, at once"
    clock.screen = other
    wait_for_page(page, clock, 1.0)


def test_a_page_in_the_background_is_not_heard(page: ClockPage, screen: Screen) -> None:
    """It shows no numbers, and goes on telling so."""
    told(page, [], load=2)
    assert page.open


def test_a_latency_that_no_cell_file_takes_is_not_told_as_its_line() -> None:
    """1.4 s of a network camera came as a line that the next reading of the file refused."""
    line = Latency("front", 150, 180, 1.4, 1.5, 0.2).line()
    assert line.startswith("a cell file takes a latency_s of 1 at most") and "latency_s =" not in line


def test_pictures_that_would_have_come_before_they_were_shown_are_no_latency(
    page: ClockPage, screen: Screen, clock: ScreenClock
) -> None:
    with pytest.raises(DeviceLost, match=r"would have come \d+ ms before they were shown"):
        measure("wrist", ScreenCamera(screen.start_ns, -0.2), page, clock, enough=60)


def test_the_browsers_clock_is_converted_by_the_quickest_exchange() -> None:
    clock = PageClock()
    for delay_ms, offset_ms in ((9.0, 5.0), (0.4, OFFSET_MS), (30.0, -7.0), (2.0, 3.0), (5.0, 1.0)):
        assert not clock.known
        clock.add(100.0, round((100.0 + delay_ms / 2 + offset_ms) * MILLISECOND), 100.0 + delay_ms)
    assert clock.known and clock.error_ms == pytest.approx(0.2)
    assert clock.to_host_ns(250.5) == round((250.5 + OFFSET_MS) * MILLISECOND)


def told(page: ClockPage, shown: list, load: float = 1) -> None:
    """Numbers shown, told by a browser whose clock is the host's."""
    now_ms = page._host.now_ns() / MILLISECOND
    before = {"sent": now_ms, "host_ns": page._host.now_ns(), "received": now_ms}
    page.answered({"load": load, "sent": now_ms, "shown": shown, "before": before})


def test_a_number_is_on_the_screen_until_the_next_one_and_one_never_shown_has_no_time() -> None:
    page = ClockPage(ManualClock(SECOND))
    for number in range(5):
        told(page, [[number, 100.0 + 20 * number]])
    assert page.shown(2) == (140 * MILLISECOND, 160 * MILLISECOND)
    assert page.shown(4) == (180 * MILLISECOND, 180 * MILLISECOND), "nothing came after it yet"
    assert page.shown(5) is None
    late = delays({2: [155 * MILLISECOND], 77: [1]}, page)
    assert late.tolist() == [5 * MILLISECOND]
    page._server.server_close()


def test_a_page_that_was_loaded_again_counts_anew_by_a_clock_of_its_own() -> None:
    page = ClockPage(ManualClock(SECOND))
    for number in range(6):
        told(page, [[number, 100.0]])
    assert page.open
    told(page, [[1, 5.0]], load=2)
    assert not page.open and page.shown(3) is None
    page._server.server_close()


def test_old_numbers_are_forgotten() -> None:
    page = ClockPage(ManualClock(SECOND))
    for first in range(0, KEPT + 2000, 1000):
        told(page, [[number, float(number)] for number in range(first, first + 1000)])
    assert page.shown(500) is None and page.shown(KEPT + 500) is not None and len(page._shown) == KEPT
    page._server.server_close()


def test_what_cannot_be_measured_says_why(page: ClockPage, screen: Screen, clock: ScreenClock) -> None:
    with pytest.raises(DeviceLost, match=r"no code in \d+ pictures; it must see the whole square"):
        measure("wrist", ScreenCamera(screen.start_ns, 0.0, blind=True), page, clock, patience_s=0.5)
    with pytest.raises(DeviceLost, match="no camera 123 here"):
        measure("wrist", Absent(screen.start_ns, 0.0), page, clock)
    with pytest.raises(DeviceLost, match=r"the code was read in \d+ of \d+ pictures, 30 are needed"):
        measure("wrist", ScreenCamera(screen.start_ns, 0.0), page, clock, patience_s=0.3)


def test_a_code_that_the_page_has_not_told_of_yet_is_not_another_pages() -> None:
    assert "bring it closer" in advice("wrist", 20, 9, 8)
    assert "another such page" in advice("wrist", 60, 40, 8)


def test_codes_of_another_page_are_noticed(page: ClockPage, screen: Screen, clock: ScreenClock) -> None:
    with ClockPage(clock) as other, pytest.raises(DeviceLost, match="is another such page in view"):
        measure("wrist", ScreenCamera(screen.start_ns, 0.0), other, clock, enough=40)


def test_a_page_nobody_opens_is_not_waited_for_for_ever(page: ClockPage, clock: ScreenClock) -> None:
    with pytest.raises(DeviceLost, match=r"no browser has opened http://127\.0\.0\.1"):
        wait_for_page(page, clock, 0.1)


def test_simulated_cameras_and_unknown_names_are_told(page: ClockPage, clock: ScreenClock) -> None:
    setup = Setup(cell=cell_named("sim_fr3"), fixture=FIXTURE)
    found, failed = measure_all(setup, None, page, clock)
    assert found == []
    blind = "is simulated and films no screen; its latency is 0"
    assert failed == [f"camera {name} {blind}" for name in ("over_shoulder", "wrist")]
    with pytest.raises(InputError, match="no camera 'front' in this cell; it has: over_shoulder, wrist"):
        measure_all(setup, "front", page, clock)


def test_the_page_is_served_on_loopback_and_answers_nothing_else(page: ClockPage) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    html = opener.open(page.url).read().decode()
    assert page.url.startswith("http://127.0.0.1:") and "<canvas>" in html
    assert "http://" not in html and "https://" not in html, "it needs nothing from elsewhere"
    for path, body in (("etc", None), ("told", b"scrap"), ("told", b"{}"), ("other", b"{}")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            opener.open(page.url + path, data=body)
        assert refused.value.code in (400, 404)
        refused.value.close()
    body = json.dumps({"load": 1, "sent": 1.0, "shown": [], "before": None}).encode()
    assert set(json.loads(opener.open(page.url + "told", data=body).read())) == {"host_ns", "say"}


def test_another_sites_name_and_another_sites_page_are_not_answered(page: ClockPage) -> None:
    """A name of another site may lead to 127.0.0.1 (DNS rebinding); a page of another site may post without asking."""
    body = json.dumps({"load": 1, "sent": 1.0, "shown": [[1, 2.0]], "before": None}).encode()
    for headers, status in (
        ({"Host": f"evil.example:{page.port}"}, 403),
        ({"Host": f"localhost:{page.port}"}, 200),
        ({"Host": "127.0.0.1"}, 200),  # a tunnel (ssh -L) may begin at another port
        ({"Host": "127.0.0.1:9000", "Origin": "http://127.0.0.1:9000", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "127.0.0.1:9000", "Origin": f"http://127.0.0.1:{page.port}"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": f"http://127.0.0.1:{page.port}", "Sec-Fetch-Site": "same-origin"}, 200),
    ):
        for method, path, data in (("GET", "/", None), ("POST", "/told", body)):
            connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            assert answer.status == status, (headers, method)
            assert status == 200 or (b"<canvas>" not in text and b"host_ns" not in text)


def test_a_port_that_is_taken_is_one_line(page: ClockPage, clock: ScreenClock) -> None:
    with pytest.raises(InputError, match="cannot be served on"):
        ClockPage(clock, int(page.url.rsplit(":", 1)[1].strip("/")))


def test_a_result_as_plain_values() -> None:
    found = Latency("wrist", 150, 180, 0.04512, 0.05333, 0.204)
    assert found.body() == {
        "camera": "wrist", "n": 150, "seen": 180, "median_s": 0.0451, "p95_s": 0.0533, "error_ms": 0.2,
    }  # fmt: skip
    assert np.isclose(found.body()["median_s"], found.median_s, atol=1e-4)
