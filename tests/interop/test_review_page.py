"""The review in Chromium: both cameras play, keys alone review one episode after another, nobody else is asked.

Opt-in: needs Chromium and labctl[web]. pytest -m interop tests/interop/test_review_page.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import wait_for
from support.screens.browser import browsing

from labctl.core.reviewed import queue
from labctl.runtime import review_writer
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign

pytestmark = pytest.mark.interop
ARROWS = {"Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
SHOWN = """(() => { const v = document.querySelectorAll("video"), c = document.createElement("canvas");
c.width = 32; c.height = 24; const x = c.getContext("2d"); return [...v].map((one) => { x.drawImage(one, 0, 0, 32, 24);
const d = x.getImageData(0, 0, 32, 24).data; let s = 0; for (let i = 0; i < d.length; i += 1) s = (s * 31 + d[i]) % 1e9;
return [one.readyState, Math.round(one.duration), s]; }); })()"""

# The page's hand: a clock that stands until `pass`, and answers to what it writes that wait until `answer`.
HANDS = """(() => { let now = performance.now(); window.pass = (ms) => { now += ms; };
performance.now = () => now; Object.defineProperty(Event.prototype, "timeStamp", { get: () => now });
const real = fetch; window.written = []; let waiting = []; window.answer = () => { waiting.forEach((go) => go()); };
window.fetch = async (path, given) => { if (given.method === "POST" && path !== "differences") {
written.push(JSON.parse(given.body).trial); await new Promise((go) => waiting.push(go)); } return real(path, given); };
pass(1000); })()"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    opened = make_campaign(tmp_path, [HUMAN, policy("a", skill="swift")], cameras=True, items=2, budget=20.0)
    run_campaign(opened.folder, lambda line: None, manual=True)
    review_writer.register(opened.folder, "ann")
    return opened.folder


@pytest.fixture
def address(folder: Path, tmp_path: Path) -> Iterator[str]:
    """The address that `labctl review --page` prints."""
    log = tmp_path / "page.log"
    command = [sys.executable, "-P", "-c", "from labctl.cli import main; main()", "review", str(folder), "--page"]
    with log.open("wb") as out:
        child = subprocess.Popen([*command, "--who", "ann"], stdin=subprocess.PIPE, stdout=out, stderr=out)
    try:
        yield wait_for("the page", lambda: re.search(r"http://\S+", log.read_text())).group(0)  # type: ignore[attr-defined]
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.terminate()
        child.wait(timeout=20)


def press(page: Any, key: str) -> None:
    if key in ARROWS:
        page.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=ARROWS[key])
    else:
        page.press(key)
    page.rest(0.5)


def unreviewed(folder: Path) -> int:
    with Campaign.open(folder) as campaign:
        return sum(item.reviewed is None for item in queue(campaign.record()))


def test_an_episode_is_reviewed_by_keys_with_both_cameras(folder: Path, address: str) -> None:
    def left() -> int:
        return unreviewed(folder)

    with browsing(1280, 800) as page:
        page.open(address)
        wait_for("both films", lambda: [one[0] for one in page.value(SHOWN) or []] == [4, 4])
        before = page.value(SHOWN)
        press(page, "ArrowDown")
        assert all(a[2] != b[2] for a, b in zip(before, page.value(SHOWN), strict=True)), "another moment, two pictures"
        at = page.value("at")
        press(page, "ArrowRight")
        assert 0 < page.value("at") - at <= 0.2, "the next picture, of ten a second"
        press(page, "Home")
        press(page, " ")
        wait_for("it plays", lambda: page.value("at") > 1.0)
        press(page, " ")
        press(page, "ArrowDown")
        press(page, "x")
        press(page, "Enter")
        said = "document.getElementById('said').textContent"
        wait_for("the refusal", lambda: "correct the outcome or the events" in page.value(said))
        assert left() == 2
        page.ask("Page.reload")
        page.rest(1.5)
        kept_in_the_tab = "document.getElementById('differences').textContent"
        wait_for("what was kept in the tab", lambda: "these events saw" in (page.value(kept_in_the_tab) or ""))
        press(page, "z")
        press(page, "Enter")
        wait_for("the first", lambda: left() == 1)
        wait_for("its successor", lambda: page.value("episode !== null && asking === 0"))
        page.rest(0.5)
        press(page, "Enter")
        wait_for("the second", lambda: left() == 0)
        assert {url.split("/")[2] for url in page.requests if url.startswith("http")} == {address.split("/")[2]}
        assert [error for error in page.errors if "400" not in error] == []


def test_enter_pressed_again_confirms_neither_twice_nor_an_episode_that_nobody_saw(folder: Path, address: str) -> None:
    with browsing(1280, 800) as page:

        def there(trial: object = None) -> bool:
            now = page.value("episode && !asking ? episode.trial : null")
            return now is not None and trial in (None, now)

        page.open(address)
        wait_for("the first", there)
        page.value(HANDS)
        first = page.value("episode.trial")
        page.press("n")
        wait_for("the second", lambda: there() and not there(first))
        second, counted = page.value("[episode.trial, operations.length]")
        page.press("i")
        assert page.value("operations.length") == counted + 1, "a draft"
        page.press("b")
        page.press("Enter")
        wait_for("the first again", lambda: there(first))
        page.press("Enter")
        assert page.value("written") == [], "on the way from one to the other, and before the other was seen"

        page.value("pass(1000)")
        for _ in range(3):  # the answer takes longer than a person waits
            page.press("Enter")
            page.value("pass(400)")
        page.press("x")
        assert page.value("written") == [first]
        page.value("answer()")
        wait_for("the second again", lambda: there(second))
        assert page.value("operations.length") == counted + 1, "its draft stands"
        page.press("Enter")
        assert page.value("written") == [first] and "has just changed" in page.value("$('said').textContent")
        assert unreviewed(folder) == 1

        page.value("pass(1000)")
        page.press("z")
        page.press("Enter")
        page.press("Enter")
        assert page.value("written") == [first, second]
        page.value("answer()")
        wait_for("both", lambda: unreviewed(folder) == 0)
        assert page.errors == []
