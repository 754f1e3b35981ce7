"""docs/columns.md lists the columns of both tables: run this file to write it, run the test to hold it current."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from labctl.analysis import column_meanings as meanings
from labctl.analysis import table as operations
from labctl.analysis.episodes_table import columns as episodes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "columns.md"
HEAD = (
    "# Columns of the tables\n\n"
    "Two tables go into the statistics, as CSV (UTF-8, commas) or Parquet; `labctl analyze` tells them apart by their "
    "columns. Others are refused unless `--extra` admits them. `labctl export` always writes all of them. Written by "
    "`make docs`.\n"
)
OPERATIONS = (
    "\n## The operations table\n"
    "One row an operation, the timed unit of PhAIL, in order within an episode; `labctl export --to table`. "
    "[Statistics](statistics.md) says how it is counted.\n\n"
)
EPISODES = (
    "\n## The episodes table\n"
    "One row an episode of any task; `labctl export --to episodes`, `labctl import`. Besides the required columns it "
    "has one of `success` and `score` at least. [Episodes tables](episodes.md) says what is computed of it.\n\n"
)
ROW = "| column | | |\n|---|---|---|\n"


def rows(meaning: Mapping[str, str], required: Collection[str]) -> str:
    return ROW + "".join(
        f"| `{name}` | {'required' if name in required else ''} | {text} |\n" for name, text in meaning.items()
    )


def page() -> str:
    """The page as the code has the columns now."""
    stages = f"| `stage_1_s` … | | {meanings.STAGE_TIMES} |\n"
    of_operations = rows(meanings.OF_OPERATIONS, operations.REQUIRED)
    return HEAD + OPERATIONS + of_operations + EPISODES + rows(meanings.OF_EPISODES, episodes.REQUIRED) + stages


def test_every_column_has_one_sentence_and_no_sentence_is_of_another() -> None:
    assert sorted(meanings.OF_OPERATIONS) == sorted((*operations.REQUIRED, *operations.OPTIONAL))
    assert sorted(meanings.OF_EPISODES) == sorted((*episodes.REQUIRED, *episodes.MEASURES, *episodes.OPTIONAL))


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


if __name__ == "__main__":
    sys.stdout.write(page())
