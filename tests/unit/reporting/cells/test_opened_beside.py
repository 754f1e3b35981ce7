"""What a cell's lab opened beside its part: parts of the same report are no further tries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from labctl.reporting.cells.stated import OPENED, opened_beside


def part(campaign: str, commitment: str) -> Any:
    return SimpleNamespace(state=SimpleNamespace(opened={"campaign": campaign, "commitment": commitment}))


SAID = {
    OPENED: {
        "two-a (aaaaaaaa):": "this report's",
        "two-b (bbbbbbbb):": "opened 2026-11-28, unblinded, 4 of 4 trials scored",
        "two-b (cccccccc):": "opened 2026-11-27, its folder is gone",
    },
    "something else": {"x": "y"},
}


def test_every_part_of_the_report_is_this_reports_and_another_of_its_name_is_not() -> None:
    parts = [part("two-a", "a" * 64), part("two-b", "b" * 64)]
    assert opened_beside(SAID, parts) == {
        "two-a (aaaaaaaa):": "this report's",
        "two-b (bbbbbbbb):": "this report's",
        "two-b (cccccccc):": "opened 2026-11-27, its folder is gone",
    }
    assert opened_beside(SAID, parts[:1]) == SAID[OPENED]


def test_a_lab_that_says_nothing_of_what_it_opened_has_no_rows() -> None:
    assert opened_beside({"": {}}, [part("two-a", "a" * 64)]) == {}
