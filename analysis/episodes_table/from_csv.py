"""Any CSV or Parquet file with one row an episode as an episodes table, its columns renamed.

May not: guess what a column means; a name that is not mapped must be one of the table's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from labctl.analysis.episodes_table.columns import MEASURES, OPTIONAL, REQUIRED, STAGE_TIME, check_columns
from labctl.analysis.episodes_table.importing import Imported, Row
from labctl.analysis.episodes_table.values import text
from labctl.analysis.reading import read_any
from labctl.errors import TableError

YES = {"true": "1", "yes": "1", "false": "0", "no": "0"}
KNOWN = (*REQUIRED, *MEASURES, *OPTIONAL)


def mapping_of(given: Sequence[str]) -> dict[str, str]:
    """Our column to theirs, from column=theirs. Raises `TableError`."""
    out: dict[str, str] = {}
    for entry in given:
        ours, equals, theirs = (part.strip() for part in entry.partition("="))
        if not (equals and theirs):
            raise TableError(f"--map {entry}", "give column=theirs, such as --map arm=policy")
        if ours not in KNOWN and not STAGE_TIME.match(ours):
            raise TableError(
                f"--map {entry}", f"no column {ours!r} in an episodes table; its columns are {', '.join(KNOWN)}"
            )
        if ours in out:
            raise TableError(f"--map {entry}", f"{ours} is mapped twice; map it once")
        out[ours] = theirs
    return out


def from_csv(path: Path, mapping: Mapping[str, str]) -> Imported:
    """The rows of a file; `mapping` is our column to theirs. Columns that are neither mapped nor known are left out.

    In `success` yes, no, true and false are taken as well. Raises `TableError`.
    """
    found = read_any(path)
    for ours, theirs in mapping.items():
        if theirs not in found.names:
            raise TableError(found.where, f"no column {theirs!r} to map {ours} to; it has {', '.join(found.names)}")
    own = [
        n for n in found.names if (n in KNOWN or STAGE_TIME.match(n)) and n not in mapping and n not in mapping.values()
    ]
    columns = {**{name: name for name in own}, **mapping}
    check_columns(list(columns), found.where)
    twice = next((n for n in columns.values() if found.names.count(n) > 1), None)
    if twice:
        raise TableError(found.where, f"column {twice!r} appears {found.names.count(twice)} times; keep one")
    rows: list[Row] = []
    lines: list[int] = []
    for line, row in found.lines:
        taken: Row = {ours: text(row[theirs]) for ours, theirs in columns.items()}
        answer = text(taken.get("success")).lower()
        rows.append({**taken, "success": YES.get(answer, taken["success"])} if answer else taken)
        lines.append(line)
    left = [name for name in found.names if name not in columns.values()]
    notes = (f"columns left out: {', '.join(left)}",) if left else ()
    return Imported(str(path), rows, lines, notes)
