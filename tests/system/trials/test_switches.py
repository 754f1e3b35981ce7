"""One simulated campaign whose protocol switches the instruction: journal, views, the report's adaptability."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind

from labctl.cli import call, group
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Event, Kind
from labctl.reporting.campaign_report import report_campaign
from labctl.runtime.campaign_run import run_campaign
from labctl.store.verify import verify_campaign
from labctl.viewing.episode import look_at

pytestmark = pytest.mark.thorough

AT_S, THINKS_S = 7.0, 14.0
SWITCH = f'[[switch]]\nname = "small"\nat_s = {AT_S}\ninstruction = "Move the small items."\n'
ARMS = [HUMAN, policy("quick", skill="swift", adapt_s=0.0), policy("deaf", skill="swift", adapt_s=THINKS_S)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = tmp_path_factory.mktemp("lab")
    folder = make_campaign(lab, ARMS, blocks=4, items=3, budget=9.0, link=SWITCH).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    report_campaign(folder, out, boot=20, perm=20)
    return out


def of_kind(folder: Path, kind: Kind) -> dict[str, Event]:
    return {event.episode: event for event in events_of(folder) if event.kind == kind}


def test_every_arm_is_told_at_the_same_time_and_only_what_it_took_is_journalled(folder: Path) -> None:
    goes, ends = of_kind(folder, Kind.GO), of_kind(folder, Kind.EPISODE_ENDED)
    told = of_kind(folder, Kind.INSTRUCTION_SWITCHED)
    assert len(goes) == 12
    for episode, go in goes.items():
        planned_ns = go.body["go_ns"] + round(AT_S * SECOND)
        assert (episode in told) == (ends[episode].body["end_ns"] > planned_ns)
        if episode in told:
            body = told[episode].body
            assert body["planned_ns"] == planned_ns
            assert planned_ns <= body["t_ns"] <= planned_ns + 10 * MILLISECOND
            assert (body["name"], body["instruction"]) == ("small", "Move the small items.")
    assert len(told) >= 10
    assert verify_campaign(folder).problems == []


def test_the_report_tells_arms_apart_by_how_soon_they_move_on(folder: Path, report: Path) -> None:
    found = json.loads((report / "report.json").read_text())["lab"]["stress"]["adaptability"]
    assert found["switches"] == [{"name": "small", "at_s": AT_S, "instruction": "Move the small items."}]
    arms = {entry["arm"]: entry for entry in found["arms"]}
    assert sorted(arms) == ["deaf", "human", "quick"]
    met = of_kind(folder, Kind.INSTRUCTION_SWITCHED)
    assert sum(entry["met"] for entry in arms.values()) == len(met)
    for entry in arms.values():
        assert entry["episodes"] == 4 and entry["moved"] <= entry["met"]
        assert entry["share"] is None and entry["succeeded"] is None, "nobody judges what was moved in this protocol"
    first = {arm: float(entry["first_s"]) for arm, entry in arms.items()}
    assert first["deaf"] >= THINKS_S > first["quick"], first
    assert arms["human"]["asked_s"]["value"] is None, "a person's device takes no instruction"
    assert 0 < arms["quick"]["asked_s"]["value"] < 2.0, "no longer than its chunks of 1.2 s and its answer"
    for page in ("report.html", "report.md"):
        text = (report / page).read_text()
        assert "Adaptability: after a switch of the instruction" in text and "“Move the small items”" in text
        assert "switches nothing" not in text
    assert len((report / "figures" / "adaptability.csv").read_text().splitlines()) == 13


def test_a_dataset_has_the_task_that_stood_at_each_frame(folder: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "data", of_kind(folder, Kind.INSTRUCTION_SWITCHED)
    assert call(["export", str(folder), "--to", "lerobot-v2.1", "--out", str(out)]) == 0
    tasks = [json.loads(line)["task"] for line in (out / "meta/tasks.jsonl").read_text().splitlines()]
    assert tasks == ["Move the items.", "Move the small items."]
    goes, looked = of_kind(folder, Kind.GO), 0
    for line in (out / "meta/episodes.jsonl").read_text().splitlines():
        about = json.loads(line)
        if about["labctl.episode"] not in told:
            assert about["tasks"] == tasks[:1]
            continue
        found = pq.read_table(out / f"data/chunk-000/episode_{about['episode_index']:06d}.parquet")
        since_go, place = (np.array(found[name].to_pylist()) for name in ("labctl.since_go", "task_index"))
        event = told[about["labctl.episode"]]
        switched_s = (event.body["t_ns"] - goes[event.episode].body["go_ns"]) / SECOND
        np.testing.assert_array_equal(place, since_go >= switched_s)
        assert about["tasks"] == tasks and set(place) == {0, 1}
        looked += 1
    assert looked == len(told)


def test_views_and_lists_say_the_switch(folder: Path) -> None:
    episode, event = next(iter(of_kind(folder, Kind.INSTRUCTION_SWITCHED).items()))
    view = look_at(folder, episode)
    assert view.timelines["instruction"][0].t_ns == event.body["t_ns"]
    assert any(text == "switch small: Move the small items." for _, _, text in view.events)
    listed = CliRunner().invoke(group, ["episodes", str(folder), "--json"])
    assert {entry["episode"]: entry["switched"] for entry in json.loads(listed.output)["episodes"]}[episode] == 1
    plan = CliRunner().invoke(group, ["plan", str(folder.parents[1] / "protocols" / "p.toml")])
    assert "Switched:     at 7 s: Move the small items." in plan.output
