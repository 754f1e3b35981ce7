"""A whole campaign of a robot on a base that drives: a person at a device and a policy each drive it to other places
and move every item from there; verified, reported, exported with the names of its speeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.runs.axes import cell_of, teleop
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind
from support.runs.recordings import Recordings, copied

from labctl.cli import call
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore
from labctl.streams import PLACE, SPEEDS, StreamSpec

SPEED = {"base.vx": (0.3, 0.6), "base.vy": (0.3, 0.6), "base.wz": (0.6, 1.2)}  # at most, and how much in a second
AXES = (*(f"fr3_joint{i}" for i in range(1, 8)), *SPEED, "gripper")
UNITS = (*7 * ["rad"], "m/s", "m/s", "rad/s", "m")
HZ = 100.0


def driven(lab: Path) -> Path:
    """A person at a device, by labctl's own teleoperation, and a policy move two items each."""
    cell = cell_of("sim_base")
    cell["[readiness]"] = f"{teleop('support.robots.seeing_hand:stick', 'sim_base')}\n{cell['[readiness]']}"
    person = {**HUMAN, "controller": "support.robots.seeing_hand:build"}
    driving = {**policy("policy-a", skill="swift"), "controller": "support.robots.driving_policy:build", "options": {}}
    folder = make_campaign(lab, [person, driving], items=2, budget=40.0, cell=cell, entropy=bytes(32)).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture
def folder(recordings: Recordings) -> Path:
    return recordings.of(driven)


@pytest.fixture
def store(folder: Path) -> Iterator[TraceStore]:
    found = TraceStore.open(sqlite_url(folder / "traces.db"), folder.name, readonly=True)
    yield found
    found.close()


def read(store: TraceStore, episode: str, name: str) -> tuple[StreamSpec, np.ndarray, np.ndarray]:
    """The declaration of a stream, its times in s and its values."""
    spec = next(spec for spec in store.streams(episode) if spec.name == name)
    t_ns, values = store.read(episode, name)
    return spec, (t_ns - t_ns[0]) / 1e9, values


def test_a_person_and_a_policy_drive_and_move_every_item_and_the_record_holds(folder: Path) -> None:
    outcomes = [event.body["outcome"] for event in events_of(folder) if event.kind == Kind.OUTCOME_RECORDED]
    assert [outcome["moved"] for outcome in outcomes] == [2, 2]
    assert call(["verify", str(folder)]) == 0


def test_each_speed_is_recorded_by_its_name_as_asked_limited_and_sent_within_its_limits(store: TraceStore) -> None:
    for episode in store.episodes():
        spec, _, values = read(store, episode, "arm/action")
        assert spec.columns == (*(f"{s}.{axis}" for s in ("requested", "limited", "sent") for axis in AXES), "delay_s")
        assert spec.units == (*3 * UNITS, "s")
        for name, (most, kick) in SPEED.items():
            sent = values[:, spec.columns.index(f"sent.{name}")]
            assert np.abs(sent).max() <= most
            assert np.abs(np.diff(sent)).max() * HZ <= kick
        pushed = values[:, [spec.columns.index(f"sent.{name}") for name in ("base.vx", "base.vy")]]
        assert np.abs(pushed).max() > 0.03, "and it was driven"


def test_where_it_has_come_to_is_a_stream_and_the_tools_pose_is_told_from_where_it_was_staged(
    store: TraceStore,
) -> None:
    for episode in store.episodes():
        spec, t_s, values = read(store, episode, "base/odometry")
        assert spec.columns == (*PLACE, *SPEEDS) and spec.private_columns == SPEEDS
        places, speeds = values[:, :3], values[:, 3:]
        assert np.abs(places[0]).max() < 1e-9, "a person has put it in its place before each episode"
        assert np.hypot(*places[-1, :2]) > 0.04, "and it ends elsewhere"
        turned = np.ptp(places[:, 2])
        assert turned == 0.0 or turned > 0.2, "the person's device does not turn it; the policy has turned it both ways"
        yaw, spans = places[:-1, 2], np.diff(t_s)[:, None]
        c, s = np.cos(yaw), np.sin(yaw)
        vx, vy, wz = speeds[1:].T
        led = np.cumsum(np.column_stack([c * vx - s * vy, s * vx + c * vy, wz]) * spans, axis=0)
        assert led[-1] == pytest.approx(places[-1], abs=0.01)
        state, _, rows = read(store, episode, "arm/state")
        named = dict(zip(state.columns, state.units, strict=True))
        assert [named.get(f"q.{axis}", named.get(axis)) for axis in AXES] == list(UNITS)
        measured = rows[:, [state.columns.index(f"q.{name}") for name in SPEED]]
        assert measured == pytest.approx(speeds, abs=1e-12)
        assert {f"q.{name}" for name in SPEED} <= set(state.private_columns)


def test_it_stands_while_nobody_asks_for_a_speed(store: TraceStore) -> None:
    """After what was asked of it a base comes to rest as soon as its acceleration lets it."""
    for episode in store.episodes():
        spec, _, values = read(store, episode, "arm/action")
        for name, (most, kick) in SPEED.items():
            asked = values[:, spec.columns.index(f"requested.{name}")]
            sent = values[:, spec.columns.index(f"sent.{name}")]
            within = round(most / kick * HZ) + 1
            quiet = np.convolve((asked != 0.0).astype(float), np.ones(within))[: len(asked)] == 0.0
            assert quiet.any() and not sent[quiet].any()


@pytest.mark.thorough
def test_exports_the_report_and_the_view_carry_its_speeds_by_name(folder: Path, tmp_path: Path) -> None:
    copied(folder.parent.parent, tmp_path / "lab")
    own = tmp_path / "lab" / "campaigns" / folder.name
    unblind(own)
    for form in ("parquet", "mcap", "lerobot-v3", "rosbag2"):
        assert call(["export", str(own), "--to", form, "--out", str(tmp_path / form)]) == 0
    schema = pq.read_schema(tmp_path / "parquet" / "streams" / "arm_action.parquet")
    for axis, unit in zip(AXES, UNITS, strict=True):
        assert schema.field(f"sent.{axis}").metadata[b"unit"].decode() == unit
    odometry = pq.read_schema(tmp_path / "parquet" / "streams" / "base_odometry.parquet")
    assert odometry.field("yaw").metadata[b"unit"].decode() == "rad"
    info = json.loads((tmp_path / "lerobot-v3" / "meta" / "info.json").read_text())
    assert tuple(info["features"]["action"]["names"]) == AXES
    assert tuple(info["features"]["observation.state"]["names"]) == AXES
    parts = json.loads((tmp_path / "lerobot-v3" / "meta" / "modality.json").read_text())["action"]
    base = range(parts["base"]["start"], parts["base"]["end"])
    assert [AXES[i] for i in base] == [name for name, unit in zip(AXES, UNITS, strict=True) if unit.endswith("/s")]
    about = json.loads((tmp_path / "lerobot-v3" / "labctl.json").read_text())
    units = about["contents"]["units"]
    assert units["action"] == ", ".join(UNITS)
    led = [
        unit
        for name, unit in zip(AXES, UNITS, strict=True)
        if name in info["features"]["labctl.joint_velocity"]["names"]
    ]
    assert tuple(info["features"]["labctl.joint_velocity"]["names"]) == AXES[: len(led)] and "m/s" in led
    assert units["labctl.joint_velocity"] == ", ".join(unit if unit.endswith("/s") else f"{unit}/s" for unit in led)
    assert units["labctl.joint_torque"] == ", ".join("N" if unit.startswith("m") else "N.m" for unit in led)
    assert call(["report", str(own), "--out", str(tmp_path / "report")]) == 0
    episode = next(str(event.episode) for event in events_of(own) if event.episode)
    saved = ["--save", str(tmp_path / "e.rrd"), "--lab", str(tmp_path / "lab")]
    assert call(["show", episode, *saved]) == 0
