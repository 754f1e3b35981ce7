"""Reads Rerun recordings and viewers' sockets back, for tests."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from support.machine.processes import open_files


def decoded(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What a recording says, entity by entity, in an order of its own: how a writer cuts it into chunks, and which it
    writes first, depends on how quick it was. Without the ids of rows, which are drawn anew for every file.
    """
    from rerun.chunk import RrdReader

    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for chunk in RrdReader(path).stream():
        batch = chunk.to_record_batch()
        for row in batch.to_pylist():
            found[chunk.entity_path].append({name: value for name, value in row.items() if "RowId" not in name})
    return {entity: sorted(found[entity], key=repr) for entity in sorted(found)}


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while it was looked at
        if parent == pid:
            found += family(int(path.parent.name))
    return found


def listening(pid: int) -> list[str]:
    """ADDRESS:PORT of every TCP socket that a process listens on, addresses in hexadecimal as the kernel has them. One
    that has ended, or ends while it is looked at, listens on none.
    """
    inodes, lines = set(), list[str]()
    try:
        for target in open_files(process := Path("/proc") / str(pid)):
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        for table in ("tcp", "tcp6"):
            lines += (process / "net" / table).read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = []
    for line in lines:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:  # 0A: listening
            found.append(fields[1])
    return found
