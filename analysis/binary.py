"""k-of-n tables: pool by any columns, exact and Wilson intervals.

Knows no operations table and no censoring; a count that is not a whole number is refused, never rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from labctl.analysis.reading import read_csv
from labctl.analysis.table import TableError
from scipy import stats

COUNTS = ("successes", "trials")


def rates(path: str | Path, by: Sequence[str]) -> list[dict[str, object]]:
    """One entry per group of the columns `by`, in order of first appearance; without columns, one entry for all.

    Each has the group's values, successes, trials, rate and 95 % intervals `ci_wilson` and `ci_exact`
    (Clopper–Pearson), as fractions; null where a group has no trials. Counts are summed before anything is divided.
    Raises `TableError` with `file:line`.
    """
    file = Path(path)
    header, lines = read_csv(file)
    _check(header, by, f"{file}:1")
    pooled: dict[tuple[str, ...], list[int]] = {}
    for line, row in lines:
        where = f"{file}:{line}"
        successes, trials = (_count(row, name, where) for name in COUNTS)
        if successes > trials:
            raise TableError(where, f"successes is {successes} of {trials} trials; allowed is at most the trials")
        group = pooled.setdefault(tuple(str(row[name]).strip() for name in by), [0, 0])
        group[0] += successes
        group[1] += trials
    if not pooled:
        raise TableError(str(file), "no rows below the header; a counts table needs at least one row")
    return [{**dict(zip(by, key, strict=True)), **rate(*counts)} for key, counts in pooled.items()]


def rate(successes: int, trials: int) -> dict[str, object]:
    """Rate and 95 % intervals of one k of n (scipy.stats.binomtest)."""
    counts = {"successes": successes, "trials": trials}
    if trials == 0:
        return {**counts, "rate": None, "ci_wilson": None, "ci_exact": None}
    test = stats.binomtest(successes, trials)
    wilson, exact = (test.proportion_ci(0.95, method) for method in ("wilson", "exact"))
    return {
        **counts,
        "rate": successes / trials,
        "ci_wilson": [float(wilson.low), float(wilson.high)],
        "ci_exact": [float(exact.low), float(exact.high)],
    }


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


def _count(row: Mapping[str, object], name: str, where: str) -> int:
    text = str(row[name]).strip()
    if not (text.isascii() and text.isdigit()):
        raise TableError(where, f"{name} is {text!r}; allowed is a whole number, 0 or more")
    return int(text)
