"""What was recorded of the episodes that an export may show: streams, pictures, events, and the way to wall time.

May not: hand out a stream that the selection hides, resample, or write anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from labctl.clock import SECOND, wall_ns
from labctl.config.cell_schema import CameraTable, Cell
from labctl.core.events import Event
from labctl.core.record import Episode
from labctl.core.record_fold import record_of
from labctl.core.recorded.projection import capture_ns
from labctl.core.timeline import attempt, event_lines, over_ns, without_gaps
from labctl.errors import BrokenRecord
from labctl.exports.selection import Chosen, Selection
from labctl.exports.splice import Coding
from labctl.plain import Json
from labctl.reporting.operations_table import Row, recorded
from labctl.store.campaign import Campaign
from labctl.store.media.reading import local_file
from labctl.store.traces import TraceStore
from labctl.store.verifying.verified import samples_of
from labctl.streams import StreamSpec, of_both_pictures, robot_states, unit_of

CAMERA = "camera/"


@dataclass(frozen=True, slots=True)
class Pictures:
    """A camera's video file; for each frame of its index when it was received (host, ns) and its place in it (us).

    latency_s: from light to receipt, as the cell says.
    """

    path: Path
    t_ns: np.ndarray
    pts_us: np.ndarray
    latency_s: float

    @property
    def taken_ns(self) -> np.ndarray:
        """When the light of each frame fell, host ns (n,)."""
        return capture_ns(self.t_ns, self.latency_s)


@dataclass(frozen=True, slots=True)
class Recording:
    """One episode. `anchor` pairs the host's clock with the wall: (ns, ns since 1970). Times are host ns.

    `episode` is what the journal records of it, `entries` those of it with what staged it and the holds that came up
    meanwhile; the times of both are of the clock that the episode ran on, whatever boot they were written on.
    """

    chosen: Chosen
    specs: tuple[StreamSpec, ...]  # of the columns that are shown
    pictures: Mapping[str, Pictures]
    episode: Episode
    entries: tuple[Event, ...]
    go_ns: int
    end_ns: int
    anchor: tuple[int, int]
    _store: TraceStore
    _columns: Mapping[str, list[int]]  # of a shown stream, where its shown columns stand in the store

    def read(self, stream: str) -> tuple[np.ndarray, np.ndarray]:
        """All samples of one of `specs`: t_ns (n,), values (n, columns). Raises BrokenRecord for a changed chunk."""
        t_ns, values = self._store.read(self.chosen.episode, stream)
        return t_ns, values[:, self._columns[stream]]

    def spec(self, stream: str) -> StreamSpec:
        """The declaration of one of `specs`."""
        return next(spec for spec in self.specs if spec.name == stream)

    def has(self, stream: str) -> bool:
        """Whether it is one of `specs`."""
        return any(spec.name == stream for spec in self.specs)

    @property
    def robots(self) -> tuple[str, ...]:
        """The streams that are states of a robot, the first robot's first."""
        return robot_states({spec.name: spec.columns for spec in self.specs})

    def wall(self, t_ns: np.ndarray) -> np.ndarray:
        """Host times (n,) as ns since 1970-01-01 UTC, by the episode's anchor."""
        return np.asarray(t_ns, np.int64) + (self.anchor[1] - self.anchor[0])

    def wall_at(self, at_ns: int) -> int:
        """One host time, as `wall` has it."""
        return at_ns + (self.anchor[1] - self.anchor[0])

    def pictures_on_wall(self, camera: str) -> dict[int, tuple[int, int]]:
        """Of each frame that the camera's index has, by its place in the file, us: when it was received and when its
        light fell, ns since 1970-01-01 UTC.
        """
        pictures = self.pictures[camera]
        received, taken = (self.wall(t_ns).tolist() for t_ns in (pictures.t_ns, pictures.taken_ns))
        return dict(zip(pictures.pts_us.tolist(), zip(received, taken, strict=True), strict=True))

    def lines(self, selection: Selection) -> Iterator[tuple[int, int, str, str]]:
        """Place in the file, time (both ns since 1970-01-01 UTC), level and text of each of `entries`, as it may be
        exported. What came after the attempt was over has its place there, so that a file lasts no longer than that.
        """
        over = over_ns(self.entries)
        for t_ns, level, text in event_lines(self.entries):
            yield self.wall_at(min(t_ns, over)), self.wall_at(t_ns), level, selection.hide(text)

    def journal(self, selection: Selection) -> Iterator[tuple[int, dict[str, Json]]]:
        """What the journal says of it, entry by entry, and when that was written (ns since 1970-01-01 UTC). What came
        after the attempt was over has its place there, as `lines` has it, and says in `wall` when it was written.
        """
        over = over_ns(self.entries)
        for event in sorted(self.episode.events, key=lambda event: min(event.at_ns, over)):
            entry: dict[str, Json] = {"seq": event.seq, "kind": event.kind, "who": event.who}
            later = {"wall": event.wall} if event.at_ns > over else {}
            yield self.wall_at(min(event.at_ns, over)), {**entry, **later, "body": self.body(event, selection)}

    @property
    def drift_ns(self) -> int:
        """How far the wall clock went against the host's from the first event of the episode to its end."""
        last = self.episode.ended
        if last is None or last.boot != self.episode.revealed.boot:
            return 0
        return wall_ns(last.wall) - self.wall_at(last.mono_ns)

    def body(self, event: Event, selection: Selection) -> dict[str, Json]:
        """What an event of this episode says, as it may be exported."""
        return selection.body(event, {spec.name for spec in self.specs})


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
        "end_reason": chosen.ended,
        "duration_s": (recording.end_ns - recording.go_ns) / SECOND,
        "go_ns": recording.go_ns,
        "end_ns": recording.end_ns,
        "anchor_ns": recording.anchor[0],
        "anchor_wall_ns": recording.anchor[1],
        "wall_drift_s": recording.drift_ns / SECOND,
        "gaps": len(recording.episode.gaps),
    }


def _narrowed(spec: StreamSpec, kept: Sequence[int]) -> StreamSpec:
    """The declaration of some columns of a stream; of those that are left out not even the names."""
    columns = tuple(spec.columns[i] for i in kept)
    private, public = (tuple(c for c in all_ if c in columns) for all_ in (spec.private_columns, spec.public_columns))
    unit = unit_of(spec.unit, len(spec.columns), kept)
    return replace(spec, columns=columns, unit=unit, private_columns=private, public_columns=public)


def _filmed(cell: Cell, camera: CameraTable) -> Coding:
    """How a camera's video was coded: by the cell's [video], or by what its own [camera.video] says instead."""
    own, all_ = camera.video, cell.video
    return Coding(
        own.codec or all_.codec,
        own.preset or all_.preset,
        all_.crf if own.crf is None else own.crf,
        own.keyframe_s or all_.keyframe_s,
        camera.rate_hz,
    )


class Recordings:
    """The recordings of a selection; use as a context manager."""

    def __init__(self, campaign: Campaign, selection: Selection) -> None:
        self._folder = campaign.folder
        self.selection = selection
        self._latency_s = of_both_pictures({camera.name: camera.latency_s for camera in campaign.cell.camera})
        cell = campaign.cell
        self.filmed = {camera.name: _filmed(cell, camera) for camera in cell.camera}
        self._events = campaign.events()
        self._record = record_of(self._events, campaign.state)
        self._store = samples_of(campaign)
        self._operations: list[Row] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the store back."""
        self._store.close()

    def of(self, chosen: Chosen, *, pictured: bool = True) -> Recording:
        """The recording of an episode; pictured: with what there is of its videos. Raises BrokenRecord when the
        journal says of it less than a scored one has.
        """
        episode = self._record.episodes[chosen.episode]
        trial, started = chosen.trial, episode.started
        if started is None or trial.end_ns is None:
            raise BrokenRecord(f"episode {chosen.episode} is scored but has no start or no end; see: labctl verify")
        declared = self._store.streams(chosen.episode)
        stored = [spec for spec in declared if self.selection.shows(spec)]
        columns = {spec.name: self.selection.columns(spec) for spec in stored}
        specs = tuple(_narrowed(spec, columns[spec.name]) for spec in stored)
        hidden = {spec.name for spec in declared} - {*columns}
        # what was lost of a hidden stream tells its rate
        gaps = tuple(gap for gap in episode.gaps if gap["stream"] not in hidden)
        entries = tuple(without_gaps(attempt(self._events, chosen.episode), hidden))
        own = tuple(event for event in entries if event.episode == chosen.episode)
        return Recording(
            chosen=chosen,
            specs=specs,
            pictures=self._pictures(episode, specs) if pictured else {},
            episode=replace(episode, events=own, gaps=gaps),
            entries=entries,
            go_ns=trial.go_ns if trial.go_ns is not None else started.mono_ns,
            end_ns=trial.end_ns,
            anchor=(started.mono_ns, wall_ns(started.wall)),
            _store=self._store,
            _columns=columns,
        )

    def moved_s(self, episode: str) -> list[float]:
        """When items of an episode were moved, s since go, ascending: as it was recorded, whatever its protocol counts
        it as.
        """
        if self._operations is None:
            self._operations = recorded(self._record)
        own = [row for row in self._operations if row["episode"] == episode and row["kind"] == "success"]
        return np.cumsum([row["time_s"] for row in own]).tolist()  # a row counts from the success before it

    def stored_bytes(self) -> tuple[int, int]:
        """(bytes of all shown samples as plain numbers, bytes of all video files) of the selection's episodes."""
        samples = videos = 0
        for chosen in self.selection.episodes:
            episode = self._record.episodes[chosen.episode]
            for spec in filter(self.selection.shows, self._store.streams(chosen.episode)):
                width = len(self.selection.columns(spec)) + 2
                samples += 8 * width * (episode.streams[spec.name]["n"] if spec.name in episode.streams else 0)
            files = [self._folder / video["file"] for video in episode.videos.values()]
            videos += sum(path.stat().st_size for path in files if path.is_file())
        return samples, videos

    def _pictures(self, episode: Episode, specs: Sequence[StreamSpec]) -> dict[str, Pictures]:
        indexed = {spec.name: list(spec.columns) for spec in specs}
        found = {}
        for camera, video in episode.videos.items():
            columns = indexed.get(CAMERA + camera)
            if columns is None or not video["frames"]:
                continue
            t_ns, values = self._store.read(episode.id, CAMERA + camera)
            path = local_file(self._folder, video)
            if not path.is_file():
                raise BrokenRecord(f"the video {path} is missing; `labctl verify` says what else is")
            if len(t_ns):
                received, place = (values[:, columns.index(name)] for name in ("host_ns", "pts_us"))
                found[camera] = Pictures(path, received, place, self._latency_s.get(camera, 0.0))
        return found
