"""Resources of every arm by its server's own account: its inference time, the rest of the wait, memory, model size.

May not: measure (a server says what it likes), fill in what was not told, or be shown before unblinding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labctl.analysis.numerals import count, number
from labctl.analysis.report.tables import ARM, Column, Table

HEADING = "What servers told of themselves"
NOT_TOLD, NO_SERVER = "not told", "no server"
# Key of `told` -> heading and what one unit of it is worth in the table.
RESOURCES = (
    *(("gpu_memory_mb", "GPU memory MB", 1.0), ("memory_mb", "Memory MB", 1.0)),
    *(("model_mb", "Model MB", 1.0), ("parameters", "Parameters, millions", 1e-6)),
)
NOTE = (
    "By the servers’ own account; labctl measured none of it. Times: median / 95th percentile over the answers that "
    "told one. Rest: what was left of the time from question to answer beyond the server’s whole call, which is the "
    "network, the codec and preparing pictures. Memory is the greatest that was told, in MB of 10⁶ bytes."
)


def table(entries: Sequence[Mapping[str, Any]]) -> Table | None:
    """One row per arm that was asked anything, or None without any. entries: `answer_times` of the lab, any key of
    which may be missing; by_hand: a person, who has no server.
    """
    rows = tuple(_row(entry) for entry in entries)
    if not rows:
        return None
    columns = (
        *(ARM, Column("Answers"), Column("Server’s inference ms"), Column("Rest of the answer ms")),
        *(Column(name) for _, name, _ in RESOURCES),
    )
    return Table(columns, rows, NOTE)


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    asked, unanswered = entry.get("questions"), entry.get("unanswered") or 0
    answers = count(None if asked is None else asked - unanswered)
    missing = NO_SERVER if entry.get("by_hand") else NOT_TOLD
    told = entry.get("told") or {}
    times = (_times(entry.get("server_s"), missing), _times(entry.get("rest_s"), missing))
    said = (number(told[key] * scale, 0) if told.get(key) is not None else missing for key, _, scale in RESOURCES)
    return (str(entry["arm"]), answers, *times, *said)


def _times(spread: Mapping[str, float] | None, missing: str) -> str:
    return " / ".join(number(1000 * spread[key], 1) for key in ("p50", "p95")) if spread else missing
