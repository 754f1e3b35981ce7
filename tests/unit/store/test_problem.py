"""What several threads find out about a record comes in the order of the record."""

from __future__ import annotations

import threading

import pytest

from labctl.core.events import Event
from labctl.store import problem
from labctl.store.problem import Found, Problem

EVENTS = [Event(n, "k", 1, "b", "w", "p", None, f"e-{n}", {}, "", "") for n in range(1, 5)]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem, "CORES", {0, 1})


def test_what_is_found_is_in_the_order_of_the_events_whichever_was_looked_at_first() -> None:
    second = threading.Event()

    def look(event: Event, own: Found) -> None:
        if event.seq == 1:
            assert second.wait(60), "two are looked at at once"
        own.problems.append(Problem("p", str(event.seq), ""))
        own.chunks += event.seq
        second.set()

    found = Found()
    found.each(EVENTS, look)
    assert [one.where for one in found.problems] == ["1", "2", "3", "4"] and found.chunks == 10


def test_what_was_found_before_one_that_cannot_be_looked_at_stays() -> None:
    def look(event: Event, own: Found) -> None:
        own.notes.append(str(event.seq))
        if event.seq == 2:
            raise KeyError("streams")

    found = Found()
    found.guard("unreadable", "here", lambda: found.each(EVENTS, look))
    assert found.notes == ["1", "2"] and [one.what for one in found.problems] == ["unreadable"]


@pytest.mark.parametrize("error", [KeyError("streams"), RecursionError("maximum recursion depth exceeded")])
def test_whatever_a_tampered_form_raises_is_one_more_problem(error: Exception) -> None:
    def look() -> None:
        raise error

    found = Found()
    found.guard("unreadable", "here", look)
    assert [one.what for one in found.problems] == ["unreadable"]
