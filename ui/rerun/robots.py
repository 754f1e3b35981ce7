"""A view of two robots as one of each: what each has of the streams, under the names that a robot alone has.

May not: log data, or hide anything.
"""

from __future__ import annotations

from dataclasses import replace

from labctl.streams import STATE, robot_states
from labctl.ui.rerun.episode_view import ACTION, STAGES, TRACKER, EpisodeView, Stream

PARTS = ("q", "dq", "tau", *STAGES)


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
    return replace(stream, columns=tuple(columns), values=stream.values[:, kept])
