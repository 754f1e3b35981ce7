"""The terminal's review names what it had shown: a refusal shows the episode as it stands now, and loses nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.screens.review_bench import Book, operation, reviewing

from labctl.core.reviewed import check_seen
from labctl.core.task import Task
from labctl.core.trial import REVIEWS

ITEMS_OF_TWO = Task("", "items", 2, 60.0, "")


class Shared(Book):
    """Somebody else moves an event of the first episode while it is shown."""

    def __init__(self) -> None:
        super().__init__()
        for item in self.items:
            item.trial = replace(item.trial, said=("it was scored",))
        self.items = [replace(self.items[1])]

    def load(self) -> list[Any]:
        """A queue of its own each time, as a campaign's is."""
        return [replace(item) for item in self.items]

    def meanwhile(self) -> None:
        (item,) = self.items
        item.reviewed = [operation(4.5), operation(9.0)]
        item.trial = replace(item.trial, said=(*item.trial.said, REVIEWS[1]))

    def save(self, name: str, operations: list[dict[str, Any]], seen: int) -> None:
        check_seen(self.items[0].trial, ITEMS_OF_TWO, seen)
        super().save(name, operations, seen)

    def correct(self, name: str, outcome: Any, why: str, seen: int) -> None:
        check_seen(self.items[0].trial, ITEMS_OF_TWO, seen)
        super().correct(name, outcome, why, seen)


def test_enter_confirms_nothing_that_was_said_since_and_shows_it() -> None:
    book = Shared()

    async def play(pilot: Any, text: Any) -> None:
        assert "4.00" in text() and "reviewed not yet" in text()
        book.meanwhile()
        await pilot.press("enter")
        await pilot.pause()
        assert "nothing was written: since e-t-a was shown, its operations were reviewed" in text()
        assert "4.50" in text() and "reviewed already" in text() and book.saved == []
        await pilot.press("enter")
        await pilot.pause()
        assert "e-t-a reviewed" in text()

    (name, saved), *_ = reviewing(play, book, size=(150, 30)).saved
    assert name == "t-a" and saved[0]["t_ns"] == operation(4.5)["t_ns"], "what was shown then"


def test_what_was_changed_here_stays_where_it_was_refused() -> None:
    book = Shared()

    async def play(pilot: Any, text: Any) -> None:
        await pilot.press("x")
        await pilot.pause()
        book.meanwhile()
        await pilot.press("enter")
        await pilot.pause()
        assert "nothing was written" in text() and "lost" in text() and "4.00" in text()
        await pilot.press("z")
        await pilot.pause()
        assert "4.50" in text()

    assert reviewing(play, book, size=(150, 30)).saved == []


def test_a_correction_of_what_was_corrected_meanwhile_is_refused() -> None:
    book = Shared()

    async def play(pilot: Any, text: Any) -> None:
        await pilot.press("w")
        await pilot.pause()
        book.meanwhile()
        await pilot.press("backspace", "1", "tab", "tab", "tab", *"fell", "ctrl+s")
        await pilot.pause()
        assert "nothing was written: since e-t-a was shown" in text() and "4.50" in text()

    assert reviewing(play, book, size=(150, 30)).corrected == []
