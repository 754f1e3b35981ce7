"""One episode as a Rerun recording (.rrd): arm, cameras, curves and events on one clock. The only module with Rerun.

May not: read a campaign, open a viewer or a port, or write what a masked view must not show.

The .rrd is derived and can always be made again. Its timeline "t" counts seconds from the view's start; every sample
and every video frame stands at its measured host time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from labctl.errors import MissingExtra, StorageError

APPLICATION = "labctl"
TIMELINE = "t"
STATE, ACTION, TRACKER, POLICY = "arm/state", "arm/action", "tracker", "policy"
STAGES = {"requested": (120, 170, 255), "limited": (255, 190, 80), "sent": (110, 220, 130)}
JOINTS = (
    (76, 144, 240),
    (240, 130, 60),
    (90, 190, 110),
    (225, 85, 90),
    (160, 120, 220),
    (205, 175, 70),
    (90, 195, 205),
)
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Stream:
    """A recorded stream: t_ns (n,) of the host, values (n, columns). A masked view leaves out arm_dependent ones."""

    columns: tuple[str, ...]
    t_ns: np.ndarray
    values: np.ndarray
    unit: str = ""
    arm_dependent: bool = False


@dataclass(frozen=True, slots=True)
class Video:
    """A camera's file and, per frame, when it was taken (host, ns) and where it stands in the file (us)."""

    path: Path
    frame_times_ns: np.ndarray
    pts_us: np.ndarray


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """All that is shown of an episode. Times are monotonic host ns; start_ns (go) is zero on the timeline.

    events: (t_ns, level, text), levels "INFO", "WARN", "ERROR". operations: (t_ns, state) changes, in order.
    totes: centre of the floor and inner size (m) by name. masked: for people who must not know the experiment's arm.
    """

    title: str
    start_ns: int
    streams: Mapping[str, Stream]
    videos: Mapping[str, Video] = field(default_factory=dict)
    events: Sequence[tuple[int, str, str]] = ()
    operations: Sequence[tuple[int, str]] = ()
    joint_names: tuple[str, ...] = ()
    totes: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    masked: bool = True


def save_episode(path: Path, episode: EpisodeView) -> None:
    """Write an episode as an .rrd with its blueprint.

    A masked view leaves out arm-dependent streams and the actions, whose shape can tell a policy from another.
    Raises MissingExtra without rerun-sdk, StorageError when the file or a video cannot be used.
    """
    try:
        import rerun as rr
    except ModuleNotFoundError as error:
        raise MissingExtra("rerun", "an .rrd recording") from error
    for video in episode.videos.values():
        if not video.path.is_file():
            raise StorageError(f"the video {video.path} is missing; `labctl verify` says what else is")
    shown = {
        name: s for name, s in episode.streams.items() if not (episode.masked and (s.arm_dependent or name == ACTION))
    }
    recording = rr.RecordingStream(APPLICATION, recording_id=episode.title, send_properties=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        recording.save(path, default_blueprint=_blueprint(episode, shown))
    except (OSError, RuntimeError) as error:
        raise StorageError(f"cannot write {path}: {error}") from error
    recording.send_recording_name(episode.title)
    log = _Log(recording, episode)
    log.scene()
    log.state(shown)
    log.actions(shown)
    log.cameras()
    log.happenings()
    recording.flush()
    recording.disconnect()


class _Log:
    """Sends an episode's parts as whole columns: a hundred times cheaper than sample by sample."""

    def __init__(self, recording: Any, episode: EpisodeView) -> None:
        import rerun as rr

        self._rr = rr
        self._to = recording
        self._episode = episode

    def _at(self, t_ns: Iterable[int] | np.ndarray) -> list[Any]:
        since = np.asarray(t_ns, dtype=np.int64) - self._episode.start_ns
        return [self._rr.TimeColumn(TIMELINE, duration=since.astype("timedelta64[ns]"))]

    def _curve(
        self, entity: str, t_ns: np.ndarray, values: np.ndarray, names: Sequence[str], colours: Any = None
    ) -> None:
        """Curves (n, k) under one entity, named."""
        rr, (n, k) = self._rr, values.shape
        if n:
            self._to.log(entity, rr.SeriesLines(names=list(names), colors=colours), static=True)
            columns = rr.Scalars.columns(scalars=values.astype(float).reshape(-1)).partition([k] * n)
            self._to.send_columns(entity, self._at(t_ns), columns)

    def scene(self) -> None:
        """What never moves: the axes and the totes."""
        rr, totes = self._rr, self._episode.totes
        self._to.log("world", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        if totes:
            centres = [(x, y, z + size[2] / 2) for (x, y, z), size in totes.values()]
            half = [np.asarray(size) / 2 for _, size in totes.values()]
            edges = rr.components.FillMode.MajorWireframe
            boxes = rr.Boxes3D(
                centers=centres, half_sizes=half, labels=list(totes), colors=(150, 165, 185), fill_mode=edges
            )
            self._to.log("world/totes", boxes, static=True)

    def state(self, shown: Mapping[str, Stream]) -> None:
        """Joints, gripper, the path of the TCP, the moving arm, and the items as the tracker saw them."""
        rr = self._rr
        state = shown.get(STATE)
        if state is not None and len(state.t_ns):
            joints = self._episode.joint_names
            q = _columns(state, [f"q.{name}" for name in joints])
            self._curve("joints", state.t_ns, q, joints, [JOINTS[i % len(JOINTS)] for i in range(q.shape[1])])
            opening = _columns(state, ["gripper"])
            self._curve("gripper", state.t_ns, 1000 * opening, ["opening"], (110, 220, 130))
            tcp = _columns(state, ["tcp.x", "tcp.y", "tcp.z"])
            if tcp.shape[1] == 3:
                path = rr.LineStrips3D([tcp], colors=(255, 150, 60), radii=0.002)
                self._to.log("world/path", path, static=True)
                self._to.log("world/tcp", rr.Points3D.from_fields(colors=[(255, 90, 40)], radii=[0.012]), static=True)
                self._to.send_columns("world/tcp", self._at(state.t_ns), rr.Points3D.columns(positions=tcp))
            self._arm(state.t_ns, q, opening)
        tracker = shown.get(TRACKER)
        if tracker is not None and len(tracker.t_ns):
            t_ns, counts = np.unique(tracker.t_ns, return_counts=True)
            points = _columns(tracker, ["x", "y", "z"])
            self._to.log("world/items", rr.Points3D.from_fields(colors=[(90, 160, 255)], radii=[0.014]), static=True)
            columns = rr.Points3D.columns(positions=points).partition(counts)
            self._to.send_columns("world/items", self._at(t_ns), columns)

    def _arm(self, t_ns: np.ndarray, q: np.ndarray, opening: np.ndarray) -> None:
        """The arm whose description has these joints, moved by what was measured."""
        from rerun.urdf import UrdfTree

        description = _description(self._episode.joint_names)
        if description is None:
            return
        tree = UrdfTree.from_file_path(description, entity_path_prefix="world")
        tree.log_urdf_to_recording(self._to)
        self._solid(tree, description)
        root = self._rr.Transform3D(parent_frame="tf#/world", child_frame=tree.root_link().name)
        self._to.log("world/base", root, static=True)
        values = {name: q[:, i] for i, name in enumerate(self._episode.joint_names)}
        if opening.size:
            values |= {name: opening[:, 0] / 2 for name in ("left_finger_joint", "right_finger_joint")}
        for joint in tree.joints():
            if joint.name in values:
                columns = joint.compute_transform_columns(values[joint.name].tolist(), clamp=False)
                self._to.send_columns(f"world/joints/{joint.name}", self._at(t_ns), columns)

    def _solid(self, tree: Any, description: Path) -> None:
        """Fill the bodies of a description: Rerun draws plain forms as wires unless told otherwise."""
        rr = self._rr
        forms = {"cylinder": rr.Cylinders3D, "sphere": rr.Ellipsoids3D, "box": rr.Boxes3D}
        for link in ElementTree.parse(description).iterfind("link"):
            tags = [geometry[0].tag for geometry in link.iterfind("visual/geometry")]
            for path, tag in zip(tree.get_visual_geometry_paths(link.attrib["name"]), tags, strict=True):
                self._to.log(path, forms[tag].from_fields(fill_mode=rr.components.FillMode.Solid), static=True)

    def actions(self, shown: Mapping[str, Stream]) -> None:
        """Every action as requested, limited and sent, joint by joint; and how long a policy took to answer."""
        action = shown.get(ACTION)
        if action is not None:
            for part in (*self._episode.joint_names, "gripper"):
                for stage, colour in STAGES.items():
                    values = _columns(action, [f"{stage}.{part}"])
                    self._curve(f"actions/{part}/{stage}", action.t_ns, values, [stage], colour)
        policy = shown.get(POLICY)
        if policy is not None:
            times = _columns(policy, ["request_ns", "reply_ns"])
            if times.shape[1] == 2:
                taken = (times[:, 1:] - times[:, :1]) / 1e6
                self._curve("policy", policy.t_ns, taken, ["time to answer"], (200, 140, 255))

    def cameras(self) -> None:
        """Each video once, and which of its frames belongs to which measured time."""
        rr = self._rr
        for name, video in self._episode.videos.items():
            self._to.log(f"cameras/{name}", rr.AssetVideo(path=video.path), static=True)
            if len(video.pts_us):
                frames = rr.VideoFrameReference.columns_nanos(np.asarray(video.pts_us, dtype=np.int64) * 1000)
                self._to.send_columns(f"cameras/{name}", self._at(video.frame_times_ns), frames)

    def happenings(self) -> None:
        """The lane of operations, and events in words."""
        rr, episode = self._rr, self._episode
        if episode.operations:
            times, states = zip(*episode.operations, strict=True)
            self._to.send_columns("operations", self._at(times), rr.StateChange.columns(state=list(states)))
        if episode.events:
            times, levels, texts = zip(*episode.events, strict=True)
            columns = rr.TextLog.columns(text=list(texts), level=list(levels))
            self._to.send_columns("events", self._at(times), columns)


def _columns(stream: Stream, names: Sequence[str]) -> np.ndarray:
    """The named columns that a stream has, (n, found)."""
    found = [stream.columns.index(name) for name in names if name in stream.columns]
    return np.asarray(stream.values)[:, found]


def _description(joint_names: Sequence[str]) -> Path | None:
    """The arm description that ships with labctl and has these joints, if any."""
    for path in sorted(_HERE.glob("arm_*.urdf")):
        if joint_names and all(f'name="{name}"' in path.read_text() for name in joint_names):
            return path
    return None


def _blueprint(episode: EpisodeView, shown: Mapping[str, Stream]) -> Any:
    """Left: the scene over the cameras. Right: operations, curves and events, top to bottom."""
    import rerun.blueprint as rrb

    eye = rrb.EyeControls3D(position=(-0.55, 1.05, 0.95), look_target=(0.34, 0.02, 0.24), eye_up=(0, 0, 1))
    scene = rrb.Spatial3DView(origin="world", name="scene", eye_controls=eye)
    cameras = [rrb.Spatial2DView(origin=f"cameras/{name}", name=name) for name in episode.videos]
    left = rrb.Vertical(scene, rrb.Horizontal(*cameras), row_shares=[3, 2]) if cameras else scene
    right: list[Any] = []
    shares: list[float] = []
    if episode.operations:
        right.append(rrb.StateTimelineView(origin="operations", name="operations"))
        shares.append(1.0)
    hidden = rrb.PlotLegend(visible=False)
    right += [
        rrb.TimeSeriesView(origin="joints", name="joints, rad"),
        rrb.TimeSeriesView(origin="gripper", name="gripper opening, mm", plot_legend=hidden),
    ]
    shares += [2.2, 1.3]
    if ACTION in shown:
        parts = (*episode.joint_names, "gripper")
        tabs = [rrb.TimeSeriesView(origin=f"actions/{part}", name=part) for part in parts]
        right.append(rrb.Tabs(*tabs, name="actions: requested, limited, sent"))
        shares.append(2.0)
    if POLICY in shown:
        right.append(rrb.TimeSeriesView(origin="policy", name="policy, ms to answer", plot_legend=hidden))
        shares.append(1.2)
    if episode.events:
        right.append(rrb.TextLogView(origin="events", name="events"))
        shares.append(1.5)
    return rrb.Blueprint(
        rrb.Horizontal(left, rrb.Vertical(*right, row_shares=shares), column_shares=[5, 4]),
        rrb.TimePanel(timeline=TIMELINE, state="collapsed"),
        rrb.SelectionPanel(state="hidden"),
        rrb.BlueprintPanel(state="hidden"),
        auto_views=False,
    )
