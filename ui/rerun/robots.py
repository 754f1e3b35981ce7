"""An episode of a robot, or of two: a view of each, with the names that a robot alone has, and what is sent of each.

May not: choose a layout, or hide anything.
"""

from __future__ import annotations

from dataclasses import replace

import rerun as rr

from labctl.streams import STATE, robot_states, unit_of
from labctl.ui.rerun.episode_view import ACTION, STAGES, TRACKER, EpisodeView, Stream
from labctl.ui.rerun.parts import Parts

PARTS = ("q", "dq", "tau", *STAGES)


def log_episode(recording: rr.RecordingStream, view: EpisodeView, prefix: str) -> None:
    """Send all of a view under an entity prefix ("" or a side's name), whole columns at a time.

    First what is small and says most: a page that is still loading shows it.
    """
    (_, own), *others = robots_of(view, prefix)
    for behind, other in others:
        log_second(recording, other, behind)
    parts = Parts(recording, own, prefix)
    parts.facts()
    parts.timelines()
    parts.cell()
    parts.cameras()
    parts.state()
    parts.items()
    parts.actions()
    parts.sensors()


def log_second(recording: rr.RecordingStream, view: EpisodeView, prefix: str) -> None:
    """A second robot under a prefix of its own, which stands where its base does in the first one's frame."""
    assert view.second is not None
    turn = rr.RotationAxisAngle(axis=(0, 0, 1), radians=view.second.base_yaw_rad)
    recording.log(prefix, rr.Transform3D(translation=view.second.base_m, rotation=turn), static=True)
    parts = Parts(recording, view, prefix)
    for send in (parts.cell, parts.state, parts.items, parts.actions):
        send()


def robots_of(view: EpisodeView, prefix: str) -> list[tuple[str, EpisodeView]]:
    """The entity prefix and the view of each robot: the view as it is where there is one; of two the first keeps the
    prefix and everything that is the cell's, the second has its own name behind it.
    """
    second = view.second
    states = robot_states({name: stream.columns for name, stream in view.streams.items()})
    if second is None or len(states) < 2:
        return [(prefix, view)]
    own = f"{second.name}/"
    shared = {name: stream for name, stream in view.streams.items() if not name.startswith(own)}
    first = {**shared, STATE: _short(view.streams[STATE], second.first_name)}
    other = {STATE: _short(view.streams[f"{own}state"], second.name)}
    if (tracker := view.streams.get(f"{own}{TRACKER}")) is not None:
        other[TRACKER] = tracker
    if (action := view.streams.get(ACTION)) is not None:
        first[ACTION] = _short(action, second.first_name, only=True)
        other[ACTION] = _short(action, second.name, only=True)
    behind = f"{prefix}_{second.name}" if prefix else second.name
    totes = view.totes if second.own_scene else {}
    return [
        (prefix, replace(view, streams=first, of=second.first_name)),
        (
            behind,
            replace(view, streams=other, robot=second.robot, totes=totes, videos={}, photos={}, of=second.name),
        ),
    ]


def _short(stream: Stream, name: str, *, only: bool = False) -> Stream:
    """A stream with a robot's axes by their own names. only: of what is named by a robot, nothing of the other's."""
    kept, columns = list[int](), list[str]()
    for i, column in enumerate(stream.columns):
        part, _, rest = column.partition(".")
        of = rest if part in PARTS else column
        if only and part in PARTS and not of.startswith(f"{name}."):
            continue
        kept.append(i)
        short = of.removeprefix(f"{name}.")
        columns.append(f"{part}.{short}" if part in PARTS else short)
    unit = unit_of(stream.unit, len(stream.columns), kept)
    return replace(stream, columns=tuple(columns), values=stream.values[:, kept], unit=unit)
