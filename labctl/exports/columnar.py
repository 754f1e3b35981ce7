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
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import Selection
from labctl.exports.units import column_units
from labctl.plain import Json
from labctl.reporting.operations_table import parquet_bytes
from labctl.streams import StreamSpec

WRITING = "writing Parquet"
COMPRESSION = "zstd"
EVENT_UNITS = {"at_ns": "ns of the host's monotonic clock"}


def write_columnar(
    recordings: Recordings, selection: Selection, folder: Path, say: Callable[[str], None]
) -> dict[str, int]:
    """Fill a folder: operations.parquet, episodes.parquet, events.parquet, streams/NAME.parquet. Rows written, by file.

    A stream's name has "_" for "/" in the file's name. Raises MissingExtra without pyarrow.
    """
    pa, _ = arrow(WRITING)
    episodes: list[dict[str, Json]] = []
    events: list[dict[str, Json]] = []
    (folder / "streams").mkdir()
    with _Streams(folder / "streams", selection.about) as streams:
        for number, chosen in enumerate(selection.episodes, 1):
            recording = recordings.of(chosen)
            episodes.append(episode_row(recording))
            events += _event_rows(recording, selection)
            for spec in recording.specs:
                streams.add(recording, spec)
            say(f"{number}/{len(selection.episodes)} {chosen.episode}")
    (folder / "operations.parquet").write_bytes(parquet_bytes(selection.rows))
    _write(folder / "episodes.parquet", pa.Table.from_pylist(episodes), selection.about, EPISODE_UNITS)
    _write(folder / "events.parquet", _event_table(events), selection.about, EVENT_UNITS)
    counts = {"operations": len(selection.rows), "episodes": len(episodes), "events": len(events)}
    return {**counts, **streams.rows}


EPISODE_UNITS = {
    **dict.fromkeys(("go_ns", "end_ns", "anchor_ns"), "ns of the host's monotonic clock"),
    "anchor_wall_ns": "ns since 1970-01-01 UTC",
    **dict.fromkeys(("duration_s", "wall_drift_s"), "s"),
}


def episode_row(recording: Recording) -> dict[str, Json]:
    """What there is to say of one episode in one row; `arm` only where the selection has it."""
    chosen, trial = recording.chosen, recording.chosen.trial
    outcome = trial.outcome
    assert outcome is not None, f"trial {trial.id} is chosen without an outcome"
    return {
        "episode": chosen.episode,
        "trial": trial.id,
        **({"arm": chosen.arm} if chosen.arm is not None else {}),
        "object": chosen.object,
        "condition": trial.condition,
        "block": trial.block,
        "position": trial.position,
        "outcome": chosen.outcome,
        "items_staged": outcome.items_staged,
        "items_moved": outcome.moved,
        "items_lost": outcome.lost,
        "end_reason": str(trial.ended),
        "duration_s": (recording.end_ns - recording.go_ns) / SECOND,
        "go_ns": recording.go_ns,
        "end_ns": recording.end_ns,
        "anchor_ns": recording.anchor[0],
        "anchor_wall_ns": recording.anchor[1],
        "wall_drift_s": recording.drift_ns / SECOND,
        "gaps": len(recording.episode.gaps),
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


class _Streams:
    """One open file for each stream seen so far."""

    def __init__(self, folder: Path, about: Mapping[str, Json]) -> None:
        self._folder = folder
        self._about = about
        self._open: dict[str, tuple[Writer, StreamSpec]] = {}
        self.rows: dict[str, int] = {}

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for writer, _spec in self._open.values():
            writer.close()

    def add(self, recording: Recording, spec: StreamSpec) -> None:
        """An episode's samples of a stream as one row group. Raises BrokenRecord when it has other columns than
        before."""
        pa, pq = arrow(WRITING)
        if spec.name not in self._open:
            path = self._folder / f"{spec.name.replace('/', '_')}.parquet"
            self._open[spec.name] = (pq.ParquetWriter(path, self._schema(spec), compression=COMPRESSION), spec)
            self.rows[spec.name] = 0
        writer, first = self._open[spec.name]
        if (first.columns, first.dtype) != (spec.columns, spec.dtype):
            raise BrokenRecord(
                f"stream {spec.name} of episode {recording.chosen.episode} has other columns than before"
            )
        t_ns, values = recording.read(spec.name)
        if not len(t_ns):
            return
        episode = pa.DictionaryArray.from_arrays(np.zeros(len(t_ns), np.int32), [recording.chosen.episode])
        times = [t_ns, (t_ns - recording.go_ns) / SECOND, recording.wall(t_ns)]
        columns = [
            episode,
            *(pa.array(column) for column in times),
            *(pa.array(values[:, i]) for i in range(values.shape[1])),
        ]
        columns[3] = columns[3].cast(pa.timestamp("ns", tz="UTC"))
        writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema), row_group_size=len(t_ns))
        self.rows[spec.name] += len(t_ns)

    def _schema(self, spec: StreamSpec) -> Schema:
        pa, _ = arrow(WRITING)
        value = pa.from_numpy_dtype(np.dtype(spec.dtype))
        fields = [
            pa.field("episode", pa.dictionary(pa.int32(), pa.string())),
            pa.field("t_ns", pa.int64(), metadata={"unit": "ns", "clock": "the host's monotonic clock"}),
            pa.field("since_go_s", pa.float64(), metadata={"unit": "s"}),
            pa.field("wall", pa.timestamp("ns", tz="UTC")),
        ]
        units = column_units(spec)
        fields += [
            pa.field(name, value, metadata={"unit": unit}) for name, unit in zip(spec.columns, units, strict=True)
        ]
        stream = json.dumps(asdict(spec))
        return pa.schema(fields, metadata={"labctl": json.dumps(self._about), "labctl.stream": stream})


def _write(path: Path, table: Table, about: Mapping[str, Json], units: Mapping[str, str]) -> None:
    pa, pq = arrow(WRITING)
    fields = [
        field.with_metadata({"unit": units[field.name]}) if field.name in units else field for field in table.schema
    ]
    schema = pa.schema(fields, metadata={"labctl": json.dumps(about)})
    pq.write_table(table.cast(schema), path, compression=COMPRESSION)
