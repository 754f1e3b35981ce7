"""The review of tasks that are not counted in items, and a second assessor's screen, by key presses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from support.screens.unhurried import Unhurried
from textual.app import App
from textual.pilot import Pilot

from labctl.clock import SECOND
from labctl.core.events import EndReason
from labctl.core.outcome import Outcome
from labctl.core.reviewed import Item, Unseen
from labctl.core.task import SCORE, STAGES, Task
from labctl.core.trial import State, Trial
from labctl.ui.review.review import Review
from labctl.ui.review.second import SecondReview

STEPS = (
    {"name": "open", "points": 1.0, "definition": "the drawer stands open by a hand's width"},
    {"name": "close", "points": 1.0, "definition": "no gap is seen"},
)
RUBRIC = ({"score": 0.0, "text": "nothing moved"}, {"score": 1.0, "text": "folded and flat"})
DRAWER = Task("drawer", STAGES, 1, 30.0, "Open it and close it.", stages=STEPS)
FOLD = Task("fold", SCORE, 1, 30.0, "Fold the towel.", rubric=RUBRIC)
SIZES = pytest.mark.parametrize(
    "size", [pytest.param((80, 24), id="80x24"), pytest.param((120, 36), id="120x36", marks=pytest.mark.thorough)]
)


def item(task: Task, name: str, **outcome: Any) -> Item:
    whole = {"items_staged": 1, "moved": 0, "lost": 0, "remaining": 1, "end_reason": EndReason.BUDGET}
    times = {"go_ns": 10 * SECOND, "end_ns": 40 * SECOND, "ended": EndReason.BUDGET}
    made = Trial(name, 0, 0, "c", "trial 1 of 1", State.SCORED, f"e-{name}", (f"e-{name}",), max_voids=3, **times)
    return Item(replace(made, outcome=Outcome(**{**whole, **outcome})), task=task)


def play(app: App[str], size: tuple[int, int], do: Callable[[Pilot[Any], Callable[[], str]], Awaitable[None]]) -> None:
    async def session() -> None:
        async with app.run_test(size=size) as pilot:

            def text() -> str:
                strips = app.screen._compositor.render_strips()
                return " ".join("\n".join("".join(part.text for part in strip) for strip in strips).split())

            await pilot.pause()
            await do(pilot, text)

    asyncio.run(session())


@SIZES
def test_stages_are_confirmed_or_corrected_with_their_definitions_on_the_screen(size: tuple[int, int]) -> None:
    items = [item(DRAWER, "t-a", reached_s=(2.5,))]
    said: list[Any] = []

    def correct(trial: str, outcome: Any, why: str, seen: int) -> None:
        said.append((trial, dict(outcome), why))
        items[0] = item(DRAWER, "t-a", reached_s=tuple(outcome["reached_s"]), moved=1, remaining=0)

    def save(trial: str, operations: list[Any], seen: int) -> None:
        said.append((trial, operations))
        items[0] = replace(items[0], reviewed=())

    async def do(pilot: Pilot[Any], text: Callable[[], str]) -> None:
        assert "1 of 2 stages" in text() and "Open it and close it." in text()
        assert "2.50 open: reached" in text() and "close: not reached" in text()
        await pilot.press("d")
        await pilot.pause()
        assert "this task is judged by stages, not by operations; w corrects its outcome" in text()
        await pilot.press("w")
        await pilot.pause()
        assert "no gap is seen" in text()
        await pilot.press("2", "tab", "tab", "s", "a", "w", "ctrl+s")
        await pilot.pause()
        assert "corrected: 2 of 2 stages; ENTER confirms the episode" in text()
        await pilot.press("enter")
        await pilot.pause()
        assert "e-t-a reviewed" in text() and "0 in dispute" in text()

    play(Review(lambda: items, save, correct, said.append, hands=Unhurried()), size, do)
    assert said == [("t-a", {"reached_s": [2.5, None], "notes": "", "tags": []}, "saw"), ("t-a", [])]


@SIZES
def test_a_second_assessor_sees_the_task_and_its_anchors_and_nothing_that_was_said(size: tuple[int, int]) -> None:
    left = [Unseen("t-a", "e-a", FOLD), Unseen("t-b", "e-b", DRAWER)]
    said: list[Any] = []

    def judge(trial: str, outcome: Any) -> None:
        said.append((trial, dict(outcome)))
        left.pop(0)

    async def do(pilot: Pilot[Any], text: Callable[[], str]) -> None:
        assert "2 episodes left to judge" in text() and "folded and flat" in text() and "Fold the towel." in text()
        await pilot.press("w")
        await pilot.pause()
        assert "w does nothing" in text()
        await pilot.press("enter")
        await pilot.pause()
        assert "1: folded and flat" in text() and "0.0" not in text()
        await pilot.press("0", "full_stop", "7", "ctrl+s")
        await pilot.pause()
        assert "e-a is judged" in text() and "the drawer stands open" in text()
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "nothing was seen: choose how far it got" in text(), "nothing is taken before somebody takes it"
        await pilot.press("1", "ctrl+s")
        await pilot.pause()
        assert "nothing is left for you to judge" in text()

    play(SecondReview(lambda: list(left), judge, None, hands=Unhurried()), size, do)
    assert said == [("t-a", {"score": 0.7, "notes": ""}), ("t-b", {"reached_s": [None], "notes": ""})]


@pytest.mark.parametrize(
    "words", ["lies in it [or leans on its rim]", "on the plate [/half]", "held [/bold", "[red] lid"]
)
def test_what_looks_like_markup_is_shown_as_it_was_written_in_both_reviews(words: str) -> None:
    """It was left out, or ended the review."""
    drawer = replace(DRAWER, stages=({"name": "open", "points": 1.0, "definition": words},))
    fold = replace(FOLD, rubric=({"score": 0.0, "text": words}, {"score": 1.0, "text": "flat"}))

    async def seen(pilot: Pilot[Any], text: Callable[[], str]) -> None:
        assert words in text()
        await pilot.press("n")
        await pilot.pause()
        assert words in text(), "the other task's"

    left = [Unseen("t-a", "e-a", drawer), Unseen("t-b", "e-b", fold)]
    play(SecondReview(lambda: left, lambda trial, outcome: None, None, hands=Unhurried()), (120, 36), seen)
    items = [item(drawer, "t-a", reached_s=(2.5,)), item(fold, "t-b", score=0.5)]
    review = Review(lambda: items, lambda *_: None, lambda *_: None, lambda _: None, hands=Unhurried())
    play(review, (200, 36), seen)
