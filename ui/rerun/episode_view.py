"""What a view of an episode is made of, as plain values.

May not: know a viewer, read a campaign, or hide anything: what is hidden is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labctl.axes import GRIPPER
from labctl.core.timeline import Mark
from labctl.streams import units_of

STATE, ACTION, TRACKER, POLICY = "arm/state", "arm/action", "tracker", "policy"
SENSOR = "sensor/"
NO_HAND = ("q.", "dq.", "tau.", "tcp.", "device_s")  # columns of a state that are no hand's begin so
STAGES = ("requested", "limited", "sent")
USUAL = {"q": "rad", "dq": "rad/s", "tau": "N.m"}  # what the joints' curves are in, but where one says otherwise


@dataclass(frozen=True, slots=True)
class Stream:
    """A recorded stream: t_ns (n,) of the host, values (n, columns)."""

    columns: tuple[str, ...]
    t_ns: np.ndarray
    values: np.ndarray
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Depth:
    """A camera's depth file: when the light of each frame fell (host, ns), where it stands in the file (ms), and how
    many metres one step of its numbers is; None when the camera did not say.
    """

    path: Path
    times_ns: np.ndarray
    ms: np.ndarray
    scale_m: float | None = None


@dataclass(frozen=True, slots=True)
class Video:
    """A camera's file and, per frame, when its light fell (host, ns) and where it stands in the file (us).

    about: what was kept beside the pictures. The camera is drawn where it stands if `intrinsics` has fx, fy, cx, cy,
    width and height, and `extrinsics` has base_from_camera or tcp_from_camera: rotation (rows) and translation_m.
    """

    path: Path
    frame_times_ns: np.ndarray
    pts_us: np.ndarray
    about: Mapping[str, Any] = field(default_factory=dict)
    depth: Depth | None = None


@dataclass(frozen=True, slots=True)
class Second:
    """A second robot: its name and the first's, its model, where its base stands in the first's (m), how it is turned
    there about the vertical (rad), whether it has totes of its own.
    """

    name: str
    first_name: str
    robot: str
    base_m: Sequence[float]
    base_yaw_rad: float
    own_scene: bool


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """All that is shown of an episode. Times are monotonic host ns; start_ns (go) is zero on the timeline.

    wall: a UTC time (ISO 8601) and how many ns after start_ns it was. events: (t_ns, level, text), levels "INFO",
    "WARN", "ERROR". timelines: what stood when, by name; names that start with "gaps " are holes in a stream.
    facts: what episodes are searched by, in the order to be read. robot: the robot's model ("fr3", "ur5", "ur5e").
    totes: centre of the floor, inner size (m), whether items go there, by name. photos: pictures of the scene by what
    they are. masked: made for people who must not know the experiment's arm
    (`labctl.viewing.episode.look_at` has left out what would tell). of: which of two robots it is of, where it was
    parted.
    """

    title: str
    start_ns: int
    streams: Mapping[str, Stream]
    videos: Mapping[str, Video] = field(default_factory=dict)
    wall: tuple[str, int] | None = None
    events: Sequence[tuple[int, str, str]] = ()
    timelines: Mapping[str, Sequence[Mark]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    robot: str = ""
    totes: Mapping[str, tuple[Sequence[float], Sequence[float], bool]] = field(default_factory=dict)
    item_size_m: Sequence[float] | None = None
    photos: Mapping[str, Path] = field(default_factory=dict)
    masked: bool = True
    second: Second | None = None
    of: str = ""


def place_of(name: str, video: Video) -> str:
    """The entity of a camera: in the cell where it stands, if that is known, else by itself."""
    frames = video.about.get("extrinsics") or {}
    if video.about.get("intrinsics"):
        if "base_from_camera" in frames:
            return f"world/cameras/{name}"
        if "tcp_from_camera" in frames:
            return f"world/tcp/{name}"
    return f"cameras/{name}"


def depth_place(name: str, video: Video) -> str:
    """The entity of a camera's depth: beside its picture's."""
    return f"{place_of(name, video)}_depth"


def sensor_plots(view: EpisodeView) -> list[tuple[str, str, str, list[str]]]:
    """Of each sensor and each unit that it measures in: the stream, the entity of its curves, a title, the columns."""
    found: list[tuple[str, str, str, list[str]]] = []
    for name, stream in sorted(view.streams.items()):
        if not name.startswith(SENSOR) or not len(stream.t_ns):
            continue
        by_unit: dict[str, list[str]] = {}
        for column, unit in zip(stream.columns, units_of(stream.unit, len(stream.columns)), strict=True):
            by_unit.setdefault(unit, []).append(column)
        for number, (unit, names) in enumerate(by_unit.items()):
            title = f"{name.removeprefix(SENSOR)}, {unit}" if unit else name.removeprefix(SENSOR)
            found.append((name, f"sensors/{name.removeprefix(SENSOR)}/{number}", title, names))
    return found


def columns(stream: Stream, names: Sequence[str]) -> np.ndarray:
    """The named columns that a stream has, (n, found)."""
    found = [stream.columns.index(name) for name in names if name in stream.columns]
    return np.asarray(stream.values)[:, found]


def joints_of(view: EpisodeView) -> tuple[str, ...]:
    """The robot's joints, in order, as its recorded states name them."""
    state = view.streams.get(STATE)
    return tuple(c.removeprefix("q.") for c in state.columns if c.startswith("q.")) if state else ()


def hand_of(view: EpisodeView) -> tuple[str, ...]:
    """The axes of the robot's hand, as its recorded actions name them, or, where those are not to be seen, its states:
    "gripper", where nothing else was declared.
    """
    action, state = view.streams.get(ACTION), view.streams.get(STATE)
    names = [c.partition(".")[2] for c in action.columns if c.startswith("sent.")] if action else []
    if action is None and state is not None:
        names = [c for c in state.columns if not c.startswith(NO_HAND)]
    return tuple(name for name in names if name not in joints_of(view)) or ("gripper",)


def joint_curves(view: EpisodeView, what: str) -> list[str]:
    """A name for each joint's curve of "q", "dq" or "tau", with its unit where that is none of a joint that turns."""
    joints = joints_of(view)
    return _in_units(short_names(joints), view.streams[STATE], [f"{what}.{joint}" for joint in joints], USUAL[what])


def hand_curves(view: EpisodeView) -> list[str]:
    """A name for each curve of a hand that is no gripper, with its unit; none of a share."""
    hand = hand_of(view)
    return _in_units(hand, view.streams[STATE], hand, "1")


def asked(view: EpisodeView) -> list[tuple[str, str]]:
    """Of each axis that an action is of: its entity's name, and a title with the unit in which it is drawn."""
    action, hand = view.streams[ACTION], hand_of(view)
    axes, names = (*joints_of(view), *hand), [*short_names(joints_of(view)), *hand]
    titles = _in_units(names, action, [f"sent.{axis}" for axis in axes], "1")
    if not any(units_of(action.unit, len(action.columns))):  # as before axes had units of their own
        titles = [f"{name}, rad" if axis in joints_of(view) else name for name, axis in zip(names, axes, strict=True)]
    return [
        (name, "gripper, mm" if axis == GRIPPER else title)
        for name, axis, title in zip(names, axes, titles, strict=True)
    ]


def _in_units(names: Sequence[str], stream: Stream, of: Sequence[str], usual: str) -> list[str]:
    """Names with the units that the stream declares of their columns, but for the usual one."""
    units = dict(zip(stream.columns, units_of(stream.unit, len(stream.columns)), strict=True))
    return [
        f"{name}, {unit}" if (unit := units.get(column)) and unit != usual else name
        for name, column in zip(names, of, strict=True)
    ]


def measured(view: EpisodeView, what: str) -> np.ndarray:
    """Joint positions "q", speeds "dq" or torques "tau" (n, dof); empty when they were not recorded or are all zero."""
    state = view.streams.get(STATE)
    values = columns(state, [f"{what}.{name}" for name in joints_of(view)]) if state else np.empty((0, 0))
    return values if what == "q" or (values.size and np.abs(values).max() > 0) else np.empty((0, 0))


def short_names(names: Sequence[str]) -> list[str]:
    """Joint names as a legend has room for: fr3_joint1 -> joint1, shoulder_pan_joint -> shoulder_pan; whole, where two
    would be one.
    """
    found = [
        name.split("_")[-1] if name.split("_")[-1][-1:].isdigit() else name.removesuffix("_joint") for name in names
    ]
    return found if len(set(found)) == len(found) else list(names)
