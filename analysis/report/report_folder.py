"""The folder of a report: whether one may be written there, and writing it, all of it or nothing.

May not: make what stands in a report, or take away anything that no report wrote.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from labctl.errors import ReportError

SCHEMA = "labctl.report/1"
_FILES = {"report.html", "report.md", "report.json", "episodes.html"}
_BY_CELL = "episodes"  # a folder in it for each cell of a joint campaign
_FOLDERS = {"figures": {".svg", ".png", ".csv"}, "clips": {".mp4"}, _BY_CELL: {".mp4"}}


def check_folder(out: Path) -> None:
    """Raise `ReportError` if a report may not be written to `out`; worth asking before a long analysis."""
    if out.exists() and not out.is_dir():
        raise ReportError(f"{out} is a file; give --out a folder")
    if not out.is_dir() or not any(out.iterdir()):
        return
    record = out / "report.json"
    foreign = [path.name for path in out.iterdir() if path.name not in {*_FILES, *_FOLDERS}]
    for folder, suffixes in _FOLDERS.items():
        of_cells = folder == _BY_CELL
        within = (out / folder).glob("**/*" if of_cells else "*")
        strange = [path for path in within if path.suffix not in suffixes and not (of_cells and path.is_dir())]
        foreign += [path.relative_to(out).as_posix() for path in strange]
    if not record.is_file() or not _is_report(record):
        raise ReportError(f"{out} is not empty and is no earlier report; give --out a new or empty folder")
    if foreign:
        found = ", ".join(sorted(foreign)[:3])
        raise ReportError(f"{out} holds files that no report wrote ({found}); move them or give --out another folder")


def _is_report(record: Path) -> bool:
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("schema") == SCHEMA


def replace_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Make `out` a report of these files, by name: written beside it, then renamed; an earlier folder comes back if the
    last step fails.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as work:
        new, old = Path(work, "new"), Path(work, "old")
        for name, data in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if out.exists():
            out.rename(old)
        try:
            new.rename(out)
        except OSError:
            if old.exists():
                old.rename(out)
            raise
