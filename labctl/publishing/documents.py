"""Two documents of one name, of a published folder and made anew, value by value: JSON, and tables as CSV.

May not: take a number, a name or a verdict for words, or read a key that stands twice.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.errors import one_line
from labctl.plain import Json
from labctl.publishing.eval_results import as_formerly
from labctl.publishing.manifest import plain_json
from labctl.publishing.versions import versions

CLOSE = 1e-9  # relative: what another version of a library may make of a sum
NUMBER = re.compile(r"\d+(?:\.\d+)?")
DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?")
# where texts say what made a report, or a cell's part of it
MADE_BY = re.compile(r"(?:lab\.provenance\.(?:[^.:]+: )?)?analysed_by")
DOCUMENT = "report.json"  # of a report, the one file that is looked at value by value
# keys of a report's JSON below which labctl's own sentences stand; every other text is compared letter by letter
SENTENCES = (
    *("warnings", "words", "notes", "deviations", "abandoned", "unreviewed", "provisional_why", "look", "statement"),
    *("text", "what", "stated", "provenance", "why", "rrd_command", "people", "times", "rig", "dates", "source"),
)


def apart_in(
    name: str, published: Path, there: Path, made_with: Mapping[str, str]
) -> tuple[list[str], list[str], float]:
    """Of two documents of this name: what makes them different ones, where words alone differ, how far numbers do that
    count as the same.
    """
    old, new = (_read(place / name) for place in (published, there))
    if old is None or isinstance(old, Mapping) != isinstance(new, Mapping):
        return [f"{name}: the published one is missing or cannot be read"], [], 0.0
    if name.startswith("eval_results/"):
        new = as_formerly(old, new)
    names, other_code = set(_names(new)) | {"result"}, made_with.get("code") != versions()["code"]
    lines, texts, furthest = list[str](), list[str](), 0.0
    if name.endswith(".csv"):
        old, new, said = _where_both_say(old, new)
        (texts if other_code else lines).extend(one_line(f"{name}: {text}") for text in said)
    for one in _apart(old, new, "" if name == DOCUMENT else name):
        apart = _relative(one.published, one.here)
        if apart is not None and apart <= CLOSE:
            furthest = max(furthest, apart)
        elif not _says_what_made_it(one):
            in_words = (other_code and one.key not in names) if one.lacking else _in_words(one)
            into = texts if in_words else lines
            first = _first_apart(one.published, one.here)
            said = f"published {_short(one.published, first)}, here {_short(one.here, first)}"
            into.append(one_line(f"{one.where}: {said}"))
    return lines, texts, furthest


@dataclass(frozen=True, slots=True)
class _Place:
    """Where two documents differ, and under which key. told: below a key of `SENTENCES`; lacking: one has no such
    key.
    """

    where: str
    key: str
    published: Json
    here: Json
    told: bool
    lacking: bool = False


def _relative(one: Json, two: Json) -> float | None:
    """The relative difference of two numbers, None of anything else."""
    if not isinstance(one, float | int) or not isinstance(two, float | int) or bool in (type(one), type(two)):
        return None
    try:
        return abs(one - two) / max(abs(one), abs(two))
    except (OverflowError, ZeroDivisionError):  # a whole number beyond every float; and 0 is -0.0
        return math.inf if one != two else 0.0


def _says_what_made_it(place: _Place) -> bool:
    """Whether what differs is which labctl made a report, as both say it."""
    texts = isinstance(place.published, str) and isinstance(place.here, str)
    return texts and MADE_BY.fullmatch(place.where) is not None


def _in_words(place: _Place) -> bool:
    """Whether what differs is the wording of a sentence with the same numbers in it. A name is none."""
    pair = (place.published, place.here)
    texts = [text for text in pair if isinstance(text, str) and " " in text]
    return place.told and len(texts) == 2 and len({tuple(sorted(NUMBER.findall(text))) for text in texts}) == 1


def _names(document: Json) -> Iterator[str]:
    """Arms and objects that a report's document names."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key in ("arm", "object") and isinstance(value, str):
                yield value
            else:
                yield from _names(value)
    elif isinstance(document, list):
        for value in document:
            yield from _names(value)


def _read(path: Path) -> Json:
    """A document, or the rows of a table; None for one that is missing, that nobody can read, or that two readers can
    read as two.
    """
    try:
        data = path.read_bytes()
        return _rows(data.decode("utf-8")) if path.suffix == ".csv" else plain_json(data)
    except (OSError, ValueError, RecursionError, csv.Error):
        return None


def _rows(text: str) -> list[Json]:
    """The rows of a CSV, by column. Raises ValueError for a column that stands twice, and for a row of other length."""
    columns, *rows = csv.reader(io.StringIO(text, newline=""))
    if len(set(columns)) != len(columns):
        raise ValueError("a column stands in it twice")
    return [{name: _number(cell) for name, cell in zip(columns, row, strict=True)} for row in rows]


def _where_both_say(old: Json, new: Json) -> tuple[Json, Json, list[str]]:
    """Two tables without the columns of which the published one says nothing in any row, and a line for each of these
    of which the other does.
    """
    then, now = _cells(old), _cells(new)
    empty = [column for column in (then[0] if then else ()) if all(row[column] == "" for row in then)]
    said = {column: [row[column] for row in now if row.get(column, "") != ""] for column in empty}
    lines = [f"{column}: published nothing, here {_short(cells[0], 0)}" for column, cells in said.items() if cells]
    return _without(then, empty), _without(now, empty), lines


def _cells(rows: Json) -> list[Mapping[str, Json]]:
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _without(rows: Sequence[Mapping[str, Json]], columns: Collection[str]) -> list[Json]:
    return [{key: row[key] for key in row if key not in columns} for row in rows]


def _number(cell: str) -> float | str:
    """A cell, as a number where it is one."""
    return float(cell) if DECIMAL.fullmatch(cell) else cell


def _apart(one: Json, two: Json, where: str, key: str = "", told: bool = False) -> Iterator[_Place]:
    """Every place in which two documents differ."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for name in sorted({*one, *two}):
            below, its = f"{where}.{name}".lstrip("."), told or name in SENTENCES
            if name in one and name in two:
                yield from _apart(one[name], two[name], below, name, its)
            else:
                yield _Place(below, name, one.get(name), two.get(name), its, lacking=True)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True)):
            yield from _apart(*pair, f"{where}[{number}]", key, told)
    elif one != two or isinstance(one, bool) != isinstance(two, bool):
        yield _Place(where, key, one, two, told)


def _first_apart(one: Json, two: Json) -> int:
    """Where two texts begin to differ; 0 of anything else."""
    if not isinstance(one, str) or not isinstance(two, str):
        return 0
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _short(value: Json, first: int) -> str:
    if isinstance(value, str) and len(value) > 55 and first > 20:
        value = f"…{value[first - 20 :]}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}…"
