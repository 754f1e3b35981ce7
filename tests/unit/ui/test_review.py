"""The assessor's queue by key presses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.screens.review_bench import Agreeing, Book, Sorted, operation, reviewing
from support.screens.unhurried import READ_NS, Unhurried
from textual.pilot import Pilot

from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.ui.review.filmstrip import strip
from labctl.ui.review.review import Review


def test_what_the_witnesses_disagree_on_is_said_and_cannot_be_confirmed():
    async def play(pilot, text):
        assert "1 in dispute, 2 of 2 not reviewed" in text() and "the detector saw 1 moved, the assessor 2" in text()
        await pilot.press("enter")
        await pilot.pause()
        assert "correct the outcome or the events" in text()

    assert reviewing(play).saved == []


def test_a_missing_operation_is_added_and_the_episode_confirmed():
    async def play(pilot, text):
        await pilot.press("i")
        await pilot.press("1", "2", "full_stop", "5", "ctrl+s")
        await pilot.pause()
        assert "12.50" in text() and "these events and the outcome agree" in text()
        await pilot.press("enter")
        await pilot.pause()
        assert "0 in dispute, 1 of 2 not reviewed" in text()

    book = reviewing(play)
    assert [(name, len(ops)) for name, ops in book.saved] == [("t-b", 2)]
    assert book.saved[0][1][1]["t_ns"] == round(22.5 * SECOND)


def test_an_operation_is_removed_turned_and_taken_back():
    async def play(pilot, text):
        await pilot.press("n")
        await pilot.pause()
        await pilot.press("d")
        await pilot.pause()
        assert "4.00" not in text()
        await pilot.press("z", "x")
        await pilot.pause()
        assert "4.00" in text() and "these events saw 1 moved" in text()

    assert reviewing(play).saved == []


def test_the_outcome_is_corrected_with_a_why():
    async def play(pilot, text):
        await pilot.press("w")
        await pilot.pause()
        await pilot.press("backspace", "1", "tab", "tab", "tab")
        await pilot.press(*"one fell".replace(" ", "_"))
        await pilot.press("ctrl+s")
        await pilot.pause()

    (name, outcome, why), *_ = reviewing(play).corrected
    assert (name, outcome["moved"], outcome["remaining"], why) == ("t-b", 1, 1, "one_fell")


def test_a_all_moved_works_in_the_form_of_the_review_too_and_what_was_refused_before_is_said_no_more():
    """The foot of the form said "A: all moved", A did nothing, and a correction left the refusal before it standing."""

    async def play(pilot, text):
        await pilot.press("n", "w")
        await pilot.pause()
        await pilot.press("backspace", "0", "a")
        await pilot.pause()
        assert "all moved: 2 items" in text() and "so 0 remain" in text()
        await pilot.press("escape", "enter", "w", "a", "tab", "tab", "tab", *"recount", "ctrl+s")
        await pilot.pause()
        assert "corrected: moved 2, lost 0" in text() and "correct the outcome or the events" not in text()

    assert [outcome["moved"] for _, outcome, _ in reviewing(play).corrected] == [2]


def test_a_key_that_does_nothing_in_the_review_says_so():
    async def play(pilot, text):
        for key, said in (("h", "h does nothing; the keys"), ("f5", "f5 does nothing; the keys")):
            await pilot.press(key)
            await pilot.pause()
            assert said in text(), key
        await pilot.press("d", "d", "d")
        await pilot.pause()
        assert "no operation is chosen" in text()

    assert reviewing(play).saved == []


def test_an_episode_is_opened_by_its_id():
    async def play(pilot, text):
        await pilot.press("o")
        await pilot.pause()
        assert "masked" in text()

    assert reviewing(play).watched == ["e-t-b"]


async def correct_to_one_moved(pilot: Pilot[Any]) -> None:
    await pilot.press("w")
    await pilot.pause()
    await pilot.press("backspace", "1", "tab", "backspace", "1", "tab", "tab", *"fell", "ctrl+s")
    await pilot.pause()


def test_a_correction_that_sorts_the_queue_anew_stays_with_its_episode():
    """Seen: the next episode with the operations of the one before, at -531.88 s."""

    async def play(pilot, text):
        assert "e-t-b" in text() and "5.00" in text()
        await correct_to_one_moved(pilot)
        assert "e-t-b" in text() and "e-t-a" not in text() and "5.00" in text() and "moved 1" in text()
        await pilot.press("enter")
        await pilot.pause()
        assert "e-t-a" in text() and "4.00" in text() and "9.00" in text()

    book = reviewing(play, Sorted())
    assert [(name, [op["t_ns"] for op in ops]) for name, ops in book.saved] == [("t-b", [15 * SECOND])]


def test_what_was_changed_of_an_episode_outlives_the_correction_of_its_outcome():
    async def play(pilot, text):
        await pilot.press("i", "7", "ctrl+s")
        await pilot.pause()
        await correct_to_one_moved(pilot)
        assert "7.00" in text() and "5.00" in text()

    assert reviewing(play, Sorted()).saved == []


def test_a_key_works_on_the_row_that_the_key_before_it_worked_on():
    async def play(pilot, text):
        await pilot.press("n", "down", "x")
        await pilot.pause()
        assert "lost" in text()
        await pilot.press("x")
        await pilot.pause()
        assert "all witnesses agree" in text()
        await pilot.press("d")
        await pilot.pause()
        assert "4.00" in text() and "9.00" not in text()

    assert reviewing(play).saved == []


async def drawn(pilot: Pilot[Any], text: Callable[[], str], wanted: str) -> None:
    """Until the strip shows this: its pictures come from a thread, however late."""
    for _ in range(6000):
        if wanted in text():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"no {wanted!r} in:\n{text()}")


def test_the_strip_shows_the_operation_that_is_chosen_and_moves_by_keys():
    async def play(pilot, text):
        await drawn(pilot, text, "▲ 5.00 s")
        await pilot.press("n")
        await drawn(pilot, text, "▲ 4.00 s")
        await pilot.press("down")
        await drawn(pilot, text, "▲ 9.00 s")
        await pilot.press("right", "right", "left")
        await drawn(pilot, text, "▲ 9.50 s")
        await pilot.press("c")
        await drawn(pilot, text, "camera-1")
        assert "▲ 9.50 s" in text()

    looked = reviewing(play).looked
    assert looked[0] == ("e-t-b", 0, 5.0) and ("e-t-a", 1, 9.5) in looked


def test_what_is_added_begins_with_the_moment_that_is_looked_at():
    async def play(pilot, text):
        await pilot.press("right", "i")
        await pilot.pause()
        assert "5.50" in text()
        await pilot.press("ctrl+s", "enter")
        await pilot.pause()

    assert [op["t_ns"] for op in reviewing(play).saved[0][1]] == [15 * SECOND, round(15.5 * SECOND)]


def test_a_corrected_outcome_keeps_its_notes():
    book = Sorted()
    first = book.items[1]
    assert first.trial.outcome is not None
    first.trial = replace(first.trial, outcome=replace(first.trial.outcome, notes="the tote was moved"))

    async def play(pilot, text):
        await correct_to_one_moved(pilot)

    (_, outcome, _), *_ = reviewing(play, book).corrected
    assert outcome["notes"] == "the tote was moved"


@pytest.mark.parametrize(("each", "rows", "shape"), [(26, 20, (20, 78)), (26, 6, (12, 78)), (24, 1, (2, 72))])
def test_a_strip_keeps_to_its_rows_and_each_picture_to_its_shape(each, rows, shape):
    """(26 - 1) cells of 4:3 are 9.4 rows of two pixels: 20 pixels high with the next row begun, not more than asked."""
    made = strip([np.full((48, 64, 3), 200, np.uint8)] * 3, each, rows)
    assert made.shape[1] == shape[1] and made.shape[0] <= 2 * rows
    lit = (made[0] > 0).all(axis=1)
    high, across = made.shape[0], int(lit.sum()) // 3
    assert across == pytest.approx(high * 4 / 3, abs=2) or across == each - 1


def test_the_review_is_finished_by_a_key_once_all_is_reviewed():
    async def play(pilot, text):
        await pilot.press("f")
        await pilot.pause()
        assert "in dispute and not reviewed yet: 1 episode" in text()
        for item in book.items:
            if item.disputed:
                item.reviewed = item.operations
        await pilot.press("z", "f")
        await pilot.pause()
        assert "Finish the review? Nothing is in dispute" in text()
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "its review is finished once it is closed" in text()
        await pilot.press("f")
        await pilot.pause()
        await pilot.press("ctrl+s")
        await pilot.pause()

    book = Book()
    assert reviewing(play, book).finished == 2


def test_what_nobody_said_of_two_episodes_is_asked_and_said_anew_of_the_pair_at_hand():
    pair = {"question": "Which was better?", "block": 0, "first": "e-t-a", "second": "e-t-b", "places": [1, 3]}
    said: list[Any] = []

    async def session() -> None:
        book = Book()
        asked = lambda: [({**pair, "trials": ["t-a", "t-b"]}, said[-1] if said else None)]  # noqa: E731
        app = Review(
            book.load,
            book.save,
            book.correct,
            book.watched.append,
            None,
            book.finish,
            asked,
            lambda stated, seen: said.append(stated),
            hands=Unhurried(),
        )
        async with app.run_test(size=(110, 30)) as pilot:

            def text() -> str:
                strips = app.screen._compositor.render_strips()
                return "\n".join("".join(segment.text for segment in strip) for strip in strips)

            await pilot.pause()
            assert "of 1 pair nobody has said which was better" in text()
            for keys in (("b", "1", "tab", "q", "ctrl+s"), ("b", "3", "ctrl+s")):
                await pilot.press(*keys)
                await pilot.pause()
            assert "nobody has said" not in text() and "recorded: neither of block 1" in text()

    asyncio.run(session())
    assert [(one["preferred"], one["why"]) for one in said] == [("first", "q"), ("neither", "q")]


# -- presses that a person meant


def test_enter_twice_at_once_confirms_one_episode():
    """A bounce, or a key that repeats, confirmed an episode that nobody had looked at."""
    hands, book = ManualClock(SECOND), Agreeing()

    async def play(pilot, text):
        hands.sleep_until(hands.now_ns() + READ_NS)
        await pilot.press("enter")
        hands.sleep_until(hands.now_ns() + 120 * MILLISECOND)
        await pilot.press("enter")
        await pilot.pause()
        assert "ENTER came twice within 300 ms" in text() and "2 of 3 not reviewed" in text()
        hands.sleep_until(hands.now_ns() + READ_NS)
        await pilot.press("enter")
        await pilot.pause()
        assert "1 of 3 not reviewed" in text()

    assert [name for name, _ in reviewing(play, book, hands).saved] == ["t-a", "t-b"]


def test_what_accepts_waits_until_its_screen_was_seen():
    """The next episode by N, the form that finishes a review: ENTER and Ctrl-S within 300 ms of them do nothing."""
    hands, book = ManualClock(SECOND), Agreeing()

    async def play(pilot, text):
        hands.sleep_until(hands.now_ns() + READ_NS)
        await pilot.press("n")
        hands.sleep_until(hands.now_ns() + 120 * MILLISECOND)
        await pilot.press("enter")
        await pilot.pause()
        assert "the screen has just changed: ENTER did nothing" in text() and "3 of 3 not reviewed" in text()
        hands.sleep_until(hands.now_ns() + READ_NS)
        await pilot.press("f")
        await pilot.pause()
        hands.sleep_until(hands.now_ns() + 120 * MILLISECOND)
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "the screen has just changed: CTRL+S did nothing" in text()
        hands.sleep_until(hands.now_ns() + 50 * MILLISECOND)
        await pilot.click("#ok")
        await pilot.pause()
        assert "the screen has just changed: CLICK did nothing" in text()

    book = reviewing(play, book, hands)
    assert (book.saved, book.finished) == ([], 0)


def test_pasted_text_confirms_nothing():
    hands, book = ManualClock(SECOND), Agreeing()

    async def play(pilot, text):
        hands.sleep_until(hands.now_ns() + READ_NS)
        await pilot.press("c", "enter")
        await pilot.pause()
        assert "pasted text never acts" in text()

    assert reviewing(play, book, hands).saved == []


def test_what_was_changed_agrees_with_the_outcome_and_not_with_every_witness():
    """After an operation was added the screen said that all witnesses agree, the detector among them, which did not."""

    async def play(pilot, text):
        await pilot.press("enter")
        await pilot.pause()
        assert "correct the outcome or the events" in text()
        await pilot.press("i", "5", "ctrl+s")
        await pilot.pause()
        assert "these events and the outcome agree" in text() and "all witnesses agree" not in text()
        assert "correct the outcome or the events" not in text(), "what was refused before is said no more"

    assert reviewing(play).saved == []


def test_on_80_columns_every_key_of_the_review_is_seen_and_so_is_what_the_traces_show():
    """F, Q and O stood nowhere, and the last column was cut where no key could scroll to it."""
    seen: Any = {"t_ns": 15 * SECOND, "edge": "release", "zone": "left", "result": "success", "held_s": 7.5}
    book = Book()
    book.items[0].candidates = [seen]

    async def play(pilot, text):
        assert "f finish" in text() and "q leave" in text() and "o in Rerun" in text()
        assert "in the traces: release over left, held 7.5 s: placed" in " ".join(text().split())
        lines = text().splitlines()
        wrong, told = (next(n for n, line in enumerate(lines) if mark in line) for mark in ("✖", "• outcome"))
        assert wrong < told, "what is in dispute stands above what is merely so"
        await pilot.press("d", "d")
        await pilot.pause()
        assert "that row is no operation: it was not counted; + adds one" in " ".join(text().split())

    reviewing(play, book, size=(80, 24))


def test_a_cause_is_shown_as_it_was_written():
    book = Book()
    book.items[0] = replace(book.items[0], device=[{**operation(5.0, "lost"), "cause": "slipped [/half]"}])

    async def play(pilot, text):
        assert "slipped [/half]" in text()

    reviewing(play, book)
