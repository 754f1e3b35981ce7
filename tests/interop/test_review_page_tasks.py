"""The review of tasks in Chromium by keys alone: stages at their moments, success, a rubric, which of two was better;
and a second assessor's page. $SCREENSHOTS: a folder where pictures of it are left, to look at.

Opt-in: needs Chromium and labctl[web]. pytest -m interop tests/interop/test_review_page_tasks.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.runs.live_campaign import wait_for
from support.runs.task_campaign import open_tasks
from support.screens.browser import Page, browsing

from labctl.cli.console import free_port
from labctl.core.events import Kind
from labctl.runtime import review_writer
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign, close_campaign

pytestmark = pytest.mark.interop
CODES = {"Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Backspace": 8}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A block of two filmed episodes of each of three measures, a pair of each to be compared."""
    compared = {"[analysis]\n": "[preference]\n[analysis]\n"}
    opened = open_tasks(tmp_path, conditions=["over-base", "stages", "score"], protocol=compared, cameras=True)
    run_campaign(opened.folder, lambda line: None, manual=True)
    for person in ("tim", "eva"):
        review_writer.register(opened.folder, person)
    close_campaign(opened.folder, who="tim")
    return opened.folder


@contextmanager
def served(folder: Path, log: Path, *options: str) -> Iterator[str]:
    """The address that `labctl review … --page` prints."""
    command = [sys.executable, "-P", "-c", "from labctl.cli import main; main()", "review", str(folder), "--page"]
    with log.open("wb") as out:
        child = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=out, stderr=out)
    try:
        yield wait_for("the page", lambda: re.search(r"http://\S+", log.read_text())).group(0)  # type: ignore[attr-defined]
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.terminate()
        child.wait(timeout=20)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        if key in CODES:
            page.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=CODES[key])
        else:
            page.press(key)
        page.rest(0.3)


def words(page: Page, name: str) -> str:
    return page.value(f"document.getElementById('{name}').textContent") or ""


def shot(page: Page, name: str) -> None:
    if into := os.environ.get("SCREENSHOTS"):
        page.shot(Path(into) / f"{name}.png")


def recorded(folder: Path) -> list[Any]:
    with Campaign.open(folder) as campaign:
        return campaign.events()


def at(page: Page, seconds: float) -> None:
    """The videos at a moment after go."""
    page.value(f"halt(), seek({seconds})")
    page.rest(0.4)


def to(page: Page, condition: str, *, second: bool = False) -> None:
    """N until an episode of this condition, or of this task, is there."""
    for _ in range(8):
        if words(page, "line").endswith(condition):
            return
        press(page, "n")
        page.rest(0.4)
    raise AssertionError(f"no episode of {condition}: {words(page, 'line')}")


def test_three_measures_and_their_pairs_are_reviewed_by_keys(folder: Path, tmp_path: Path) -> None:
    with served(folder, tmp_path / "log", "--who", "tim") as address, browsing(1280, 800) as page:
        page.open(address)
        wait_for("the films", lambda: page.value("films.length === 2 && films.every((f) => f.video.readyState === 4)"))
        to(page, "stages")
        shot(page, "stages")
        reached = page.value("said.reached_s.length")
        press(page, *["Backspace"] * reached)
        assert words(page, "differences").startswith("what you say differs from the outcome")
        press(page, "2")
        assert words(page, "said") == "a stage counts only after those before it; the next is 1"
        at(page, 3.0)
        press(page, "1")
        at(page, 2.0)
        press(page, "2")
        assert "a stage is not reached before the one before it" in words(page, "said")
        at(page, 6.0)
        to(page, "score")
        assert page.value("at") == 0, "another episode is seen from its go"
        to(page, "stages")
        at(page, 6.0)
        press(page, "2", "Enter")
        assert "W corrects it with a why" in words(page, "said"), "what differs is not confirmed"
        shot(page, "stages_changed")
        page.ask("Page.reload")
        page.rest(1.5)
        assert page.value("said.reached_s") == [3, 6], "kept in the tab"
        press(page, "w")
        shot(page, "stages_form")
        press(page, "1", "2", "Tab", *"seen", "Enter")
        wait_for("a correction", lambda: recorded(folder)[-1].kind == Kind.OUTCOME_CORRECTED)
        assert recorded(folder)[-1].body["new"]["reached_s"] == [3, 6] and recorded(folder)[-1].body["why"] == "seen"
        page.rest(0.5)
        press(page, "Enter")
        wait_for("a confirmation", lambda: recorded(folder)[-1].kind == Kind.OUTCOME_CONFIRMED)

        to(page, "over-base")
        press(page, "w")
        shot(page, "success_form")
        press(page, "0", "Tab", *"not in", "Enter")
        wait_for("not done", lambda: recorded(folder)[-1].body.get("why") == "not in")
        assert recorded(folder)[-1].body["new"]["reached_s"] == []
        page.rest(0.5)

        to(page, "score")
        press(page, "4")
        assert words(page, "said") == "this task is judged by a score; W asks for it"
        press(page, "w")
        page.value("document.getElementById('score').select()")
        press(page, *"0.75", "Tab", *"one crumpled")
        shot(page, "score_form")
        press(page, "Enter")
        wait_for("a score", lambda: recorded(folder)[-1].body.get("new", {}).get("score") == 0.75)
        page.rest(0.5)

        for number, condition in (("1", "score"), ("2", "stages"), ("3", "over-base")):
            to(page, condition)
            before = recorded(folder)[-1].seq
            press(page, "p")
            shot(page, "preference")
            press(page, number, "Tab", *"folded flat", "Enter")
            wait_for("a word", lambda seq=before: recorded(folder)[-1].seq > seq)  # type: ignore[misc]
            page.rest(0.5)
        said = [e.body for e in recorded(folder) if e.kind == Kind.PREFERENCE_STATED and e.who == "tim"]
        assert [(one["preferred"], one["why"]) for one in said] == [
            (which, "folded flat") for which in ("first", "second", "neither")
        ]
        press(page, "f")
        press(page, "Enter")
        wait_for("the end", lambda: recorded(folder)[-1].kind == Kind.CAMPAIGN_REVIEWED)
        shot(page, "finished")
        assert [error for error in page.errors if "400" not in error] == []


def test_a_second_assessor_judges_three_measures_by_keys(folder: Path, tmp_path: Path) -> None:
    def judged() -> list[dict[str, Any]]:
        return [event.body["outcome"] for event in recorded(folder) if event.kind == Kind.OUTCOME_JUDGED]

    with served(folder, tmp_path / "log", "--who", "eva", "--second") as address, browsing(1280, 800) as page:
        page.open(address)
        wait_for("the films", lambda: page.value("films.length === 2 && films.every((f) => f.video.readyState === 4)"))
        to(page, "in order")
        at(page, 2.5)
        press(page, "1")
        shot(page, "second_stages")
        press(page, "Enter")
        shot(page, "second_form")
        press(page, "Enter")
        wait_for("stages", lambda: len(judged()) == 1)
        assert judged()[0]["reached_s"] == [2.5]
        page.rest(0.6)
        to(page, "over")
        press(page, "Enter", "Enter")
        assert len(judged()) == 1, "nothing is taken before somebody takes it"
        press(page, "1", "Enter")
        wait_for("success", lambda: len(judged()) == 2)
        assert judged()[1]["reached_s"] == [None]
        page.rest(0.6)
        to(page, "neatly")
        press(page, "Enter", *"0.5", "Enter")
        wait_for("a score", lambda: len(judged()) == 3)
        assert judged()[2]["score"] == 0.5
        page.rest(0.6)
        assert words(page, "left") == "3 episodes left to judge"
        assert [error for error in page.errors if "400" not in error] == []


def test_a_second_assessor_sees_nothing_that_the_first_said_in_the_same_tab_at_the_same_port(
    folder: Path, tmp_path: Path
) -> None:
    """As through `ssh -L` with a fixed --port."""
    port = str(free_port("127.0.0.1"))
    with browsing(1280, 800) as page:
        with served(folder, tmp_path / "first.log", "--who", "tim", "--port", port) as address:
            page.open(address)
            wait_for("the page", lambda: page.value("episode !== null"))
            page.rest(0.5)
            to(page, "stages")
            episode, counted = page.value("[episode.episode, said.reached_s.length]")
            press(page, *["Backspace"] * counted)
            at(page, 7.5)
            press(page, "1")
            assert page.value("said.reached_s") == [7.5]
            page.ask("Page.reload")
            page.rest(1.5)
            assert page.value("said.reached_s") == [7.5], "a reload keeps it"
        with served(folder, tmp_path / "second.log", "--who", "eva", "--second", "--port", port) as address:
            page.open(address)
            wait_for(
                "the other page", lambda: page.value("document.title === 'labctl second assessor' && episode !== null")
            )
            page.rest(0.5)
            to(page, "in order")
            for _ in range(3):
                if page.value("episode.episode") == episode:
                    break
                press(page, "n")
                to(page, "in order")
            assert page.value("[episode.episode, said.reached_s]") == [episode, []]
