"""Exports an episode as an MCAP file that Foxglove opens: joints, tool, cameras and events by names it knows, the rest
as JSON with a schema. The only module with mcap.

May not: resample, drop a sample or decide what may be shown; every message's log time is the sample's measured host
time, moved to wall time by the episode's anchor.
"""

from __future__ import annotations

import heapq
import json
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labctl.errors import MissingExtra
from labctl.exports import foxglove
from labctl.exports.annexb import access_units, stream_format
from labctl.exports.namespaces import JOINT_PARTS, Namespace, base_of, namespaces
from labctl.exports.recordings import Recording, Recordings, episode_row
from labctl.exports.selection import Chosen, Selection
from labctl.exports.units import column_units
from labctl.plain import Json
from labctl.streams import POSE, StreamSpec
from labctl.version import version

if TYPE_CHECKING:
    from mcap.writer import Writer

Message = tuple[int, int, foxglove.Fields]  # log time (ns since 1970), channel, content


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """How many messages each topic has in all."""
    found = Counter[str]()
    for one in counts:
        found.update(one)
    return dict(found)


def write_episode(recordings: Recordings, chosen: Chosen, path: Path) -> dict[str, int]:
    """As `write_mcap`, for `episode_files`."""
    return write_mcap(path, recordings.of(chosen), recordings.selection)


def _encoder() -> Callable[[foxglove.Fields], bytes]:
    """JSON as bytes. orjson takes a fifth of the standard library's time, which writes the same values."""
    try:
        from orjson import dumps
    except ModuleNotFoundError:
        plain = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return lambda value: plain.encode(value).encode()
    return dumps


def write_mcap(path: Path, recording: Recording, selection: Selection) -> dict[str, int]:
    """Write one episode: chunked, indexed, in the order of log times; how many messages each topic has.

    Raises MissingExtra without mcap, StorageError for a video in a codec that streams do not carry.
    """
    try:
        from mcap.writer import Writer
    except ModuleNotFoundError as error:
        raise MissingExtra("mcap", "writing MCAP") from error
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="", library=f"labctl {version()}")
        writer.add_metadata("labctl", _texts(selection.about))
        writer.add_metadata("episode", _texts(selection.hide(episode_row(recording))))
        topics = [topic for topic in _topics(recording, selection) if topic.messages is not None]
        for topic in topics:
            topic.register(writer)
        encode, add = _encoder(), writer.add_message
        sequence = dict.fromkeys((topic.channel for topic in topics), 0)
        # Of two messages at one time that of the earlier topic goes first; two of one topic are never compared.
        for log_ns, channel, content in heapq.merge(*(topic.numbered() for topic in topics)):
            add(channel, log_ns, encode(content), log_ns, sequence[channel])
            sequence[channel] += 1
        writer.finish()
    return {topic.name: sequence[topic.channel] for topic in topics}


@dataclass(slots=True)
class _Topic:
    """A channel to be: its messages (log time, content) in order of time."""

    name: str
    schema: str
    form: foxglove.Fields
    messages: Iterator[tuple[int, foxglove.Fields]]
    about: Mapping[str, str]
    channel: int = -1

    def register(self, writer: Writer) -> None:
        form = json.dumps(self.form, ensure_ascii=False).encode()
        schema = writer.register_schema(self.schema, "jsonschema", form)
        self.channel = writer.register_channel(self.name, "json", schema, dict(self.about))

    def numbered(self) -> Iterator[Message]:
        for log_ns, content in self.messages:
            yield log_ns, self.channel, content


def _topics(recording: Recording, selection: Selection) -> Iterator[_Topic]:
    robots = namespaces(recording.specs)
    for spec in recording.specs:
        if spec.name in robots:
            yield from _state(recording, spec, robots[spec.name])
        else:
            yield _plain(recording, spec, range(len(spec.columns)))
    if (base := base_of(selection.about)) is not None and len(robots) > 1:
        yield _known("/tf_static", "foxglove.FrameTransform", _bases(recording, base))
    for camera, pictures in recording.pictures.items():
        form = stream_format(pictures.path)
        about = {"latency_s": str(pictures.latency_s)}
        yield _known(f"/camera/{camera}", "foxglove.CompressedVideo", _video(recording, camera, form), about)
    yield _known("/events", "foxglove.Log", _lines(recording, selection))
    form = {"title": "labctl.Event", "type": "object", "properties": {"kind": {"type": "string"}}}
    yield _Topic("/journal", "labctl.Event", form, recording.journal(selection), {})


def _known(
    name: str, schema: str, messages: Iterator[tuple[int, foxglove.Fields]], about: Mapping[str, str] | None = None
) -> _Topic:
    return _Topic(name, schema, foxglove.SCHEMAS[schema], messages, about or {})


def _state(recording: Recording, spec: StreamSpec, robot: Namespace) -> Iterator[_Topic]:
    """Joints with the gripper, and the tool; what is left of the columns as it is."""
    columns = list(spec.columns)
    used = robot.columns()
    about = {"stream": spec.name, "rate_hz": str(spec.rate_hz), "clock": spec.clock}
    states = _joints(recording, spec, robot)
    yield _known(f"{robot.topic}/joint_states", "foxglove.JointStates", states, about)
    if all(column in columns for column in POSE):
        used |= set(POSE)
        at = [columns.index(column) for column in POSE]
        pose = partial(foxglove.pose_in_frame, base=robot.base)
        moved = partial(foxglove.frame_transform, base=robot.base, tool=robot.tool)
        yield _known(f"{robot.topic}/tcp", "foxglove.PoseInFrame", _poses(recording, spec, at, pose), about)
        yield _known(f"{robot.topic}/tf", "foxglove.FrameTransform", _poses(recording, spec, at, moved), about)
    rest = [i for i, column in enumerate(columns) if column not in used]
    if rest:
        yield _plain(recording, spec, rest)


def _joints(recording: Recording, spec: StreamSpec, robot: Namespace) -> Iterator[tuple[int, foxglove.Fields]]:
    columns = list(spec.columns)
    parts: list[tuple[str, list[str], list[int]]] = []
    for joint in robot.joints:
        there = [part for part in JOINT_PARTS if f"{part}.{joint}" in columns]
        parts.append(
            (robot.joint(joint), [JOINT_PARTS[p] for p in there], [columns.index(f"{p}.{joint}") for p in there])
        )
    if robot.gripper in columns:
        parts.append(("gripper", ["position"], [columns.index(robot.gripper)]))
    for wall_ns, row in _samples(recording, spec):
        known = [
            {"name": name, **{key: row[i] for key, i in zip(keys, at, strict=True) if row[i] is not None}}
            for name, keys, at in parts
        ]
        yield wall_ns, foxglove.joint_states(wall_ns, known)


def _poses(
    recording: Recording, spec: StreamSpec, at: Sequence[int], make: Callable[[int, Sequence[float]], foxglove.Fields]
) -> Iterator[tuple[int, foxglove.Fields]]:
    """A robot that has no pose yet says so with values that are not finite: such a row is no pose."""
    pick = operator.itemgetter(*at)
    for wall_ns, row in _samples(recording, spec):
        pose = pick(row)
        if None not in pose:
            yield wall_ns, make(wall_ns, pose)


def _bases(recording: Recording, base: tuple[str, str, Sequence[float]]) -> Iterator[tuple[int, foxglove.Fields]]:
    """Where the second robot's base stands in the first's, once."""
    first, second, pose = base
    wall_ns = recording.wall_at(recording.entries[0].at_ns)
    yield wall_ns, foxglove.frame_transform(wall_ns, pose, first, second)


def _plain(recording: Recording, spec: StreamSpec, at: Sequence[int]) -> _Topic:
    """A stream as JSON of its own; `/stream/` keeps an index of frames apart from the camera's pictures."""
    columns, units = [spec.columns[i] for i in at], column_units(spec)
    whole = np.dtype(spec.dtype).kind in "iu"
    schema = f"labctl.{spec.name.replace('/', '.')}"
    form = foxglove.sample_schema(schema, columns, [units[i] for i in at], whole=whole)
    nest = foxglove.nesting(columns, at)

    def messages() -> Iterator[tuple[int, foxglove.Fields]]:
        for wall_ns, row in _samples(recording, spec):
            yield wall_ns, {"timestamp": foxglove.time(wall_ns), **nest(row)}

    about = {"stream": spec.name, "rate_hz": str(spec.rate_hz), "clock": spec.clock}
    return _Topic(f"/stream/{spec.name}", schema, form, messages(), about)


def _samples(recording: Recording, spec: StreamSpec) -> Iterator[tuple[int, list[float | None]]]:
    """Each sample's wall time and its values; what is not finite is None, as JSON has no other way to say so."""
    t_ns, values = recording.read(spec.name)
    rows = values.tolist()
    for number in np.flatnonzero(~np.isfinite(values).all(axis=1)).tolist():
        rows[number] = [value if math.isfinite(value) else None for value in rows[number]]
    yield from zip(recording.wall(t_ns).tolist(), rows, strict=True)


def _video(recording: Recording, camera: str, form: str) -> Iterator[tuple[int, foxglove.Fields]]:
    """Each frame of the file that the index knows. A message's timestamp is when the light fell."""
    at = recording.pictures_on_wall(camera)
    for unit in access_units(recording.pictures[camera].path):
        if unit.pts_us in at:
            log_ns, light_ns = at[unit.pts_us]
            yield log_ns, foxglove.compressed_video(light_ns, camera, unit.data, form)


def _lines(recording: Recording, selection: Selection) -> Iterator[tuple[int, foxglove.Fields]]:
    for log_ns, wall_ns, level, text in recording.lines(selection):
        yield log_ns, foxglove.log(wall_ns, level, text)


def _texts(values: Mapping[str, Json]) -> dict[str, str]:
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in values.items()
    }
