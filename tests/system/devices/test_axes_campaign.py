"""A whole campaign of a robot on a rail with a vacuum cup, and of one with a hand of five axes: driven by a person and
by a policy, verified, reported, exported with the axes' names and units.
"""

from __future__ import annotations

import json
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

HAND = ("hand.thumb", "hand.index", "hand.middle", "hand.ring", "hand.little")
ARM = tuple(f"fr3_joint{i}" for i in range(1, 8))
AXES = {"sim_rail": ("rail", *ARM, "vacuum"), "sim_hand": (*ARM, *HAND)}
UNITS = {"sim_rail": ("m", *7 * ["rad"], "1"), "sim_hand": (*7 * ["rad"], *5 * ["rad"])}


def moved(lab: Path, driver: str) -> Path:
    """A person and a policy move two items each with this robot."""
    folder = make_campaign(lab, items=2, budget=20.0, cell=cell_of(driver)).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


def by_hand(lab: Path, driver: str) -> Path:
    """The same, the person at a device of six axes and a button, by labctl's own teleoperation."""
    cell = cell_of(driver)
    cell["[readiness]"] = f"{teleop('support.robots.seeing_hand:stick', driver)}\n{cell['[readiness]']}"
    person = {**HUMAN, "controller": "support.robots.seeing_hand:build"}
    folder = make_campaign(
        lab, [person, policy("policy-a", skill="swift")], items=2, budget=30.0, cell=cell, entropy=bytes(32)
    ).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture(params=list(AXES))
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(recordings: Recordings, driver: str) -> Path:
    return recordings.of(moved, driver=driver)


def streams(folder: Path, name: str, of: str = "") -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Columns, units and values of a stream in an episode, the first one unless it is named."""
    store = TraceStore.open(sqlite_url(folder / "traces.db"), folder.name, readonly=True)
    try:
        episode = of or store.episodes()[0]
        spec = next(spec for spec in store.streams(episode) if spec.name == name)
        return spec.columns, spec.units, store.read(episode, name)[1]
    finally:
        store.close()


def test_a_person_and_a_policy_move_every_item_and_the_record_holds(folder: Path) -> None:
    outcomes = [event.body["outcome"] for event in events_of(folder) if event.kind == Kind.OUTCOME_RECORDED]
    assert [outcome["moved"] for outcome in outcomes] == [2, 2]
    assert call(["verify", str(folder)]) == 0
    assert call(["plan", str(folder.parent.parent / "protocols" / "p.toml")]) == 0


def test_each_axis_is_recorded_by_its_name_in_its_unit_as_asked_limited_and_sent(folder: Path, driver: str) -> None:
    columns, units, values = streams(folder, "arm/action")
    assert columns == (*(f"{s}.{axis}" for s in ("requested", "limited", "sent") for axis in AXES[driver]), "delay_s")
    assert units == (*3 * UNITS[driver], "s")
    sent = values[:, [columns.index(f"sent.{axis}") for axis in AXES[driver]]]
    moved = dict(zip(AXES[driver], np.ptp(sent, axis=0) > 0.1, strict=True))
    assert all(moved[axis] for axis in AXES[driver] if axis not in ARM), "each of them moved"
    steps = np.abs(np.diff(sent, axis=0)).max(axis=0) * 100.0
    limits = {"rail": 0.5, "vacuum": 4.0, **dict.fromkeys(HAND, 3.0)}
    for axis, speed in zip(AXES[driver], steps, strict=True):
        assert speed <= limits.get(axis, 2.5) * 1.001, f"{axis} at {speed:.2f}"


def test_states_name_the_axes_and_their_units_and_where_it_is_agrees_with_what_was_sent(
    folder: Path, driver: str
) -> None:
    columns, units, values = streams(folder, "arm/state")
    named = dict(zip(columns, units, strict=True))
    for axis, unit in zip(AXES[driver], UNITS[driver], strict=True):
        assert named.get(f"q.{axis}", named.get(axis)) == unit
    if driver == "sim_rail":
        speed, place = values[:, columns.index("dq.rail")], values[:, columns.index("q.rail")]
        assert np.abs(np.diff(place) * 100.0 - speed[1:]).max() < 0.02
        assert np.abs(place).max() <= 0.4


@pytest.mark.thorough
def test_parquet_mcap_and_lerobot_carry_names_and_units(folder: Path, driver: str, tmp_path: Path) -> None:
    copied(folder.parent.parent, tmp_path / "lab")
    own = tmp_path / "lab" / "campaigns" / folder.name
    unblind(own)
    for form in ("parquet", "mcap", "lerobot-v3"):
        assert call(["export", str(own), "--to", form, "--out", str(tmp_path / form)]) == 0
    schema = pq.read_schema(tmp_path / "parquet" / "streams" / "arm_action.parquet")
    for axis, unit in zip(AXES[driver], UNITS[driver], strict=True):
        assert schema.field(f"sent.{axis}").metadata[b"unit"].decode() == unit
    info = json.loads((tmp_path / "lerobot-v3" / "meta" / "info.json").read_text())
    assert tuple(info["features"]["action"]["names"]) == AXES[driver]
    assert tuple(info["features"]["observation.state"]["names"]) == AXES[driver]
    about = json.loads((tmp_path / "lerobot-v3" / "labctl.json").read_text())
    units, names = about["contents"]["units"], info["features"]["labctl.joint_velocity"]["names"]
    assert units["action"] == ", ".join(UNITS[driver])
    led = UNITS[driver][: len(names)]
    assert tuple(names) == AXES[driver][: len(names)]
    speeds = [f"{unit}/s" for unit in led]
    assert units["labctl.joint_velocity"] == (", ".join(speeds) if "m/s" in speeds else "rad/s")
    assert units["labctl.joint_torque"] == ", ".join(["N", *7 * ["N.m"]] if "m/s" in speeds else ["N.m"])
    assert call(["report", str(own), "--out", str(tmp_path / "report")]) == 0
    told = json.loads((tmp_path / "report" / "report.json").read_text())["lab"]["provenance"]
    lines = told["motion achieved over commanded"].values()
    apart = [line.startswith("rad: ") and "; m: " in line for line in lines]
    assert apart and set(apart) == {driver == "sim_rail"}, "never metres and radians in one"
    assert (
        call(
            [
                "show",
                next(str(e.episode) for e in events_of(own) if e.episode),
                "--save",
                str(tmp_path / "e.rrd"),
                "--lab",
                str(tmp_path / "lab"),
            ]
        )
        == 0
    )


def test_a_person_at_a_device_moves_every_item_with_each_of_them_through_a_whole_campaign(
    recordings: Recordings, driver: str, tmp_path: Path
) -> None:
    recorded = recordings.of(by_hand, driver=driver)
    copied(recorded.parent.parent, tmp_path / "lab")
    folder = tmp_path / "lab" / "campaigns" / recorded.name
    unblind(folder)
    assert call(["verify", str(folder)]) == 0
    events = events_of(folder)
    schedule = next(event.body["schedule"] for event in events if event.kind == Kind.CAMPAIGN_UNBLINDED)
    trial = next(slot["trial"] for slot in schedule if slot["arm"] == "human")
    outcome = next(event for event in events if event.trial == trial and event.kind == Kind.OUTCOME_RECORDED)
    person = str(outcome.episode)
    assert outcome.body["outcome"]["moved"] == 2, "the policy's errors are its own"
    columns, _, values = streams(folder, "arm/action", person)
    asked = values[:, [columns.index(f"requested.{axis}") for axis in AXES[driver]]]
    of_hand = asked[:, -1 if driver == "sim_rail" else -5 :]
    most = 1.0 if driver == "sim_rail" else 1.4
    assert np.nanmin(of_hand, axis=0) == pytest.approx(0.0) and np.nanmax(of_hand, axis=0) == pytest.approx(most)
    if driver == "sim_rail":
        steps = np.diff(asked, axis=0)
        alone = (np.abs(steps[:, 0]) > 1e-5) & (np.abs(steps[:, 1:8]).max(axis=1) < 1e-9)
        assert alone.sum() > 50, "the rail is led by itself, by the stick that the cell names, while the joints stand"
        assert np.quantile(np.abs(steps[alone, 0]), 0.95) * 100.0 <= 0.31, "as fast as the cell lets it, but for bends"
