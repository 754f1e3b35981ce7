"""One episode on the uniform grid of a LeRobot dataset: its features frame by frame, and how exact they are.

May not: write a file, or put anything on the grid that lies further from it than is allowed.

A frame's `timestamp` is its place on the grid, as the format demands; `labctl.since_go` and `labctl.capture_time` say
when things really were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from labctl.clock import MILLISECOND, SECOND
from labctl.core.interventions import spans
from labctl.core.recorded.projection import project
from labctl.core.rollout import ACTION
from labctl.errors import StateError
from labctl.exports.grid import Offset, default_bound_ns, first_frame, grid, held, offset, overlapping
from labctl.exports.recordings import CAMERA, Recording
from labctl.exports.units import column_units
from labctl.store.video import frame_times
from labctl.streams import POSE, STATE, StreamSpec, placed_units

LARGEST_BOUND_NS = 3600 * SECOND  # that may be asked for
STAGES = ("requested", "limited", "sent")
ActionKind = Literal["sent", "limited", "requested", "measured"]


@dataclass(frozen=True, slots=True)
class Terms:
    """How to project: frames a second, what `action` is, and the largest error in ns (None: each stream's own)."""

    fps: int
    action: ActionKind = "sent"
    bound_ns: int | None = None

    def bound(self, rate_hz: float) -> int:
        return default_bound_ns(rate_hz, self.fps) if self.bound_ns is None else self.bound_ns


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of every frame: values (n, k) or, for a single number, (n,); names of its k columns."""

    values: np.ndarray
    names: tuple[str, ...] = ()
    unit: str = ""


class Misfit(NamedTuple):
    """Why an episode may not be put on a grid, in words; of_time: whether a larger bound of time would let it in."""

    text: str
    of_time: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Where an episode's frames stand and what they take: t_ns (n + 1,) as `grid`, offsets of state and cameras, the
    places (n,) us of each camera's pictures, and the longest stretch of actions that is missing, ns.
    """

    recording: Recording
    t_ns: np.ndarray
    offsets: tuple[Offset, ...]
    places_us: Mapping[str, np.ndarray]
    taken_ns: Mapping[str, np.ndarray]
    actions_missing_ns: int

    @property
    def frames(self) -> int:
        return max(len(self.t_ns) - 1, 0)

    @property
    def worst_ns(self) -> int:
        return max((one.worst_ns for one in self.offsets), default=0)

    def problems(self, terms: Terms) -> list[Misfit]:
        """Why this episode may not be put on the grid."""
        episode = self.recording.chosen.episode
        if not self.frames:
            return [Misfit(f"{episode} is shorter than a frame")]
        found: list[Misfit] = []
        for one in (one for one in self.offsets if one.too_far):
            if one.worst_ns < LARGEST_BOUND_NS:
                off = f"is {one.worst_ns / MILLISECOND:.1f} ms off (bound {one.bound_ns / MILLISECOND:.1f})"
                found.append(Misfit(f"{episode} {one.stream} {off}", of_time=True))
            else:
                found.append(Misfit(f"{episode} {one.stream} has no sample"))
        bound = terms.bound(terms.fps)
        if self.actions_missing_ns > bound:
            missing = f"lacks {self.actions_missing_ns / MILLISECOND:.1f} ms (bound {bound / MILLISECOND:.1f})"
            found.append(Misfit(f"{episode} {ACTION} {missing}", of_time=True))
        return found


def plan(recording: Recording, terms: Terms, cameras: Sequence[str]) -> Plan:
    """Place an episode's frames from its first picture after go to its end, and measure how far everything is moved.
    cameras: those of the dataset; others that filmed this episode, as the edited pictures of its condition, are left
    out, for every episode of a dataset has the same features.

    Raises StateError for an episode without states of the arm or, unless the action is measured, without actions.
    """
    needed = (STATE,) if terms.action == "measured" else (STATE, ACTION)
    for stream in needed:
        if not recording.has(stream):
            raise StateError(f"episode {recording.chosen.episode} has no recorded {stream}; a dataset needs it")
    rates = {spec.name: spec.rate_hz for spec in recording.specs}
    taken, places = {}, {}
    for camera, pictures in recording.pictures.items():
        if camera not in cameras:
            continue
        there = np.isin(pictures.pts_us, frame_times(pictures.path))
        taken[camera], places[camera] = pictures.taken_ns[there], pictures.pts_us[there]
    rates_hz = {camera: rates[CAMERA + camera] for camera in taken}
    start_ns = first_frame(taken, rates_hz, recording.go_ns, terms.fps)
    t_ns = grid(start_ns, recording.end_ns, terms.fps)
    frames = t_ns[:-1]
    offsets = [offset(one, recording.read(one)[0], t_ns, terms.bound(rates[one])) for one in recording.robots]
    for camera, light_ns in taken.items():
        offsets.append(offset(CAMERA + camera, light_ns, frames, terms.bound(rates[CAMERA + camera])))
        if len(light_ns):
            nearest = offsets[-1].nearest
            taken[camera], places[camera] = light_ns[nearest], places[camera][nearest]
    missing = overlapping(recording.episode.gaps, ACTION, start_ns, recording.end_ns) if ACTION in needed else 0
    return Plan(recording, t_ns, tuple(offsets), places, taken, missing)


def features(found: Plan, terms: Terms, moved_s: Sequence[float]) -> dict[str, Feature]:
    """Everything but the pictures, by the name of its feature; see docs/exports.md.

    moved_s: when items were moved, s since go, ascending.
    """
    recording, t_ns = found.recording, found.t_ns
    frames = t_ns[:-1]
    state, columns, body, units, poses = _states(recording, t_ns, terms)

    def of(names: Sequence[str]) -> np.ndarray:
        return state[:, [columns.index(name) for name in names]]

    joints = [column.removeprefix("q.") for column in columns if column.startswith("q.")]
    parts = tuple(column.removeprefix("q.") for column in body)
    each = [units[column] for column in body]
    unit = ", ".join(each if any(recording.spec(STATE).units) else dict.fromkeys(each))
    position = of(body).astype(np.float32)
    made = {"observation.state": Feature(position[:-1], parts, unit)}
    actions, age_s = _actions(recording, t_ns, parts, of(body)) if recording.has(ACTION) else ({}, None)
    actions["measured"] = position[1:]
    made["action"] = Feature(actions.pop(terms.action), parts, unit)
    for stage in STAGES:
        if stage in actions:
            made[f"labctl.action_{stage}"] = Feature(actions[stage], parts, unit)
    if age_s is not None:
        made["labctl.action_age"] = Feature(age_s, unit="s")
    for name, prefix in (("velocity", "dq"), ("torque", "tau")):
        wanted = [f"{prefix}.{joint}" for joint in joints]
        if all(column in columns for column in wanted):
            each = [units[column] for column in wanted]  # of a rail or a base others than of its arm
            unit = ", ".join(each if len(set(each)) > 1 else each[:1])
            made[f"labctl.joint_{name}"] = Feature(of(wanted)[:-1].astype(np.float32), tuple(joints), unit)
    for name, pose in poses.items():
        made[name] = Feature(of(pose)[:-1].astype(np.float32), tuple(c[4:] for c in POSE), "m, 1")
    made["labctl.since_go"] = Feature((frames - recording.go_ns) / SECOND, unit="s")
    if found.taken_ns:
        cameras = tuple(found.taken_ns)
        times = np.column_stack([(found.taken_ns[camera] - recording.go_ns) / SECOND for camera in cameras])
        made["labctl.capture_time"] = Feature(times if len(cameras) > 1 else times[:, 0], cameras, "s")
    since_go = made["labctl.since_go"].values
    moved = np.searchsorted(np.asarray(moved_s, float), since_go, side="right")
    touched = spans(recording.episode.interventions, recording.go_ns, recording.end_ns)
    inside = np.any([(frames >= start) & (frames <= until) for start, until in touched], axis=0) if touched else 0
    made["labctl.intervention"] = Feature(np.zeros(len(frames), np.int64) + inside, unit="1")
    made["labctl.items_moved"] = Feature(moved.astype(np.int64), unit="1")
    return made


def hand_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Of the columns of a robot's states those of its hand: `gripper`; of a robot with other axes there, those after
    the tool's pose but for the device's clock.
    """
    if "gripper" in columns:
        return ("gripper",)
    after = max((i for i, column in enumerate(columns) if column.startswith("tcp.")), default=-1) + 1
    return tuple(column for column in columns[after:] if column != "device_s")


def parts_of(robots: Sequence[StreamSpec]) -> tuple[str, ...]:
    """Which part of its robot each axis is, in the order of `observation.state`: "arm" (its joints), "rail" (an axis in
    m beside joints), "base" (the speeds of one that drives) or "gripper" (its hand's, whatever they are). Of two robots
    each has its own, by its name: "left_arm". robots: what their states declare, the first robot's first.
    """
    found: list[str] = []
    for spec in robots:
        units = placed_units(spec)
        led = [column.removeprefix("q.") for column in spec.columns if column.startswith("q.")]
        joints = {"rad": "arm", "m": "rail" if "rad" in units.values() else "arm"}
        each = [(name, joints[units[name]] if name in units else "base") for name in led]
        each += [(name, "gripper") for name in hand_columns(spec.columns)]
        found += [part if len(robots) == 1 else f"{name.partition('.')[0]}_{part}" for name, part in each]
    return tuple(found)


def _states(
    recording: Recording, t_ns: np.ndarray, terms: Terms
) -> tuple[np.ndarray, list[str], list[str], dict[str, str], dict[str, list[str]]]:
    """The states of the robot at t_ns, or of two beside each other: values, their columns, which of them are the axes
    (each robot's joints and then its hand's, as ALOHA has them), units, and the features of tools with their columns.
    """
    rows, columns = list[np.ndarray](), list[str]()
    body, units, poses = list[str](), dict[str, str](), dict[str, list[str]]()
    for stream in recording.robots:
        spec = recording.spec(stream)
        of = "" if stream == STATE else f"{stream.partition('/')[0]}."
        named = [f"{of}{name}" if name.startswith("tcp.") or "." not in name else name for name in spec.columns]
        rows.append(_state(recording, spec, t_ns, terms.bound(spec.rate_hz)))
        columns += named
        units |= dict(zip(named, column_units(spec), strict=True))
        body += [*(name for name in spec.columns if name.startswith("q.")), *hand_columns(spec.columns)]
        if all(column in spec.columns for column in POSE):
            poses[f"labctl.{of.replace('.', '_')}tcp_pose"] = [f"{of}{column}" for column in POSE]
    return np.concatenate(rows, axis=1), columns, body, units, poses


def _state(recording: Recording, spec: StreamSpec, t_ns: np.ndarray, bound_ns: int) -> np.ndarray:
    """All columns of a robot's state at t_ns; beyond the first or last sample, which is near enough, that one."""
    sampled_ns, values = recording.read(spec.name)
    turns = [spec.columns.index("tcp.qx")] if "tcp.qx" in spec.columns else []
    found = project(sampled_ns, values, t_ns, max_gap_ns=2 * bound_ns, quaternions=turns)
    ends = offset(spec.name, sampled_ns, t_ns, bound_ns).nearest
    return np.where(found.valid[:, None], found.values, values[ends])


def _actions(
    recording: Recording, t_ns: np.ndarray, parts: Sequence[str], measured: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Each stage (n, parts) of the setpoint that stands when a frame ends, and how old it is then, s (n,).

    Before the first setpoint the arm is held where it is: sent and limited say so, requested and the age are no number.
    """
    columns = recording.spec(ACTION).columns
    set_ns, values = recording.read(ACTION)
    last = held(set_ns, t_ns[1:])
    before = last < 0
    found = {}
    for stage in STAGES:
        at = [columns.index(f"{stage}.{part}") for part in parts]
        taken = values[np.maximum(last, 0)][:, at] if len(values) else np.zeros((len(last), len(at)))
        at_rest = np.full_like(taken, np.nan) if stage == "requested" else measured[:-1]
        found[stage] = np.where(before[:, None], at_rest, taken).astype(np.float32)
    age = (t_ns[1:] - set_ns[np.maximum(last, 0)]) / SECOND if len(set_ns) else np.zeros(len(last))
    return found, np.where(before, np.nan, age)
