"""What a published folder has beside its record: verify compares the journal as lines, report makes the rest anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.runs.published import listed
from support.runs.recordings import digests

from labctl.publishing.again import report_again
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
    (line,) = [line for line in checked.unchecked if "labctl report of this folder makes them anew" in line]
    assert checked.problems == []
    assert "whether report/, README.md, croissant.json, eval_results/, tables/ say" in line


def test_what_was_written_by_hand_beside_a_report_is_found_by_whoever_makes_the_report_again(
    mine: Path, tmp_path: Path
) -> None:
    """Only the report was made anew: a table or a result that was edited and listed passed with it."""
    (result,) = sorted(path.name for path in (mine / "eval_results").iterdir())
    change(mine, "tables/episodes.csv", lambda data: data.replace(b"zebra", b"horse", 1))
    change(mine, f"eval_results/{result}", lambda data: data.replace(b'"value": ', b'"value": 9', 1))
    change(mine, "README.md", lambda data: data + b"Ten times faster.")
    before = digests(mine)
    again = report_again(mine, tmp_path / "r")
    assert again.words.startswith("NOT the published report: ") and digests(mine) == before
    named = {line.partition("[")[0].partition(":")[0] for line in again.numbers}
    assert named == {"tables/episodes.csv", f"eval_results/{result}", "README.md"} == set(again.files)
