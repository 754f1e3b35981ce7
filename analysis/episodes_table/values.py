"""One value of an episodes table: text to number, with what was found and what is allowed where it is none.

May not: know a second row.
"""

from __future__ import annotations

import math
import unicodedata

from labctl.analysis.table import LONGEST_S, Row, Value, is_yes
from labctl.errors import TableError

MOST_STAGES = 99
"""Of one task: a funnel has a row and a curve for each."""


def text(value: Value) -> str:
    """A value as text: "" where it is empty; the truth values of Parquet are 1 and 0."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value).strip()


def number(row: Row, column: str, where: str) -> float:
    """The number in a column, NaN where it is empty. Raises `TableError` for a value out of its range."""
    found = text(row.get(column))
    if not found:
        return math.nan
    try:
        value = float(found)
    except ValueError:
        value = math.nan
    allowed, remedy, holds = _RULES.get(column, _TIME)
    if not (math.isfinite(value) and holds(value)):
        hint = "write a decimal point" if "," in found else remedy
        raise TableError(where, f"{column} is {found!r}; allowed is {allowed}; {hint}")
    return value


def is_printable(word: str) -> bool:
    """Whether a name can be printed in a line: it holds no control character, and nothing that no encoding has."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in word)


def is_void(row: Row) -> bool:
    """Whether the row says that its episode is void."""
    return is_yes(row.get("void"))


def _whole(least: int, most: float = math.inf) -> tuple:
    return (
        f"a whole number, {least} or more, or empty" if most == math.inf else f"a whole number, {least} to {most:g}",
        "leave it empty if unknown",
        lambda v: v == int(v) and least <= v <= most,
    )


_TIME = (
    "a finite time in seconds, 0 or more, or empty",
    "leave it empty if unknown",
    lambda v: 0 <= v <= LONGEST_S,
)
_RULES = {
    "success": ("0 or 1, or empty", "write 1 where the task was done, else 0", lambda v: v in (0, 1)),
    "score": ("a number from 0 to 1, or empty", "divide percent or points by what is possible", lambda v: 0 <= v <= 1),
    "budget_s": ("a time above 0 s, or empty", "leave it empty if unknown", lambda v: 0 < v <= LONGEST_S),
    "position": _whole(1),
    "stage": _whole(0, MOST_STAGES),
    **{name: _whole(0) for name in ("steps", "moved", "interventions")},
    "staged": _whole(1),
}
