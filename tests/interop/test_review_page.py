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


def test_an_episode_is_reviewed_by_keys_with_both_cameras(folder: Path, address: str) -> None:
    def left() -> int:
        with Campaign.open(folder) as campaign:
            return sum(item.reviewed is None for item in queue(campaign.record()))

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
        assert "correct the outcome or the events" in page.value("document.getElementById('said').textContent")
        assert left() == 2
        page.ask("Page.reload")
        page.rest(1.5)
        assert "these events saw" in page.value("document.getElementById('differences').textContent"), "kept in the tab"
        press(page, "z")
        press(page, "Enter")
        wait_for("the first", lambda: left() == 1)
        press(page, "Enter")
        wait_for("the second", lambda: left() == 0)
        assert {url.split("/")[2] for url in page.requests if url.startswith("http")} == {address.split("/")[2]}
        assert [error for error in page.errors if "400" not in error] == []
