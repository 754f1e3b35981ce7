"""A whole campaign of a cell with a scale under the target tote: recorded, a witness, verified, reported, exported."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.runs.campaigns import events_of, make_campaign, unblind
from support.runs.recordings import Recordings, copied
from support.runs.sensing import SENSOR_REASONS, scale, with_scale
from support.runs.spiking_sensor import TABLE

from labctl.cli import call
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.viewing.episode import look_at


def weighed(lab: Path) -> Path:
    """A person and a policy move three items each onto a scale."""
    cell = with_scale(scale(witness="left"))
    folder = make_campaign(lab, items=3, budget=20.0, cell=cell, protocol=SENSOR_REASONS).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


def limited(lab: Path, then: str) -> Path:
    """A force that is exceeded with every item, in a cell whose driver lies in a module of somebody else's."""
    given = {"cell": with_scale(TABLE.replace("THEN", then)), "protocol": SENSOR_REASONS}
    folder = make_campaign(lab, items=2, budget=20.0, max_voids=1, faults=True, **given).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture
def folder(recordings: Recordings) -> Path:
    return recordings.of(weighed)


def test_what_the_scale_measured_is_sealed_and_confirms_what_the_gripper_shows(folder: Path) -> None:
    for sealed in [event.body for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED]:
        assert sealed["streams"]["sensor/scale"]["n"] > 100
        placed = [one for one in sealed["detected"] if one["result"] == "success"]
        assert [one["edge"] for one in placed] == ["release"] * 3, "no step is left that no release explains"
        # the episode ends with its last item, before the scale has come to rest on it
        assert [list(one.get("witnesses", ())) for one in placed] == [["scale"], ["scale"], []]
    assert call(["verify", str(folder)]) == 0


def test_a_changed_value_of_the_scale_is_found(folder: Path, tmp_path: Path) -> None:
    import sqlite3

    copied(folder.parent.parent, tmp_path)
    broken = tmp_path / "campaigns" / folder.name
    with sqlite3.connect(broken / "traces.db") as db:
        for (name,) in db.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            db.execute(f"drop trigger {name}")
        db.execute("update chunk set payload = zeroblob(8) where stream = 'sensor/scale'")
    assert call(["verify", str(broken)]) != 0


def test_a_blind_role_sees_the_public_columns_as_the_stream_declares_them(folder: Path) -> None:
    episode = next(event.episode for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED)
    view = look_at(folder, str(episode), masked=True)
    assert view.streams["sensor/scale"].columns == ("mass", "stable")
    assert view.streams["sensor/scale"].unit == "kg 1"


def test_it_is_exported_with_its_units_and_reported(recordings: Recordings, folder: Path, tmp_path: Path) -> None:
    copied(folder.parent.parent, tmp_path / "lab")
    own = tmp_path / "lab" / "campaigns" / folder.name
    unblind(own)
    assert call(["export", str(own), "--to", "parquet", "--out", str(tmp_path / "out")]) == 0
    table = pq.read_table(tmp_path / "out" / "streams" / "sensor_scale.parquet")
    units = {field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in table.schema}
    assert (units["mass"], units["stable"]) == ("kg", "1")
    assert table["mass"].to_numpy().max() == pytest.approx(0.1, abs=0.06)
    assert call(["report", str(own), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert "<h2" in page and "Sensors" in page and "scale: mass, kg" in page and "scale: stable" in page
    drawn = (tmp_path / "report" / "figures" / "sensor-scale-mass.csv").read_text("utf-8").splitlines()
    assert drawn[0] == "arm,episode,t_s,value" and {line.partition(",")[0] for line in drawn[1:]} == {
        "human",
        "policy-a",
    }
    assert max(float(line.rpartition(",")[2]) for line in drawn[1:]) > 0.05, "items of 50 g lie on it"
    episode = next(str(event.episode) for event in events_of(own) if event.episode)
    assert call(["show", episode, "--save", str(tmp_path / "e.rrd"), "--lab", str(tmp_path / "lab")]) == 0
    assert b"sensors/scale/0" in (tmp_path / "e.rrd").read_bytes(), "its mass is drawn"


@pytest.mark.parametrize(("then", "reason", "voided"), [("end", "interlock", False), ("void", "sensor_limit", True)])
def test_a_limit_ends_episodes_as_the_cell_declares_and_says_why(
    then: str, reason: str, voided: bool, tmp_path: Path
) -> None:
    folder = limited(tmp_path, then)
    ends = [event.body for event in events_of(folder) if event.kind == Kind.EPISODE_ENDED]
    assert {(body["reason"], body["cause"]) for body in ends} == {(reason, "sensor touch: force above 40 N")}
    voids = [event.body["reason"] for event in events_of(folder) if event.kind == Kind.EPISODE_VOIDED]
    scored = [event for event in events_of(folder) if event.kind == Kind.OUTCOME_RECORDED]
    assert (set(voids), bool(scored)) == (({reason}, False) if voided else (set(), True))
    assert call(["verify", str(folder)]) == 0


@pytest.mark.thorough
def test_a_limit_of_the_scale_ends_every_episode_since_the_tote_is_emptied_between_them(tmp_path: Path) -> None:
    """Two items of 50 g lie on it when an episode ends, and would hold the next one for ever."""
    given = {"cell": with_scale(scale(witness="left", limit="0.08 end")), "protocol": SENSOR_REASONS}
    folder = make_campaign(tmp_path, items=3, budget=20.0, faults=True, **given).folder
    assert run_campaign(folder, lambda line: None, manual=True), "no trial is left"
    ends = [event.body for event in events_of(folder) if event.kind == Kind.EPISODE_ENDED]
    assert [(body["reason"], body["cause"]) for body in ends] == 2 * [("interlock", "sensor scale: mass above 0.08 kg")]
