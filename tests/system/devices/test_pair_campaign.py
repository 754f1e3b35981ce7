"""A whole campaign of two robots in one cell: led by a person and by a policy, verified, reported, exported with each
robot's own names.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader
from support.runs.campaigns import events_of, make_campaign, unblind
from support.runs.recordings import Recordings, copied
from support.screens.rerun_files import decoded

from labctl.cli import call
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore

ALOHA = tuple(
    name for of in ("left", "right") for name in (*(f"{of}.fr3_joint{i}" for i in range(1, 8)), f"{of}.gripper")
)


def moved(lab: Path) -> Path:
    """A person and a policy move four items each with two robots, two each."""
    folder = make_campaign(lab, items=4, budget=20.0, base="sim_pair").folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture
def folder(recordings: Recordings) -> Path:
    return recordings.of(moved)


def test_a_person_and_a_policy_move_every_item_with_both_robots_and_the_record_says_which_moved_it(
    folder: Path,
) -> None:
    events = events_of(folder)
    outcomes = [event.body["outcome"] for event in events if event.kind == Kind.OUTCOME_RECORDED]
    assert [outcome["moved"] for outcome in outcomes] == [4, 4]
    robots = [event.body["robot"] for event in events if event.kind == Kind.OPERATION_RECORDED]
    assert sorted(robots) == ["left"] * 4 + ["right"] * 4
    assert call(["verify", str(folder)]) == 0


def test_the_detector_finds_what_either_gripper_placed_and_says_whose_it_was(folder: Path) -> None:
    sealed = [event.body for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED]
    for body in sealed:
        placed = [(one["robot"], one["zone"]) for one in body["detected"] if one["result"] == "success"]
        assert sorted(robot for robot, _ in placed) == ["left", "left", "right", "right"]
    operations = [event for event in events_of(folder) if event.kind == Kind.OPERATION_RECORDED]
    times = {"left": [], "right": []}
    for body in sealed:
        for one in body["detected"]:
            times[one["robot"]].append(one["t_ns"])
    for event in operations:
        near = np.abs(np.array(times[event.body["robot"]]) - event.body["t_ns"]).min()
        assert near < 1_000_000_000, "within a second of when it landed"


def test_each_robot_has_its_own_stream_of_states_and_one_row_of_setpoints_leads_both(folder: Path) -> None:
    store = TraceStore.open(sqlite_url(folder / "traces.db"), folder.name, readonly=True)
    try:
        episode = store.episodes()[0]
        specs = {spec.name: spec for spec in store.streams(episode)}
        assert {"arm/state", "right/state", "tracker", "right/tracker", "arm/action"} <= set(specs)
        joints = [name for name in ALOHA if not name.endswith("gripper")]
        hands = ["left.gripper", "right.gripper"]
        stages = ("requested", "limited", "sent")
        columns = (*(f"{stage}.{axis}" for stage in stages for axis in (*joints, *hands)), "delay_s")
        assert specs["arm/action"].columns == columns
        for stream in ("arm/state", "right/state"):
            t_ns, _ = store.read(episode, stream)
            assert np.diff(t_ns).min() > 0
    finally:
        store.close()


@pytest.mark.thorough
def test_every_format_has_each_robot_by_its_name(folder: Path, tmp_path: Path) -> None:
    copied(folder.parent.parent, tmp_path / "lab")
    own = tmp_path / "lab" / "campaigns" / folder.name
    unblind(own)
    for form in ("parquet", "mcap", "rosbag2", "npz", "lerobot-v3"):
        assert call(["export", str(own), "--to", form, "--out", str(tmp_path / form)]) == 0
    info = json.loads((tmp_path / "lerobot-v3" / "meta" / "info.json").read_text())["features"]
    assert tuple(info["action"]["names"]) == tuple(info["observation.state"]["names"]) == ALOHA
    assert {"labctl.tcp_pose", "labctl.right_tcp_pose"} <= set(info)
    parts = json.loads((tmp_path / "lerobot-v3" / "meta" / "modality.json").read_text())["action"]
    assert parts["right_gripper"] == {"start": 15, "end": 16} and parts["left_arm"] == {"start": 0, "end": 7}
    bag = next((tmp_path / "rosbag2").rglob("*.mcap")).parent
    with Reader(bag) as read:
        counts = {one.topic: one.msgcount for one in read.connections}
    assert counts["/left/joint_states"] == counts["/right/joint_states"] and counts["/tf_static"] == 1
    assert counts["/tf"] == 2 * counts["/left/tcp"] and "/joint_states" not in counts
    with next((tmp_path / "mcap").rglob("*.mcap")).open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    assert {"/left/tcp", "/right/tcp", "/tf_static"} <= {one.topic for one in summary.channels.values()}
    names = pq.read_schema(tmp_path / "parquet" / "streams" / "right_state.parquet")
    assert names.field("right.gripper").metadata[b"unit"] == b"m"
    arrays = np.load(next((tmp_path / "npz").glob("*.npz")))
    assert arrays["right.values"].shape[1] == len(arrays["right.columns"])
    assert call(["report", str(own), "--out", str(tmp_path / "report")]) == 0
    episode = next(str(event.episode) for event in events_of(own) if event.episode)
    out = ["--save", str(tmp_path / "e.rrd"), "--lab", str(tmp_path / "lab")]
    assert call(["show", episode, *out]) == 0
    drawn = decoded(tmp_path / "e.rrd")
    assert drawn["/right"][0]["Transform3D:translation"] == [[0.0, pytest.approx(-1.4), 0.0]]
    assert len(drawn["/right/world/joints/fr3_joint1"]) == len(drawn["/world/joints/fr3_joint1"]) > 100
    assert {"/right/world/items", "/right/joints/q", "/right/actions/gripper", "/actions/gripper"} <= set(drawn)
