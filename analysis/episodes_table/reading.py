"""Read a table from CSV or Parquet and tell which of the two it is: of operations, or of episodes.

May not: check a row; `table.py` of each does.
"""

from __future__ import annotations

from pathlib import Path

from labctl.analysis.episodes_table.columns import check_columns, is_episodes
from labctl.analysis.episodes_table.table import EpisodesTable, table_from_lines
from labctl.analysis.reading import Columns, operations_of, read_any
from labctl.analysis.table import Table


def read_either(path: str | Path, *, extra: bool = False) -> Table | EpisodesTable:
    """The checked table in `path` (`.parquet` by its ending, else CSV in UTF-8), told apart by its columns; `extra`
    admits unknown ones. Raises `TableError` with `file:line`; a Parquet row is counted as a line, from 1.
    """
    found = read_any(path)
    if not is_episodes(found.names, found.where):
        return operations_of(found, extra=extra)
    return _episodes_of(found, extra)


def read_episodes(path: str | Path, *, extra: bool = False) -> EpisodesTable:
    """The checked episodes table in `path`. Raises `TableError` with `file:line`."""
    return _episodes_of(read_any(path), extra)


def _episodes_of(found: Columns, extra: bool) -> EpisodesTable:
    check_columns(found.names, found.where, extra=extra)
    return table_from_lines(found.lines, found.source)
