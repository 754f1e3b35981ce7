"""What a published folder has beside its record: the journal as lines is compared, the rest is said not to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.runs.published import listed

from labctl.publishing.check import check_published

pytestmark = pytest.mark.usefixtures("no_collector")


def change(folder: Path, name: str, how: Callable[[bytes], bytes]) -> None:
    """A publisher who says something else there, and lists it so."""
    (folder / name).write_bytes(how((folder / name).read_bytes()))
    listed(folder, name)


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"[" * 100_000], ids=["no JSON", "no text", "endless brackets"])
def test_a_line_of_the_journals_table_that_cannot_be_read_is_named(line: bytes, mine: Path) -> None:
    change(mine, "tables/journal.jsonl", lambda data: line + b"\n" + data)
    (problem,) = check_published(mine).problems
    assert str(problem) == "changed table: tables/journal.jsonl: line 1 is not the journal's entry"


@pytest.mark.parametrize(
    ("then", "now"),
    [(b'"trial": null', b'"trial": "t-other", "trial": null'), (b'"seq": 1,', b'"seq": true,')],
    ids=["a key that stands twice", "true for 1"],
)
def test_a_line_of_the_journals_table_that_says_something_else_to_others_is_named(
    then: bytes, now: bytes, mine: Path
) -> None:
    def other(data: bytes) -> bytes:
        assert then in data.splitlines()[0]
        return data.replace(then, now, 1)

    change(mine, "tables/journal.jsonl", other)
    (problem,) = check_published(mine).problems
    assert str(problem) == "changed table: tables/journal.jsonl: line 1 is not the journal's entry"


def test_what_was_not_made_anew_is_called_unchecked(mine: Path) -> None:
    change(mine, "tables/episodes.csv", lambda data: data + data)
    checked = check_published(mine)
    (line,) = [line for line in checked.unchecked if "the publisher wrote them" in line]
    assert checked.problems == [] and "README.md" in line and "croissant.json, eval_results/, tables/ say" in line
