"""The page of episodes in Chromium, from a file: every video stands at its go and plays at the one speed.

Opt-in: needs Chromium. pytest -m interop tests/interop/test_episodes_page.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind
from support.runs.live_campaign import wait_for
from support.screens.browser import browsing

from labctl.pages.episodes import write_page
from labctl.runtime.campaign_run import run_campaign

pytestmark = pytest.mark.interop
FILMS = (
    "[...document.querySelectorAll('video')].map((v) => [v.readyState, v.currentTime - v.dataset.go, v.playbackRate])"
)


def test_every_video_plays_from_its_go_at_the_speed_that_the_page_says(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, [HUMAN, policy("a", skill="swift")], cameras=True, budget=20.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    write_page([folder], tmp_path / "page.html")
    with browsing(1280, 900) as page:
        page.open((tmp_path / "page.html").as_uri())
        wait_for("the films", lambda: [film[0] for film in page.value(FILMS) or []] == [4] * 4)
        page.rest(0.5)
        assert all(abs(since) < 0.15 for _, since, _ in page.value(FILMS)), "at go, to a picture"
        page.value("document.querySelector('video').playbackRate = 4")
        page.rest(0.3)
        assert [rate for _, _, rate in page.value(FILMS)] == [1] * 4, "no video has a speed of its own"
        page.value("document.querySelector('#rate').value = '2'")
        page.value("document.querySelector('#rate').dispatchEvent(new Event('change'))")
        assert "Every video at 2× real time" in page.value("document.querySelector('#speed').textContent")
        page.value("document.querySelector('#play').click()")
        wait_for("they play", lambda: all(since > 1.0 and rate == 2 for _, since, rate in page.value(FILMS)))
        page.value("document.querySelector('[data-sort=arm]').click()")
        first = "document.querySelector('#episodes tbody tr').dataset.arm"
        before = page.value(first)
        page.value("document.querySelector('[data-sort=arm]').click()")
        assert {before, page.value(first)} == {"a", "human"}, "sorted one way and the other"
        page.value("document.querySelector('#find').value = 'human'")
        page.value("document.querySelector('#find').dispatchEvent(new Event('input'))")
        assert page.value("document.querySelector('#count').textContent") == "1 of 2 episodes"
        assert {url.split(":")[0] for url in page.requests} <= {"file", "data"} and page.errors == []
