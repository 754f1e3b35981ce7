"""Exports an episode as a rosbag2 bag (MCAP, profile ros2) whose messages are of types that every ROS 2 brings, so that
any ROS 2 tool reads it with nothing of labctl's. The only module with rosbags.

May not: resample, drop a sample or decide what may be shown; every message's log time is the sample's measured host
time, moved to wall time by the episode's anchor.
"""

from __future__ import annotations

import heapq
import io
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labctl.clock import SECOND
from labctl.errors import MissingExtra
from labctl.exports.namespaces import JOINT_PARTS, Namespace, base_of, namespaces
from labctl.exports.recordings import Recording, Recordings, episode_row
from labctl.exports.selection import Chosen, Selection
from labctl.exports.units import column_units
from labctl.store.atomic_files import sync_file
from labctl.store.video import read_frames
from labctl.streams import POSE, StreamSpec

if TYPE_CHECKING:
    from rosbags.rosbag2 import Writer
    from rosbags.typesys.store import Typestore

# The types used here are the same in every release from Humble on, and so are their hashes.
DISTRO = "ROS2_HUMBLE"
JPEG_QUALITY = 95
LEVELS = {"INFO": 20, "WARN": 30, "ERROR": 40}  # rcl_interfaces/msg/Log

Messages = Iterator[tuple[int, Any]]  # log time (ns since 1970), a message of rosbags' class


def write_episode(recordings: Recordings, chosen: Chosen, path: Path) -> dict[str, int]:
    """As `write_bag`, for `episode_files`; `path` is the bag's .mcap, in a folder of the same name."""
    return write_bag(path.parent, recordings.of(chosen), recordings.selection)


def write_bag(folder: Path, recording: Recording, selection: Selection) -> dict[str, int]:
    """Write one episode as a bag of its own, in the order of log times; how many messages each topic has.

    What an attempt that was broken off left there is written anew. Raises MissingExtra without rosbags, StorageError
    for a video that does not decode.
    """
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ModuleNotFoundError as error:
        raise MissingExtra("ros2", "writing bags of ROS 2") from error
    types = get_typestore(Stores[DISTRO])
    shutil.rmtree(folder, ignore_errors=True)
    bag = Writer(folder, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP)
    bag.set_custom_data("labctl", json.dumps(selection.about, ensure_ascii=False))
    bag.set_custom_data("episode", json.dumps(selection.hide(episode_row(recording)), ensure_ascii=False))
    with _whole(bag):
        topics = list(_Bag(recording, selection, types).topics())
        _name_apart(topics)
        for topic in topics:
            topic.register(bag, types)
        for log_ns, number, message in heapq.merge(*(topic.numbered(i) for i, topic in enumerate(topics))):
            topic = topics[number]
            bag.write(topic.connection, log_ns, types.serialize_cdr(message, topic.kind))
            topic.count += 1
    for file in folder.iterdir():
        sync_file(file)
    return {topic.name: topic.count for topic in topics}


def _name_apart(topics: Sequence[_Topic]) -> None:
    """ROS has letters, digits and _ in a name, and no part that begins with a digit: what else there is becomes _."""
    taken: set[str] = set()
    for topic in topics:
        name = re.sub(r"(?<=/)(?=[0-9])", "_", re.sub(r"[^A-Za-z0-9_/]", "_", topic.name))
        while name in taken:
            name += "_"
        taken.add(name)
        topic.name = name


@contextmanager
def _whole(bag: Writer) -> Iterator[None]:
    """The bag open; what fails within leaves none that looks finished."""
    bag.open()
    try:
        yield
    except BaseException:
        bag.abort()
        raise
    bag.close()


@dataclass(slots=True)
class _Topic:
    """A topic to be: messages of one type, in order of time. latched: whoever comes later is given the last one."""

    name: str
    kind: str
    messages: Messages
    latched: bool = False
    count: int = 0
    connection: Any = field(default=None)

    def register(self, bag: Writer, types: Typestore) -> None:
        from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

        held = QosDurability.TRANSIENT_LOCAL if self.latched else QosDurability.VOLATILE
        forever = QosTime(2147483647, 4294967295)
        offered = Qos(
            QosHistory.KEEP_LAST,
            10,
            QosReliability.RELIABLE,
            held,
            forever,
            forever,
            QosLiveliness.AUTOMATIC,
            forever,
            avoid_ros_namespace_conventions=False,
        )
        self.connection = bag.add_connection(self.name, self.kind, typestore=types, offered_qos_profiles=[offered])

    def numbered(self, number: int) -> Iterator[tuple[int, int, Any]]:
        """Messages that `heapq.merge` puts in order: of two at one time that of the earlier topic goes first."""
        for log_ns, message in self.messages:
            yield log_ns, number, message


@dataclass(frozen=True, slots=True)
class _Bag:
    """The topics of one recording."""

    recording: Recording
    selection: Selection
    types: Typestore

    def topics(self) -> Iterator[_Topic]:
        robots = namespaces(self.recording.specs)
        moved: list[Messages] = []
        for spec in self.recording.specs:
            if spec.name in robots:
                yield from self._state(spec, robots[spec.name], moved)
            else:
                yield from self._plain(spec, range(len(spec.columns)))
        if len(robots) > 1 and moved:
            yield _Topic("/tf", "tf2_msgs/msg/TFMessage", heapq.merge(*moved, key=lambda one: one[0]))
            if (base := base_of(self.selection.about)) is not None:
                yield _Topic("/tf_static", "tf2_msgs/msg/TFMessage", self._bases(base), latched=True)
        for camera in self.recording.pictures:
            yield _Topic(f"/camera/{camera}/image/compressed", "sensor_msgs/msg/CompressedImage", self._frames(camera))
        yield _Topic("/events", "rcl_interfaces/msg/Log", self._lines())
        yield _Topic("/journal", "std_msgs/msg/String", self._journal())

    def make(self, kind: str, *values: Any) -> Any:
        """A message of `kind` with its fields in order."""
        return self.types.types[kind](*values)

    def _header(self, wall_ns: int, frame: str) -> Any:
        time = self.make("builtin_interfaces/msg/Time", wall_ns // SECOND, wall_ns % SECOND)
        return self.make("std_msgs/msg/Header", time, frame)

    def _samples(self, spec: StreamSpec) -> Iterator[tuple[int, np.ndarray]]:
        t_ns, values = self.recording.read(spec.name)
        yield from zip(self.recording.wall(t_ns).tolist(), values, strict=True)

    def _state(self, spec: StreamSpec, robot: Namespace, moved: list[Messages]) -> Iterator[_Topic]:
        """Joints with the gripper, and the tool; what is left of the columns as it is. moved: takes the transforms of
        one of two robots, which share a topic.
        """
        columns = list(spec.columns)
        used = robot.columns()
        yield _Topic(f"{robot.topic}/joint_states", "sensor_msgs/msg/JointState", self._joints(spec, robot))
        if all(column in columns for column in POSE):
            used |= set(POSE)
            at = [columns.index(column) for column in POSE]
            yield _Topic(f"{robot.topic}/tcp", "geometry_msgs/msg/PoseStamped", self._poses(spec, at, robot))
            poses = ((wall_ns, row[at]) for wall_ns, row in self._samples(spec))
            transforms = self._transforms(poses, robot.base, robot.tool)
            if robot.topic:
                moved.append(transforms)
            else:
                yield _Topic("/tf", "tf2_msgs/msg/TFMessage", transforms)
        rest = [i for i, column in enumerate(columns) if column not in used]
        if rest:
            yield from self._plain(spec, rest)

    def _joints(self, spec: StreamSpec, robot: Namespace) -> Messages:
        """What a joint, or the gripper, has no number of is NaN; a part that no joint has is empty, as ROS has it."""
        columns, names = list(spec.columns), [robot.joint(joint) for joint in robot.joints]
        parts = [
            [columns.index(f"{part}.{joint}") for joint in robot.joints if f"{part}.{joint}" in columns]
            for part in JOINT_PARTS
        ]
        there = [at if len(at) == len(robot.joints) else [] for at in parts]
        gripper = columns.index(robot.gripper) if robot.gripper in columns else None
        if gripper is not None:
            names.append("gripper")
        for wall_ns, row in self._samples(spec):
            position, velocity, effort = (row[at].astype(float) for at in there)
            if gripper is not None:
                position = np.append(position, float(row[gripper]))
                velocity, effort = (np.append(part, np.nan) if len(part) else part for part in (velocity, effort))
            header = self._header(wall_ns, robot.base)
            yield wall_ns, self.make("sensor_msgs/msg/JointState", header, names, position, velocity, effort)

    def _poses(self, spec: StreamSpec, at: Sequence[int], robot: Namespace) -> Messages:
        """A robot that has no pose yet says so with values that are not finite: such a row is no pose."""
        for wall_ns, row in self._samples(spec):
            if np.isfinite(row[at]).all():
                x, y, z, *turn = row[at].tolist()
                place = self.make("geometry_msgs/msg/Point", x, y, z)
                pose = self.make("geometry_msgs/msg/Pose", place, self.make("geometry_msgs/msg/Quaternion", *turn))
                yield wall_ns, self.make("geometry_msgs/msg/PoseStamped", self._header(wall_ns, robot.base), pose)

    def _transforms(self, poses: Iterable[tuple[int, np.ndarray]], base: str, tool: str) -> Messages:
        for wall_ns, pose in poses:
            if np.isfinite(pose).all():
                x, y, z, *turn = pose.tolist()
                place = self.make("geometry_msgs/msg/Vector3", x, y, z)
                turned = self.make("geometry_msgs/msg/Quaternion", *turn)
                moved = self.make("geometry_msgs/msg/Transform", place, turned)
                stamped = self.make("geometry_msgs/msg/TransformStamped", self._header(wall_ns, base), tool, moved)
                yield wall_ns, self.make("tf2_msgs/msg/TFMessage", [stamped])

    def _bases(self, base: tuple[str, str, Sequence[float]]) -> Messages:
        """Where the second robot's base stands in the first's, once."""
        first, second, pose = base
        wall_ns = self.recording.wall_at(self.recording.entries[0].at_ns)
        yield from self._transforms([(wall_ns, np.array(pose))], first, second)

    def _plain(self, spec: StreamSpec, at: Sequence[int]) -> Iterator[_Topic]:
        """A stream as an array of numbers, and what they are, once, beside it: ROS has no type for such a thing."""
        whole = np.dtype(spec.dtype).kind in "iu"
        kind, number = (
            ("std_msgs/msg/Int64MultiArray", np.int64) if whole else ("std_msgs/msg/Float64MultiArray", np.float64)
        )
        units = column_units(spec)
        about = {
            "columns": [spec.columns[i] for i in at],
            "units": [units[i] for i in at],
            "rate_hz": spec.rate_hz,
            "clock": spec.clock,
        }
        size = self.make("std_msgs/msg/MultiArrayDimension", "columns", len(at), len(at))
        layout = self.make("std_msgs/msg/MultiArrayLayout", [size], 0)
        pick = list(at)

        def messages() -> Messages:
            for wall_ns, row in self._samples(spec):
                yield wall_ns, self.make(kind, layout, row[pick].astype(number))

        text = self.make("std_msgs/msg/String", json.dumps(about, ensure_ascii=False))
        first = self.recording.wall_at(self.recording.entries[0].at_ns)
        yield _Topic(f"/stream/{spec.name}/columns", "std_msgs/msg/String", iter([(first, text)]), latched=True)
        yield _Topic(f"/stream/{spec.name}", kind, messages())

    def _frames(self, camera: str) -> Messages:
        """Each frame of the file that the index knows, as a JPEG. A message's stamp is when the light fell."""
        from PIL import Image

        at = self.recording.pictures_on_wall(camera)
        for pts_us, frame in read_frames(self.recording.pictures[camera].path):
            if pts_us in at:
                log_ns, light_ns = at[pts_us]
                coded = io.BytesIO()
                Image.fromarray(frame).save(coded, "JPEG", quality=JPEG_QUALITY)
                data = np.frombuffer(coded.getvalue(), np.uint8)
                header = self._header(light_ns, camera)
                yield log_ns, self.make("sensor_msgs/msg/CompressedImage", header, "rgb8; jpeg compressed bgr8", data)

    def _lines(self) -> Messages:
        for log_ns, wall_ns, level, text in self.recording.lines(self.selection):
            time = self.make("builtin_interfaces/msg/Time", wall_ns // SECOND, wall_ns % SECOND)
            yield log_ns, self.make("rcl_interfaces/msg/Log", time, LEVELS.get(level, 0), "labctl", text, "", "", 0)

    def _journal(self) -> Messages:
        """What the journal says, entry by entry, as JSON."""
        for log_ns, entry in self.recording.journal(self.selection):
            yield log_ns, self.make("std_msgs/msg/String", json.dumps(entry, ensure_ascii=False))
