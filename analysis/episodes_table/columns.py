"""The columns of an episodes table, and which of the two tables a header belongs to.

May not: read a value or a file; `table.py` checks rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from labctl.analysis import table as operations
from labctl.analysis.episodes_table.values import MOST_STAGES
from labctl.errors import TableError

REQUIRED = ("block", "arm")
MEASURES = ("success", "score", "time_s")
OF_BLOCK = (
    *("site", "cell", "task", "condition", "base", "set", "axis", "tags", "split", "family", "difficulty", "stress"),
    *("compared", "preferred"),
)
"""What a block has one of, in all of its rows."""
NUMBERS = ("position", "stage", "steps", "budget_s", "moved", "staged", "interventions")
OPTIONAL = (
    *("episode", "position", "session", "site", "cell", "operator", "evaluator", "task", "condition", "base"),
    *("set", "instruction", "object", "axis", "tags", "split", "family", "difficulty", "stress", "stage", "steps"),
    *("budget_s", "moved", "staged", "compared", "preferred", "end_reason", "interventions", "void"),
)
TEXTS = tuple(name for name in OPTIONAL if name not in (*NUMBERS, "void"))
STAGE_TIME = re.compile(r"^stage_([1-9][0-9]{0,3})_s$")


def is_episodes(names: Sequence[str], where: str) -> bool:
    """Whether a header is that of an episodes table, not of an operations table.

    Raises `TableError` at `where` for a header that can be neither.
    """
    if "kind" in names:
        return False
    if any(name in names for name in (*MEASURES, "block")) and "arm" in names:
        return True
    one = f"an operations table needs {', '.join(operations.REQUIRED)}"
    other = f"an episodes table {', '.join(REQUIRED)} and one of {', '.join(MEASURES)}"
    raise TableError(where, f"columns {', '.join(names)} make no table that is known: {one}; {other}")


def check_columns(names: Sequence[str], where: str, *, extra: bool = False) -> None:
    """Refuse a header with repeated, missing or (unless `extra`) unknown columns."""
    operations.check_required(names, REQUIRED, where)
    if not any(n in names for n in ("success", "score")):
        text = "time_s says when, not whether: it needs success" if "time_s" in names else "no row says how it went"
        raise TableError(where, f"{text}; give a column success (0 or 1) or score (0 to 1)")
    if "time_s" in names and "success" not in names:
        raise TableError(where, "time_s needs success beside it (1: done then, 0: ended then); add the column")
    unknown = [n for n in names if n not in (*REQUIRED, *MEASURES, *OPTIONAL) and not STAGE_TIME.match(n)]
    if unknown and not extra:
        known = ", ".join((*REQUIRED, *MEASURES, *OPTIONAL))
        raise TableError(
            where, f"unknown column {unknown[0]!r}; known are {known}, stage_1_s … (--extra admits others)"
        )
    most = next((n for n in names if (found := STAGE_TIME.match(n)) and int(found[1]) > MOST_STAGES), None)
    if most:
        raise TableError(where, f"column {most} is beyond the {MOST_STAGES} stages that a task may have")
    stages = sorted(int(found[1]) for n in names if (found := STAGE_TIME.match(n)))
    if stages != list(range(1, len(stages) + 1)):
        lacks = next(k for k in range(1, len(stages) + 2) if k not in stages)
        raise TableError(
            where, f"column stage_{lacks}_s is missing below stage_{stages[-1]}_s; number stages from 1 on"
        )
