"""Read a table from CSV or Parquet: rows by their columns, and an operations table of them.

Opens files and names lines; what a row may hold is decided in `table.py`.
"""

from __future__ import annotations

import csv
import importlib
import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from labctl.analysis.numerals import counted
from labctl.analysis.table import Row, Table, check_columns, table_from_lines
from labctl.errors import TableError

STANDARD = "-"


def read_table(path: str | Path, *, extra: bool = False) -> Table:
    """The checked table in `path` (`.parquet` by its ending, else CSV in UTF-8); `extra` admits unknown columns.

    Raises `TableError` with `file:line` for a user's mistake; a Parquet row is counted as a line, from 1.
    """
    return operations_of(read_any(path), extra=extra)


def operations_of(found: Columns, *, extra: bool = False) -> Table:
    """The checked operations table of rows that were read."""
    check_columns(found.names, found.where, extra=extra)
    return table_from_lines(found.lines, found.source)


@dataclass(frozen=True)
class Columns:
    """A file's column names, where they stand, and its rows by line, each by column. The rows can be gone through once.

    Going through them raises `TableError` for a row of another width.
    """

    source: str
    where: str
    names: list[str]
    lines: Iterable[tuple[int, Row]]


def read_any(path: str | Path) -> Columns:
    """The rows of `path` (`.parquet` by its ending, else CSV in UTF-8; "-" is standard input), whatever its columns; a
    Parquet row counts as a line, from 1. Raises `TableError`.
    """
    file = Path(path)
    if file.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(file)
    header, lines = read_csv(file)
    return Columns(str(file), f"{file}:1", header, lines)


_taken: list[tuple[TextIO, bytes]] = []  # standard input and what was in it, once it has been read


def contents(file: Path) -> bytes:
    """What a file holds; "-" is standard input, which can be asked for again. Raises OSError."""
    if str(file) != STANDARD:
        return file.read_bytes()
    if not _taken or _taken[0][0] is not sys.stdin:
        _taken[:] = [(sys.stdin, sys.stdin.buffer.read())]
    return _taken[0][1]


def read_csv(file: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Header and (line number, row) pairs of a CSV file; blank lines are skipped.

    Raises `TableError`: unreadable, empty or not UTF-8, and, while iterating, a row of another width.
    """
    try:
        text = contents(file).decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = e.object[: e.start].count(b"\n") + 1
        found = f"byte 0x{e.object[e.start]:02x} is not UTF-8"
        raise TableError(f"{file}:{line}", f"{found}; save the file as CSV in UTF-8") from e
    except OSError as e:
        raise TableError(str(file), f"cannot be read: {e.strerror}; give the path of a CSV file") from e
    records = _records(text, file)
    _, header = next(records, (1, []))
    header = [name.strip() for name in header]
    if not any(header):
        raise TableError(f"{file}:1", "the file is empty; its first line names the columns")
    if len(header) == 1 and ";" in header[0]:
        found = "values are apart by semicolons; save the file with commas, and decimal points"
        raise TableError(f"{file}:1", f"{found}, or read it with pandas for labctl.api.from_frame (docs/api.md)")
    return header, _rows(records, header, file)


def _records(text: str, file: Path) -> Iterator[tuple[int, list[str]]]:
    """The first line number and the values of every record; a quoted value may span lines."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as e:
            raise TableError(f"{file}:{line}", f"is not CSV: {e}; check quotes and commas in this line") from e
        if cells is None:
            return
        yield line, cells


def _rows(
    records: Iterator[tuple[int, list[str]]], header: list[str], file: Path
) -> Iterator[tuple[int, dict[str, str]]]:
    for line, cells in records:
        if not cells:
            continue
        if len(cells) != len(header):
            problem = f"{counted(len(cells), 'value')} for {counted(len(header), 'column')}"
            raise TableError(f"{file}:{line}", f"{problem}; quote values that hold a comma, and fill empty ones")
        yield line, dict(zip(header, cells, strict=True))


def _read_parquet(file: Path) -> Columns:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        arrow = importlib.import_module("pyarrow")
    except ImportError as e:
        raise TableError(str(file), "Parquet needs pyarrow: pip install 'labctl[parquet]', or save as CSV") from e
    try:
        read = parquet.ParquetFile(file).read()
        names, rows = read.column_names, read.to_pylist()
    except OSError as e:
        raise TableError(str(file), "cannot be read as Parquet; give the path of a Parquet or CSV file") from e
    except (arrow.ArrowException, ValueError) as e:  # ValueError: text in it that is no UTF-8
        raise TableError(str(file), "is not a Parquet file; give the path of a Parquet or CSV file") from e
    return Columns(str(file), str(file), names, enumerate(rows, start=1))
