"""The page of episodes in Chromium, from a file: every video stands at its go and plays at the one speed.

Opt-in: needs Chromium. pytest -m interop tests/interop/test_episodes_page.py
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.joint.joint_recordings import cell_folders, recorded_cells
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind
from support.runs.live_campaign import wait_for
from support.runs.recordings import Recordings
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


def test_a_video_that_begins_after_go_waits_beside_the_others_for_its_time(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, [HUMAN, policy("a", skill="swift")], cameras=True, budget=20.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    page_file = tmp_path / "page.html"
    write_page([folder], page_file)
    text = page_file.read_text(encoding="utf-8")
    page_file.write_text(re.sub('data-go="[^"]+"', 'data-go="-2.0"', text, count=1), encoding="utf-8")
    first, second = (f"document.querySelectorAll('video')[{number}]" for number in (0, 1))
    with browsing(1280, 900) as page:
        page.open(page_file.as_uri())
        wait_for("the films", lambda: [film[0] for film in page.value(FILMS) or []] == [4] * 4)
        wait_for(
            "its time",
            lambda: page.value(f"{first}.closest('figure').querySelector('output').textContent")[:3] == "2.0",
        )
        page.value("document.querySelector('#play').click()")
        wait_for("another plays", lambda: page.value(f"{second}.currentTime - {second}.dataset.go") > 0.2)
        assert page.value(f"{first}.paused"), "it has no picture of this moment"
        apart = f"{first}.currentTime + 2 - ({second}.currentTime - {second}.dataset.go)"
        wait_for("it plays", lambda: page.value(f"!{first}.paused && {first}.currentTime > 0.3"))
        assert abs(page.value(apart)) < 0.3 and page.errors == []
        page.value("document.querySelector('#play').click()")
        page.rest(0.2)
        page.value("document.querySelector('#play').click()")
        page.value("document.querySelector('#play').click()")
        page.rest(2.5)
        assert page.value(f"{first}.paused && {second}.paused"), "whoever is told to stop does not start later"


def test_cells_of_a_joint_campaign_are_told_apart_and_play_at_one_speed_at_any_width(
    recordings: Recordings, tmp_path: Path
) -> None:
    folders = cell_folders(recordings.of(recorded_cells, cameras=True), blinded="b")
    write_page(folders, tmp_path / "page.html")
    shown = "[...document.querySelectorAll('#episodes tbody tr')].filter((r) => !r.hidden).map((r) => r.dataset.cell)"
    first = "document.querySelector('tr[data-cell=b] video')"
    for width in (1280, 390):
        with browsing(width, 900) as page:
            page.open((tmp_path / "page.html").as_uri())
            wait_for("the page", lambda: len(page.value(shown) or []) == 8)
            assert page.value("document.documentElement.scrollWidth") <= width, "nothing stands off the screen"
            page.value("document.querySelector('[data-filter=cell]').value = 'b'")
            page.value("document.querySelector('[data-filter=cell]').dispatchEvent(new Event('change'))")
            assert page.value(shown) == ["b"] * 4
            assert page.value("document.querySelector('#count').textContent") == "4 of 8 episodes"
            wait_for("its film", lambda: page.value(f"{first}.readyState") == 4)
            page.value("document.querySelector('#play').click()")
            wait_for("it plays", lambda: page.value(f"{first}.currentTime - {first}.dataset.go") > 0.3)
            assert page.value(f"{first}.playbackRate") == 1 and page.errors == []
            assert {url.split(":")[0] for url in page.requests} <= {"file", "data"}
