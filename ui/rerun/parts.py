"""The parts of an episode as Rerun entities: the robot in its cell, cameras, curves, timelines, words.

May not: open a file or a port, choose a layout, or decide what a masked view holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import rerun as rr

from labctl.clock import MILLISECOND, SECOND, wall_ns
from labctl.core.timeline import Mark
from labctl.streams import ODOMETRY
from labctl.ui.rerun import depth as rerun_depth
from labctl.ui.rerun.episode_view import (
    ACTION,
    POLICY,
    STAGES,
    STATE,
    TRACKER,
    Depth,
    EpisodeView,
    Stream,
    Video,
    columns,
    depth_place,
    hand_curves,
    hand_of,
    joint_curves,
    joints_of,
    measured,
    place_of,
    sensor_plots,
    short_names,
)
from labctl.ui.rerun.palette import ITEMS, JOINTS, STAGE_COLOURS, TONES, along

TIMELINE, UTC = "since_go", "utc"
POSE_HZ = 50.0  # the drawn robot moves no more often; curves keep every sample
PATH_BINS = 64  # the path of the tool is drawn in so many colours
PATH_STEP_M = 0.001
WALL_M = 0.008
FRUSTUM_M = {"base": 0.30, "tcp": 0.12}  # how far from a camera its picture is drawn in the cell
FINGERS = ("left_finger_joint", "right_finger_joint")
ALIKE = {"ur7e": "ur5e", "hand": "fr3"}  # a model with the very links of another one; `sim_hand` is an FR3
_HERE = Path(__file__).parent


class Parts:
    """Sends an episode's parts as whole columns: a hundred times cheaper than sample by sample."""

    def __init__(self, recording: rr.RecordingStream, view: EpisodeView, prefix: str) -> None:
        self._to = recording
        self._view = view
        self._prefix = f"{prefix}/" if prefix else ""
        self._joints = joints_of(view)
        second = view.second is not None and view.of == view.second.name
        self._state = f"{view.of}/state" if second else STATE  # as it was recorded, and as its gaps are named
        self._utc = _utc_of_start(view)

    def _path(self, entity: str) -> str:
        return f"{self._prefix}{entity}"

    def _static(self, entity: str, *archetypes: Any) -> None:
        self._to.log(self._path(entity), *archetypes, static=True)

    def _send(self, entity: str, t_ns: Iterable[int] | np.ndarray, data: Any) -> None:
        since = np.asarray(t_ns, dtype=np.int64) - self._view.start_ns
        times = [rr.TimeColumn(TIMELINE, duration=since.astype("timedelta64[ns]"))]
        if self._utc is not None:
            times.append(rr.TimeColumn(UTC, timestamp=self._utc + since.astype("timedelta64[ns]")))
        self._to.send_columns(self._path(entity), times, data)

    def _curves(
        self,
        entity: str,
        t_ns: np.ndarray,
        values: np.ndarray,
        names: Sequence[str],
        colours: Sequence[Any],
        of: str | None = None,
    ) -> None:
        """Curves (n, k) under one entity, named. What was measured has a hole where its stream, `of` or else that of
        the robot's states, has one in its record.
        """
        n, k = values.shape
        if n and k:
            colours = [colours[i % len(colours)] for i in range(k)]
            self._static(entity, rr.SeriesLines(names=list(names), colors=colours, widths=[1.5] * k))
            gaps = [] if entity.startswith(("actions/", "policy")) else self._gaps(of or self._state)
            t_ns, values = _broken(t_ns, values.astype(float), gaps)
            self._send(entity, t_ns, rr.Scalars.columns(scalars=values.reshape(-1)).partition([k] * len(t_ns)))

    def _gaps(self, stream: str) -> list[int]:
        """When each gap in the record of a stream begins, ns."""
        return [mark.t_ns for mark in self._view.timelines.get(f"gaps {stream}", ()) if mark.label]

    def facts(self) -> None:
        """What the episode is, as properties to search by and as a page to read."""
        facts = self._view.facts
        if facts:
            if not self._prefix:
                self._to.send_property("episode", rr.AnyValues(**facts))
            self._static("about", rr.TextDocument(page_of(self._view), media_type="text/markdown"))

    def cell(self) -> None:
        """What never moves."""
        log_cell(self._to, self._view.totes, self._prefix)

    def state(self) -> None:
        """Joints, gripper, the tool's path and the moving robot."""
        state = self._view.streams.get(STATE)
        if state is None or not len(state.t_ns):
            return
        for what in ("q", "dq", "tau"):
            values = measured(self._view, what)
            if values.size:
                self._curves(f"joints/{what}", state.t_ns, values, joint_curves(self._view, what), JOINTS)
        opening, hand = columns(state, ["gripper"]), hand_of(self._view)
        if opening.size:
            self._curves("gripper", state.t_ns, 1000 * opening, ["measured"], [(110, 220, 130)])
        else:
            self._curves("gripper", state.t_ns, columns(state, hand), hand_curves(self._view), JOINTS)
        thin = thinned(state.t_ns, POSE_HZ)
        self._tool(state, thin)
        self._arm(state.t_ns[thin], columns(state, [f"q.{name}" for name in self._joints])[thin], opening[thin])

    def _tool(self, state: Stream, thin: np.ndarray) -> None:
        pose = columns(state, [f"tcp.{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw")])
        if pose.shape[1] < 3:
            return
        strips, colours = coloured_path(state.t_ns[thin], pose[thin, :3], self._view.start_ns)
        if strips:
            self._static("world/path", rr.LineStrips3D(strips, colors=colours, radii=0.0015))
        self._static("world/tcp/point", rr.Points3D([(0, 0, 0)], colors=[(255, 110, 60)], radii=[0.009]))
        turn = pose[thin, 3:7] if pose.shape[1] == 7 else None
        self._send("world/tcp", state.t_ns[thin], rr.Transform3D.columns(translation=pose[thin, :3], quaternion=turn))

    def _arm(self, t_ns: np.ndarray, q: np.ndarray, opening: np.ndarray) -> None:
        """The robot as its description draws it, moved by what was measured."""
        description = _description(self._view)
        if description is None:
            return
        values = {name: q[:, i] for i, name in enumerate(self._joints)}
        if opening.size:
            values |= {name: opening[:, 0] / 2 for name in FINGERS}
        for joint in log_robot(self._to, description, self._prefix):
            if joint.name in values:
                moves = joint.compute_transform_columns(values[joint.name].tolist(), clamp=False)
                self._send(f"world/joints/{joint.name}", t_ns, moves)

    def items(self) -> None:
        """The items as the tracker saw them: in the source, held, moved, lost."""
        tracker = self._view.streams.get(TRACKER)
        if tracker is None or not len(tracker.t_ns):
            return
        t_ns, counts = np.unique(tracker.t_ns, return_counts=True)
        yaw, flags = columns(tracker, ["yaw"]).reshape(-1), columns(tracker, ["held", "in_target", "lost"])
        boxes = item_boxes(columns(tracker, ["x", "y", "z"]), yaw, flags, self._view.item_size_m)
        self._static("world/items", rr.Boxes3D.from_fields(fill_mode=rr.components.FillMode.Solid))
        self._send("world/items", t_ns, rr.Boxes3D.columns(**boxes).partition(counts))

    def actions(self) -> None:
        """Every action as requested, limited and sent, joint by joint, and the policy's answers."""
        action, policy = self._view.streams.get(ACTION), self._view.streams.get(POLICY)
        if action is not None:
            hand = hand_of(self._view)
            for part, name in zip((*self._joints, *hand), (*short_names(self._joints), *hand), strict=True):
                values = columns(action, [f"{stage}.{part}" for stage in STAGES])
                scaled = values * 1000 if part == "gripper" else values
                self._curves(f"actions/{name}", action.t_ns, scaled, STAGES, [STAGE_COLOURS[s] for s in STAGES])
        if policy is not None:
            times = columns(policy, ["capture_ns", "request_ns", "reply_ns"]).astype(float)
            if times.shape[1] == 3:
                came = times[:, 2] >= 0  # -1: there was no answer
                taken = (times[came, 2:] - times[came, :2]) / MILLISECOND
                names = ["from capture to reply", "from request to reply"]
                self._curves("policy", policy.t_ns[came], taken, names, [(150, 120, 190), (205, 140, 255)])

    def sensors(self) -> None:
        """What each sensor measured, the columns of one unit together."""
        for name, entity, _, names in sensor_plots(self._view):
            stream = self._view.streams[name]
            self._curves(entity, stream.t_ns, columns(stream, names), names, JOINTS, name)

    def cameras(self) -> None:
        """Each video once, and which of its frames belongs to which measured time; photos of the scene."""
        for name, video in self._view.videos.items():
            place = place_of(name, video)
            if place.startswith("world/"):
                self._static(place, *lens_of(video.about))
            self._static(place, rr.AssetVideo(path=video.path))
            if len(video.pts_us):
                frames = rr.VideoFrameReference.columns_nanos(np.asarray(video.pts_us, dtype=np.int64) * 1000)
                self._send(place, video.frame_times_ns, frames)
            if video.depth is not None:
                self._depth(depth_place(name, video), video, video.depth)
        for name, path in self._view.photos.items():
            self._static(f"photos/{name}", rr.EncodedImage(path=path))

    def _depth(self, place: str, video: Video, depth: Depth) -> None:
        times, pictures = rerun_depth.thinned(depth)
        if not times:
            return
        if place.startswith("world/"):
            self._static(place, *lens_of(video.about, rerun_depth.STRIDE))
        self._static(place, rerun_depth.look(depth.scale_m))
        self._send(place, times, rerun_depth.columns(pictures))

    def timelines(self) -> None:
        """What stood when, as timelines, and the journal's entries in words."""
        for number, (name, marks) in enumerate(self._view.timelines.items(), 1):
            entity = f"lanes/{number}_{name.replace('/', '_').replace(' ', '_')}"
            self._static(entity, states_of(marks))
            self._send(entity, [mark.t_ns for mark in marks], rr.StateChange.columns(state=[m.label for m in marks]))
        if self._view.events:
            times, levels, texts = zip(*self._view.events, strict=True)
            self._send("events", times, rr.TextLog.columns(text=list(texts), level=list(levels)))


def lens_of(about: Mapping[str, Any], stride: int = 1) -> tuple[rr.Transform3D, rr.Pinhole]:
    """Where a camera stands in its frame, and how it sees, in steps of so many pixels; axes right, down, forward."""
    lens, frames = about["intrinsics"], about["extrinsics"]
    frame = "base" if "base_from_camera" in frames else "tcp"
    placed = frames[f"{frame}_from_camera"]
    focal = np.array([lens["fx"], lens["fy"]]) / stride
    centre = np.array([lens["cx"] + 0.5, lens["cy"] + 0.5]) / stride
    return (
        rr.Transform3D(mat3x3=np.array(placed["rotation"]), translation=placed["translation_m"]),
        rr.Pinhole(
            focal_length=focal,
            principal_point=centre,
            width=lens["width"] // stride,
            height=lens["height"] // stride,
            image_plane_distance=FRUSTUM_M[frame],
        ),
    )


def log_cell(recording: rr.RecordingStream, totes: Mapping[str, tuple[Any, Any, bool]], prefix: str = "") -> None:
    """The axes and the totes, of which the one where items go is green. `totes` as in `EpisodeView`."""
    recording.log(f"{prefix}world", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    for name, (centre, size, target) in totes.items():
        middles, halves = tote_walls(centre, size)
        colour = (96, 140, 118) if target else (104, 116, 134)
        solid = rr.components.FillMode.Solid
        walls = rr.Boxes3D(centers=middles, half_sizes=halves, colors=colour, fill_mode=solid)
        label = f"{name}, target" if target else name
        where = (centre[0], centre[1], centre[2] + size[2] + 0.03)
        recording.log(f"{prefix}world/totes/{name}", walls, static=True)
        words = rr.Points3D([where], labels=[label], radii=[0.0], colors=colour)
        recording.log(f"{prefix}world/totes/{name}/label", words, static=True)


def log_robot(recording: rr.RecordingStream, description: Path, prefix: str = "") -> list[Any]:
    """The bodies of a robot, at rest; its joints, which move it when their transforms are logged."""
    from rerun.urdf import UrdfTree

    tree = UrdfTree.from_file_path(
        description,
        entity_path_prefix=prefix.rstrip("/") or "world",  # one part only: a slash in it would be escaped
        frame_prefix=prefix or None,
        static_transform_entity_path=f"{prefix}world/joints/fixed",
    )
    tree.log_urdf_to_recording(recording)
    forms = {"cylinder": rr.Cylinders3D, "sphere": rr.Ellipsoids3D, "box": rr.Boxes3D}
    for path, tag in visuals(tree, description):
        recording.log(path, forms[tag].from_fields(fill_mode=rr.components.FillMode.Solid), static=True)
    root = f"{prefix}{tree.root_link().name}"
    base = rr.Transform3D(parent_frame=f"tf#/{prefix}world", child_frame=root)
    recording.log(f"{prefix}world/base", base, static=True)
    return list(tree.joints())


def item_boxes(at: np.ndarray, yaw: np.ndarray, flags: np.ndarray, size: Any) -> dict[str, Any]:
    """Boxes for items at (n, 3) m, turned by yaw (n,) or (0,), flags (n, 3) held, moved, lost or (n, 0)."""
    half = np.asarray(size if size is not None else (0.03, 0.03, 0.03), dtype=float) / 2
    boxes: dict[str, Any] = {"centers": at, "half_sizes": np.tile(half, (len(at), 1))}
    if yaw.size:
        zero = np.zeros(len(yaw))
        boxes["quaternions"] = np.column_stack([zero, zero, np.sin(yaw / 2), np.cos(yaw / 2)])
    if flags.shape[1:] == (3,):
        boxes["colors"] = np.array([ITEMS[_state(row)] for row in flags], dtype=np.uint8)
    return boxes


def states_of(marks: Sequence[Mark]) -> rr.StateConfiguration:
    """The colours of a timeline's labels."""
    tones = {mark.label: mark.tone for mark in marks if mark.label}
    return rr.StateConfiguration(
        values=list(tones), labels=list(tones), colors=[TONES[tone] for tone in tones.values()]
    )


def page_of(view: EpisodeView) -> str:
    """The facts of an episode as a Markdown page."""
    heading = "masked: shows nothing that tells which arm of the experiment this is\n\n" if view.masked else ""
    lines = [f"| {name.replace('_', ' ')} | {_formatted(value)} |" for name, value in view.facts.items()]
    gaps = [name.removeprefix("gaps ") for name in view.timelines if name.startswith("gaps ")]
    lines.append(f"| gaps | {', '.join(gaps) if gaps else 'none'} |")
    return heading + "\n".join(["| | |", "|---|---|", *lines])


def _formatted(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _state(flags: np.ndarray) -> str:
    held, moved, lost = (bool(flag) for flag in flags)
    return "lost" if lost else "held" if held else "moved" if moved else "waiting"


def _utc_of_start(view: EpisodeView) -> np.datetime64 | None:
    """The wall-clock time of the view's zero, from the journal's anchor."""
    if view.wall is None:
        return None
    text, after_ns = view.wall
    return np.datetime64(wall_ns(text) - after_ns, "ns")


def _broken(t_ns: np.ndarray, values: np.ndarray, gaps: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """A not-a-number one nanosecond after each hole begins, so that no line is drawn across it."""
    at = np.searchsorted(t_ns, [hole + 1 for hole in gaps])
    return np.insert(t_ns, at, [hole + 1 for hole in gaps]), np.insert(values, at, np.nan, axis=0)


def thinned(t_ns: np.ndarray, rate_hz: float) -> np.ndarray:
    """Indices of the first sample in every 1/rate_hz; all of them when there are no more."""
    bins = t_ns // round(SECOND / rate_hz)
    return np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))


def coloured_path(
    t_ns: np.ndarray, points: np.ndarray, start_ns: int
) -> tuple[list[np.ndarray], list[tuple[int, int, int]]]:
    """The path (n, 3) since start_ns as strips of one colour each, from early to late; empty without motion."""
    going = t_ns >= start_ns
    t_ns, points = t_ns[going], points[going]
    moved = np.flatnonzero(np.linalg.norm(np.diff(points, axis=0, prepend=points[:1] - 1), axis=1) > PATH_STEP_M)
    if len(moved) < 2:
        return [], []
    share = (t_ns[moved] - t_ns[0]) / max(1, t_ns[-1] - t_ns[0])
    cut = np.searchsorted(share, np.linspace(0, 1, PATH_BINS + 1)[1:-1])
    strips = []
    colours = []
    for bin_, run in enumerate(np.split(moved, cut)):
        if len(run):
            joined = np.append(run, moved[np.searchsorted(moved, run[-1]) + 1 :][:1])  # up to where the next begins
            if len(joined) > 1:
                strips.append(points[joined])
                colours.append(along(bin_ / (PATH_BINS - 1)))
    return strips, colours


def tote_walls(centre: Sequence[float], size: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Middles and half sizes (5, 3) of a tote's floor and four walls, m; the inside is `size`."""
    (x, y, z), (w, d, h), t = centre, size, WALL_M
    middles = [(x, y, z - t / 2)]
    halves = [(w / 2 + t, d / 2 + t, t / 2)]
    for sign in (-1, 1):
        middles += [(x + sign * (w + t) / 2, y, z + h / 2), (x, y + sign * (d + t) / 2, z + h / 2)]
        halves += [(t / 2, d / 2 + t, h / 2), (w / 2, t / 2, h / 2)]
    return np.array(middles), np.array(halves)


def description_of(robot: str, joints: Sequence[str]) -> Path | None:
    """The description that ships for this model, if its joints are these. None for any other model: a maker calls the
    joints of all of them alike, and their links are not.
    """
    stem = f"arm_{ALIKE.get(robot, robot)}"
    for path in _HERE.glob("arm_*.urdf"):
        if path.stem == stem and joints and all(f'name="{name}"' in path.read_text() for name in joints):
            return path
    return None


def _description(view: EpisodeView) -> Path | None:
    """None for a robot whose base drives: where its links are is not drawn."""
    return None if ODOMETRY in view.streams else description_of(view.robot, joints_of(view))


def drawn_at(view: EpisodeView, prefix: str) -> str | None:
    """The entity under which the robot is drawn, if it is."""
    description = _description(view)
    return f"{prefix or 'world'}/{description.stem.removeprefix('arm_')}" if description else None


def visuals(tree: Any, description: Path) -> Iterable[tuple[str, str]]:
    """(entity path, form) of every body: Rerun draws plain forms as wires unless told otherwise."""
    for link in ElementTree.parse(description).iterfind("link"):
        tags = [geometry[0].tag for geometry in link.iterfind("visual/geometry")]
        yield from zip(tree.get_visual_geometry_paths(link.attrib["name"]), tags, strict=True)
