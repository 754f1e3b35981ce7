"""k-of-n tables from a file: read, checked, and summed over any columns before anything is divided; axis codes.

May not: handle censoring, round a count (what is no whole number is refused), or hold the list of codes a protocol may
use (`labctl.config.cell_schema` does); a further code under a category is fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labctl.analysis.binary.rates import rate
from labctl.analysis.reading import read_csv
from labctl.errors import TableError

MODALITIES = {"V": "visual", "S": "semantic", "B": "behavioural"}
UNPERTURBED = "in-distribution"
PREFIXES = ("V", "S", "B", "VB", "SB", "VS", "VSB")


def category(axis: str, where: str) -> str:
    """`visual`, `semantic`, … `visual + semantic + behavioural`, or `in-distribution` for a base condition.

    A composition (`V-SC+S-PROP`, blanks allowed) belongs to the union of its axes' modalities.
    Raises `TableError` at `where` for what is no code.
    """
    if axis.lower() in ("", "base", UNPERTURBED):
        return UNPERTURBED
    touched = set("".join(_prefix(code.strip(), where) for code in axis.split("+")))
    return " + ".join(name for letter, name in MODALITIES.items() if letter in touched)


def _prefix(code: str, where: str) -> str:
    prefix, hyphen, rest = code.partition("-")
    if not (hyphen and rest and prefix in PREFIXES):
        allowed = f"a code such as V-SC, under one of {', '.join(PREFIXES)}, joined by +, or {UNPERTURBED}"
        raise TableError(where, f"axis is {code!r}; allowed is {allowed}")
    return prefix


COUNTS = ("successes", "trials")
GIVEN = ("rate", "ci_wilson", "ci_exact")  # what `rates` says of a group; no column to group by is called so
AXIS, CATEGORY = "axis", "category"
Group = tuple[str, ...]


def rates(path: str | Path, by: Sequence[str]) -> list[dict[str, Any]]:
    """One entry per group of the columns `by`, in order of first appearance; without columns, one entry for all.

    Each has the group's values, successes, trials, rate and 95 % intervals `ci_wilson` and `ci_exact`
    (Clopper–Pearson), as fractions; null where a group has no trials. Where the table has a column `axis` and none
    called `category`, `category` is derived from the axis codes. Raises `TableError` with `file:line`.
    """
    pooled = pool(path, by)
    for name in by:
        if name in GIVEN:
            said = f"grouping by {name!r} would hide each group behind its result of that name; rename the column"
            raise TableError(f"{path}:1", said)
    return [{**dict(zip(by, key, strict=True)), **rate(*counts)} for key, counts in pooled.items()]


def pool(path: str | Path, by: Sequence[str]) -> dict[Group, tuple[int, int]]:
    """Successes and trials of every group of the columns `by`, in order of first appearance.

    Raises `TableError` with `file:line`.
    """
    file = Path(path)
    header, lines = read_csv(file)
    derived = CATEGORY in by and CATEGORY not in header and AXIS in header
    _check(header, [name for name in by if not (derived and name == CATEGORY)], f"{file}:1")
    pooled: dict[Group, tuple[int, int]] = {}
    for where, row in _counted(lines, file):
        named = {name: str(value).strip() for name, value in row.items()}
        if derived:
            named[CATEGORY] = category(named[AXIS], where)
        group = tuple(named[name] for name in by)
        before = pooled.get(group, (0, 0))
        pooled[group] = (before[0] + int(named["successes"]), before[1] + int(named["trials"]))
    if not pooled:
        raise TableError(str(file), "no rows below the header; a counts table needs at least one row")
    return pooled


def _counted(lines: Iterable[tuple[int, Mapping[str, str]]], file: Path) -> Iterable[tuple[str, Mapping[str, str]]]:
    """`file:line` and row of every line whose counts are counts."""
    for line, row in lines:
        where = f"{file}:{line}"
        successes, trials = (_count(row, name, where) for name in COUNTS)
        if successes > trials:
            raise TableError(where, f"successes is {successes} of {trials} trials; allowed is at most the trials")
        yield where, row


def _check(header: Sequence[str], by: Sequence[str], where: str) -> None:
    repeated = sorted({n for n in header if list(header).count(n) > 1})
    if repeated:
        raise TableError(where, f"column {repeated[0]!r} appears more than once; keep one")
    for name in COUNTS:
        if name not in header:
            raise TableError(where, f"missing column {name}; a counts table needs {' and '.join(COUNTS)}")
    groups = [n for n in header if n not in COUNTS]
    for name in by:
        if name not in groups:
            raise TableError(where, f"no column {name!r} to group by; the grouping columns are {', '.join(groups)}")
    if len(set(by)) < len(by):
        raise TableError(where, f"grouping by {', '.join(by)} names a column twice; name each once")


def _count(row: Mapping[str, str], name: str, where: str) -> int:
    text = str(row[name]).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise TableError(where, f"{name} is {text!r}; allowed is a whole number, 0 or more")
    return int(text)
