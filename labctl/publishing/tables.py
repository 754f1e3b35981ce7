"""Tables of a published campaign: operations by each stream of labels, episodes, and the journal as lines of JSON.

May not: say anything that the record does not; each can be made again from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from labctl.core.events import Event
from labctl.core.record import Record
from labctl.reporting.episodes_table import columns_of
from labctl.reporting.label_streams import STREAMS, witnesses
from labctl.reporting.measured_report import episode_rows
from labctl.reporting.operations_table import operations, write_table
from labctl.store.atomic_files import replace_file

OPERATIONS, EPISODES, JOURNAL = "operations.csv", "episodes.csv", "journal.jsonl"


def write_tables(record: Record, events: Sequence[Event], folder: Path) -> list[str]:
    """Fill a folder that is there; the streams of labels that have a table of their own. Raises StorageError."""
    rows = operations(record)
    write_table(rows, folder / OPERATIONS)
    said = witnesses(record)
    streams = [name for name in STREAMS if name != "best" and said[name]]
    for name in streams:
        write_table(operations(record, labels=name), folder / f"operations-{name}.csv")
    by_episode = episode_rows(record, rows)
    write_table(by_episode, folder / EPISODES, columns_of(by_episode))
    lines = (json.dumps(asdict(event), ensure_ascii=False, sort_keys=True) for event in events)
    replace_file(folder / JOURNAL, "".join(f"{line}\n" for line in lines).encode())
    return streams
