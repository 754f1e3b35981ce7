"""Rows of other people's results, on their way to an episodes table: checked as one, and written as CSV text.

May not: know a source; each has a module of its own (`from_*.py`). Writes no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.analysis.episodes_table.columns import MEASURES, OPTIONAL, REQUIRED, STAGE_TIME
from labctl.analysis.episodes_table.table import EpisodesTable, Line, place, table_from_lines
from labctl.analysis.episodes_table.values import is_printable, text
from labctl.analysis.reading import contents
from labctl.analysis.results import Plain
from labctl.analysis.table import Value
from labctl.analysis.writing import csv_lines
from labctl.errors import TableError

Row = dict[str, Value]
Document = Mapping[str, Plain]
ARM = re.compile(r"[^|]*[^|\s][^|]*")
LONGEST_SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True)
class Imported:
    """Rows by the columns of an episodes table, the line that each is from (of the source; of JSON "FILE: PLACE"), and
    what was left out or taken in another way than it stands there.
    """

    source: str
    rows: list[Row]
    lines: Sequence[Line]
    notes: tuple[str, ...] = ()

    def checked(self) -> EpisodesTable:
        """The table that these rows make. Raises `TableError`, with the source's line."""
        if not self.rows:
            raise TableError(self.source, f"no episode to import{''.join(f'; {note}' for note in self.notes)}")
        for line, row in zip(self.lines, self.rows, strict=True):
            for column, value in row.items():
                if any("\ud800" <= letter <= "\udfff" for letter in text(value)):
                    found = f"{column} is {shortened(value)}, half of a character that no file can hold"
                    raise TableError(place(self.source, line), f"{found}; write it out anew")
        return table_from_lines(zip(self.lines, self.rows, strict=True), self.source)

    def columns(self) -> list[str]:
        """The columns that have anything in them, in the order of the interface; stage times last, also of a stage that
        nobody reached or nobody timed.
        """
        known = [*REQUIRED, *MEASURES, *OPTIONAL]
        timed = sorted({c for row in self.rows for c in row if STAGE_TIME.match(c)}, key=lambda c: int(c.split("_")[1]))
        return [*(c for c in known if c in REQUIRED or any(text(row.get(c)) for row in self.rows)), *timed]

    def csv(self) -> str:
        """The table as CSV."""
        columns = self.columns()
        return csv_lines([columns, *([text(row.get(column)) for column in columns] for row in self.rows)])


def read_json(path: Path) -> Plain:
    """What a JSON file holds. Raises `TableError` for one that cannot be read, is none, or says a key twice."""
    try:
        return json.loads(contents(path), object_pairs_hook=lambda pairs: _once(pairs, str(path)))
    except OSError as e:
        raise TableError(str(path), f"cannot be read: {e.strerror}; give the path of a JSON file") from e
    except json.JSONDecodeError as e:
        raise TableError(f"{path}:{e.lineno}", f"is not JSON: {e.msg}; give the file as it was written") from e
    except UnicodeDecodeError as e:
        raise TableError(str(path), "is not JSON: it is no text; give the file as it was written") from e
    except RecursionError:
        raise TableError(str(path), "is nested too deeply to be read; give the file as it was written") from None
    except ValueError:  # a number of thousands of digits
        raise TableError(str(path), "holds a number too long to be read; give the file as it was written") from None


def _once(pairs: Sequence[tuple[str, Plain]], where: str) -> dict[str, Plain]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(where, f"the key {twice!r} stands twice in one object; keep the one that is meant")
    return found


def listed(value: Plain, at: str, where: str) -> Sequence[Plain]:
    """A list out of a JSON document. Raises `TableError` naming its place."""
    if not isinstance(value, list):
        raise TableError(where, f"{at} is {_kind(value)}; expected a list")
    return value


def mapped(value: Plain, at: str, where: str) -> Document:
    """An object out of a JSON document. Raises `TableError` naming its place."""
    if not isinstance(value, dict):
        raise TableError(where, f"{at} is {_kind(value)}; expected an object")
    return value


def word(value: Plain) -> str:
    """A value out of a JSON document as text in one line; "" for what is missing, or no value by itself."""
    return " ".join(text(value).split()) if isinstance(value, str | int | float) else ""


def shortened(value: Plain) -> str:
    """A value as a message shows it, however long it is."""
    shown = repr(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def arm_names(given: Sequence[str], found: Sequence[str], sources: Sequence[str]) -> list[str]:
    """One arm for each source: as given, else as found in it. Raises `TableError` for a name that can be none."""
    if given and len(given) != len(sources):
        raise TableError(sources[0], f"--arm is given {len(given)} times for {len(sources)} sources; give one for each")
    names = list(given or found)
    for name, source in zip(names, sources, strict=True):
        if not ARM.fullmatch(name) or not is_printable(name):
            raise TableError(source, f"the arm's name would be {name!r}; give one with --arm")
    return names


def _kind(value: Plain) -> str:
    words = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "missing" if value is None else words.get(type(value), "a number")
