"""docs/columns.md lists the columns of both tables, each with a sentence that stands here: run this file to write the
page, run the test to hold it current.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from click.testing import CliRunner

from labctl.analysis import table as operations
from labctl.analysis.episodes_table import columns as episodes
from labctl.cli.statistics import analyze

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
OF_OPERATIONS: Mapping[str, str] = {
    "episode": "Name of the episode, the same in all of its rows.",
    "arm": "What was tried: a policy or the person, one for an episode; absent in an export before unblinding.",
    "object": "What was moved, one for an episode; may be `all`.",
    "kind": "`success`: an item was moved; `censored`: it was open at the end; `ghost`: it was lost for good.",
    "time_s": "Since the previous success of the episode, or go, s; of a ghost when it happened, empty if unknown.",
    "op_index": "Place of the row in its episode, from 0; without it the order of the rows counts.",
    "items_staged": "How many items there were at go.",
    "end_s": "When the episode ended, s since go; after `futility` or `interlock` items per hour count to `budget_s`.",
    "budget_s": "The time budget of the whole episode, s.",
    "block": "Trials that are compared with each other: every arm once at one condition.",
    "session": "Evening or sitting in which it was run.",
    "trial": "The trial that the episode is an attempt at.",
    "condition": "Object and layout, or the task, that the block stands for.",
    "cause": "Why a row is censored or a ghost: `budget`, `drop`, `wrong_end` and others.",
    "stage": "The furthest stage that the episode reached.",
    "operator": "Opaque id of who operated.",
    "tote_side": "On which side the target tote stood.",
    "camera_side": "On which side the camera stood.",
    "axis": "Codes of what a condition perturbs (★-Gen), several joined by `+`.",
    "void": "1 for an episode that was voided after go: left out unless the protocol counts it.",
    "interventions": "How often a person touched the episode while it ran.",
    "alone": "1 for one of an extra block of the person alone: in its arm's own numbers and HRT, in no pair.",
    "cell": "The robot's cell it was run in, of a campaign in several; a block is in one.",
}
OF_EPISODES: Mapping[str, str] = {
    "block": "Episodes that are compared with each other: at most one of each arm.",
    "arm": "What was tried: a policy or the person; absent in an export before unblinding.",
    "success": "1: the task was done; 0: it was not.",
    "score": "How much of the task was done, 0 to 1.",
    "time_s": "When it was done, s since go; without success when it ended, or its budget.",
    "episode": "Name of the episode.",
    "position": "Place in its block in order of running, from 1.",
    "session": "Evening or sitting in which it was run.",
    "site": "Where it was run, one for a block.",
    "cell": "The robot's cell it was run in, of a campaign in several; one for a block.",
    "operator": "Opaque id of who operated.",
    "evaluator": "Opaque id of who judged.",
    "task": "Name of the task, one for a block.",
    "condition": "Name of the condition, one for a block.",
    "base": "The condition that this one perturbs.",
    "set": "Blocks that belong together: a base and what perturbs it.",
    "instruction": "What the policy was asked to do.",
    "object": "What was handled.",
    "axis": "Codes of what the condition perturbs (★-Gen), several joined by `+`.",
    "tags": "Tags of the task (EBench), apart by `;`.",
    "split": "`train` or `test`.",
    "family": "Family of a stress (NEBULA).",
    "difficulty": "Level of difficulty within its family.",
    "stress": "Level of stress within its family.",
    "stage": "How many stages were reached.",
    "steps": "How many steps of the policy it took.",
    "budget_s": "The time budget, s.",
    "moved": "How many items were moved.",
    "staged": "How many items there were.",
    "compared": "The two arms that were held against each other, `first|second` in order of running.",
    "preferred": "Which of the two was preferred: an arm, or `tie`.",
    "end_reason": "Why it ended.",
    "interventions": "How often a person touched it while it ran.",
    "void": "1 for an episode that does not count.",
}
STAGE_TIMES = "When stage 1, 2, … was reached, s since go; empty where it was not."


def rows(meaning: Mapping[str, str], required: Collection[str]) -> str:
    return ROW + "".join(
        f"| `{name}` | {'required' if name in required else ''} | {text} |\n" for name, text in meaning.items()
    )


def page() -> str:
    """The page as the code has the columns now."""
    stages = f"| `stage_1_s` … | | {STAGE_TIMES} |\n"
    of_operations = rows(OF_OPERATIONS, operations.REQUIRED)
    return HEAD + OPERATIONS + of_operations + EPISODES + rows(OF_EPISODES, episodes.REQUIRED) + stages


def test_every_column_has_one_sentence_and_no_sentence_is_of_another() -> None:
    assert sorted(OF_OPERATIONS) == sorted((*operations.REQUIRED, *operations.OPTIONAL))
    assert sorted(OF_EPISODES) == sorted((*episodes.REQUIRED, *episodes.MEASURES, *episodes.OPTIONAL))


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_the_help_of_analyze_names_the_page() -> None:
    shown = " ".join(CliRunner().invoke(analyze, ["--help"]).output.split())
    assert "docs/columns.md" in shown and PAGE.is_file()


if __name__ == "__main__":
    sys.stdout.write(page())
