"""Exports as Parquet: one file a stream with an episode column, one row group an episode; tables of what happened.

May not: resample or drop a sample, or decide what may be shown. Units stand in each field's metadata. See
docs/exports.md for the columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from labctl.clock import SECOND, wall_ns
from labctl.errors import BrokenRecord
from labctl.exports.arrow import Schema, Table, Writer, arrow
from labctl.exports.episode_files import write_each_of
from labctl.exports.recordings import Recording, Recordings, episode_row
from labctl.exports.selection import Selection
from labctl.exports.units import column_units
from labctl.pieces import HERE, Place
from labctl.plain import Json
from labctl.reporting.operations_table import parquet_bytes
from labctl.streams import StreamSpec

WRITING = "writing Parquet"
COMPRESSION = "zstd"
EVENT_UNITS = {"at_ns": "ns of the host's monotonic clock"}


def write_columnar(
    campaign: Path,
    recordings: Recordings,
    selection: Selection,
    folder: Path,
    say: Callable[[str], None],
    place: Place = HERE,
) -> dict[str, int]:
    """Fill a folder: operations.parquet, episodes.parquet, events.parquet, streams/NAME.parquet. Rows written, by file.

    A stream's name has "_" for "/" in the file's name. Raises MissingExtra without pyarrow.
    """
    pa, _ = arrow(WRITING)
    episodes: list[dict[str, Json]] = []
    events: list[dict[str, Json]] = []
    names: dict[str, None] = {}
    for chosen in selection.episodes:
        recording = recordings.of(chosen, pictured=False)
        episodes.append(episode_row(recording))
        events += _event_rows(recording, selection)
        names |= dict.fromkeys(spec.name for spec in recording.specs)
    (folder / "streams").mkdir(exist_ok=True)
    rows = write_each_of(
        campaign,
        selection,
        folder,
        [(name, f"streams/{name.replace('/', '_')}.parquet") for name in names],
        _write_stream,
        sum(recordings.stored_bytes()[:1]),
        say,
        place=place,
    )
    (folder / "operations.parquet").write_bytes(parquet_bytes(selection.rows))
    _write(folder / "episodes.parquet", pa.Table.from_pylist(episodes), selection.about, EPISODE_UNITS)
    _write(folder / "events.parquet", _event_table(events), selection.about, EVENT_UNITS)
    counts = {"operations": len(selection.rows), "episodes": len(episodes), "events": len(events)}
    return {**counts, **dict(zip(names, rows, strict=True))}


EPISODE_UNITS = {
    **dict.fromkeys(("go_ns", "end_ns", "anchor_ns"), "ns of the host's monotonic clock"),
    "anchor_wall_ns": "ns since 1970-01-01 UTC",
    **dict.fromkeys(("duration_s", "wall_drift_s"), "s"),
}


def _event_rows(recording: Recording, selection: Selection) -> list[dict[str, Json]]:
    return [
        {
            "episode": recording.chosen.episode,
            "seq": event.seq,
            "kind": event.kind,
            "at_ns": event.at_ns,
            "wall": wall_ns(event.wall),
            "who": event.who,
            "body": json.dumps(recording.body(event, selection), ensure_ascii=False, sort_keys=True),
        }
        for event in recording.episode.events
    ]


def _event_table(rows: Sequence[Mapping[str, Json]]) -> Table:
    pa, _ = arrow(WRITING)
    columns = {"episode": pa.string(), "seq": pa.int64(), "kind": pa.string(), "at_ns": pa.int64()}
    columns |= {"wall": pa.timestamp("ns", tz="UTC"), "who": pa.string(), "body": pa.string()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in columns.items()})


def _write_stream(recordings: Recordings, name: str, path: Path) -> int:
    """One stream of all episodes, each of them one row group; how many rows. Raises BrokenRecord when an episode has
    other columns than the first.
    """
    _, pq = arrow(WRITING)
    every = [recordings.of(chosen, pictured=False) for chosen in recordings.selection.episodes]
    found = [(recording, spec) for recording in every for spec in recording.specs if spec.name == name]
    rows, first = 0, found[0][1]
    writer: Writer = pq.ParquetWriter(path, _schema(first, recordings.selection.about), compression=COMPRESSION)
    try:
        for recording, spec in found:
            if (first.columns, first.dtype) != (spec.columns, spec.dtype):
                episode = recording.chosen.episode
                raise BrokenRecord(f"stream {name} of episode {episode} has other columns than before")
            t_ns, values = recording.read(name)
            if len(t_ns):
                writer.write_table(_samples(recording, t_ns, values, writer.schema), row_group_size=len(t_ns))
                rows += len(t_ns)
    finally:
        writer.close()
    return rows


def _samples(recording: Recording, t_ns: np.ndarray, values: np.ndarray, schema: Schema) -> Table:
    """t_ns (n,), values (n, columns)."""
    pa, _ = arrow(WRITING)
    episode = pa.DictionaryArray.from_arrays(np.zeros(len(t_ns), np.int32), [recording.chosen.episode])
    times = [t_ns, (t_ns - recording.go_ns) / SECOND, recording.wall(t_ns)]
    columns = [
        episode,
        *(pa.array(column) for column in times),
        *(pa.array(values[:, i]) for i in range(values.shape[1])),
    ]
    columns[3] = columns[3].cast(pa.timestamp("ns", tz="UTC"))
    return pa.Table.from_arrays(columns, schema=schema)


def _schema(spec: StreamSpec, about: Mapping[str, Json]) -> Schema:
    pa, _ = arrow(WRITING)
    value = pa.from_numpy_dtype(np.dtype(spec.dtype))
    fields = [
        pa.field("episode", pa.dictionary(pa.int32(), pa.string())),
        pa.field("t_ns", pa.int64(), metadata={"unit": "ns", "clock": "the host's monotonic clock"}),
        pa.field("since_go_s", pa.float64(), metadata={"unit": "s"}),
        pa.field("wall", pa.timestamp("ns", tz="UTC")),
    ]
    units = column_units(spec)
    fields += [pa.field(name, value, metadata={"unit": unit}) for name, unit in zip(spec.columns, units, strict=True)]
    return pa.schema(fields, metadata={"labctl": json.dumps(about), "labctl.stream": json.dumps(asdict(spec))})


def _write(path: Path, table: Table, about: Mapping[str, Json], units: Mapping[str, str]) -> None:
    pa, pq = arrow(WRITING)
    fields = [
        field.with_metadata({"unit": units[field.name]}) if field.name in units else field for field in table.schema
    ]
    schema = pa.schema(fields, metadata={"labctl": json.dumps(about)})
    pq.write_table(table.cast(schema), path, compression=COMPRESSION)
