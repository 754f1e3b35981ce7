"""Bags of ROS 2 hold what was recorded at its measured times, in types that every ROS 2 has, as two readers see them:
rosbags' own, and mcap's with the decoder of messages that Foxglove maintains.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from PIL import Image
from rosbags.rosbag2 import Reader
from ruamel.yaml import YAML
from support.cameras.coded_camera import mark_of

from labctl.cli import call
from labctl.clock import SECOND
from labctl.core.events import Event
from labctl.core.timeline import attempt, event_lines
from labctl.store.traces import TraceStore
from labctl.streams import POSE

pytestmark = pytest.mark.thorough
Topics = dict[str, list[tuple[int, Any]]]
# REP 2016's hash of the type, as `ros2 topic info /joint_states --verbose` prints it of a joint_state_broadcaster.
JOINT_STATE_HASH = "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"


@pytest.fixture(scope="module")
def exported(unblinded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rosbag2") / "out"
    assert call(["export", str(unblinded), "--to", "rosbag2", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def read_back(exported: Path) -> dict[str, Topics]:
    """{episode: {topic: [(log time, message)]}} by a decoder that shares nothing with what wrote them."""
    found: dict[str, Topics] = {}
    for path in exported.glob("*/*.mcap"):
        topics: Topics = defaultdict(list)
        with path.open("rb") as file:
            reader = make_reader(file, decoder_factories=[DecoderFactory()])
            for _, channel, raw, message in reader.iter_decoded_messages():
                topics[channel.topic].append((raw.log_time, message))
        found[path.stem] = topics
    return found


def stamp(time: Any) -> int:
    return int(time.sec) * SECOND + int(time.nanosec)


def test_there_is_a_bag_for_each_episode_that_says_where_it_comes_from(exported: Path, store: TraceStore) -> None:
    assert sorted(path.parent.name for path in exported.glob("*/metadata.yaml")) == store.episodes()
    for folder in sorted(path.parent for path in exported.glob("*/metadata.yaml")):
        with Reader(folder) as bag:
            assert bag.message_count == sum(connection.msgcount for connection in bag.connections) > 1000
        said = YAML(typ="safe").load(folder / "metadata.yaml")["rosbag2_bagfile_information"]
        about = {key: json.loads(value) for key, value in said["custom_data"].items()}
        assert about["episode"]["episode"] == folder.name and about["labctl"]["schema"] == "labctl.export/1"


def test_types_are_those_of_any_ros_2_and_carry_its_hashes(exported: Path) -> None:
    seen = {}
    for folder in sorted(path.parent for path in exported.glob("*/metadata.yaml")):
        with Reader(folder) as bag:
            seen |= {connection.msgtype: connection.digest for connection in bag.connections}
        with next(folder.glob("*.mcap")).open("rb") as file:
            reader = make_reader(file)
            assert reader.get_header().profile == "ros2"
            summary = reader.get_summary()
            assert summary is not None
            assert {channel.message_encoding for channel in summary.channels.values()} == {"cdr"}
            assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    packages = {"sensor_msgs", "geometry_msgs", "tf2_msgs", "std_msgs", "rcl_interfaces"}
    assert {kind.split("/")[0] for kind in seen} == packages
    assert seen["sensor_msgs/msg/JointState"] == JOINT_STATE_HASH


def test_every_sample_is_a_message_at_its_measured_time(
    read_back: dict[str, Topics], store: TraceStore, shift: dict[str, int]
) -> None:
    looked = 0
    for episode, topics in read_back.items():
        for spec in store.streams(episode):
            t_ns, values = store.read(episode, spec.name)
            wanted = (t_ns + shift[episode]).tolist()
            if spec.name == "arm/state":
                for topic in ("/joint_states", "/tcp", "/tf"):
                    assert [log_ns for log_ns, _ in topics[topic]] == wanted
                continue
            got = topics[f"/stream/{spec.name}"]
            assert [log_ns for log_ns, _ in got] == wanted
            np.testing.assert_array_equal([message.data for _, message in got], values)
            ((_, said),) = topics[f"/stream/{spec.name}/columns"]
            about = json.loads(said.data)
            assert about["columns"] == list(spec.columns) and len(about["units"]) == len(spec.columns)
            looked += len(got)
    assert looked > 10_000


def test_joints_and_tool_are_those_of_the_state(read_back: dict[str, Topics], store: TraceStore) -> None:
    for episode, topics in read_back.items():
        spec = next(spec for spec in store.streams(episode) if spec.name == "arm/state")
        _, values = store.read(episode, spec.name)
        rows = [dict(zip(spec.columns, row, strict=True)) for row in values.tolist()]
        for row, (log_ns, joints), (_, pose), (_, turn) in zip(
            rows, topics["/joint_states"], topics["/tcp"], topics["/tf"], strict=True
        ):
            assert stamp(joints.header.stamp) == stamp(pose.header.stamp) == log_ns
            *names, last = joints.name
            assert last == "gripper" and joints.position[-1] == row["gripper"]
            assert np.isnan([joints.velocity[-1], joints.effort[-1]]).all()
            for part, values_of in (("q", joints.position), ("dq", joints.velocity), ("tau", joints.effort)):
                assert list(values_of[:-1]) == [row[f"{part}.{name}"] for name in names]
            ((transform,),) = (turn.transforms,)
            place, turned = pose.pose.position, pose.pose.orientation
            at = [place.x, place.y, place.z, turned.x, turned.y, turned.z, turned.w]
            assert at == [row[column] for column in POSE]
            place, turned = transform.transform.translation, transform.transform.rotation
            assert at == [place.x, place.y, place.z, turned.x, turned.y, turned.z, turned.w]
            assert (transform.header.frame_id, transform.child_frame_id) == ("base", "tcp")


def test_each_picture_is_the_one_that_was_taken_at_its_time(
    read_back: dict[str, Topics], shift: dict[str, int]
) -> None:
    """The mark in a picture holds the time its source gave it: the message's log time must be that time."""
    looked = 0
    for episode, topics in read_back.items():
        for camera in ("over_shoulder", "wrist"):
            for log_ns, message in topics[f"/camera/{camera}/image/compressed"]:
                assert message.format == "rgb8; jpeg compressed bgr8" and message.header.frame_id == camera
                mark = mark_of(np.asarray(Image.open(io.BytesIO(bytes(message.data)))))
                assert mark is not None and mark.t_ns + shift[episode] == log_ns
                looked += 1
    assert looked > 1000


def test_the_journal_and_its_lines_are_there(
    events: list[Event], read_back: dict[str, Topics], shift: dict[str, int]
) -> None:
    levels = {"INFO": 20, "WARN": 30, "ERROR": 40}
    for episode, topics in read_back.items():
        own = [event for event in events if event.episode == episode]
        entries = [(t, json.loads(message.data)) for t, message in topics["/journal"]]
        assert [(t, e["seq"], e["kind"], e["body"]) for t, e in entries] == [
            (event.at_ns + shift[episode], event.seq, event.kind, event.body) for event in own
        ]
        lines = [(t, message.level, message.msg) for t, message in topics["/events"]]
        wanted = event_lines(attempt(events, episode))
        assert lines == [(t_ns + shift[episode], levels[level], text) for t_ns, level, text in wanted]
