"""One simulated campaign, and what its report measures beside outcomes: touches, stress, people, streams of labels."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.table import table_from_rows
from labctl.cli import group
from labctl.clock import SECOND, ManualClock
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.drivers.sim.operator import SimulatedOperator
from labctl.errors import StateError
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.operations_table import operations
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.review_writer import record_practice

pytestmark = pytest.mark.thorough

ARMS = [HUMAN, policy("swift", skill="swift"), policy("steady", skill="steady"), policy("slow", skill="slow")]


class Helper(SimulatedOperator):
    """Puts a hand into the second episode that runs, for as long as it takes to see it there."""

    def __init__(self) -> None:
        self._ran: list[str] = []

    def decide(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        if state.get("trial_state") == "running" and state["times"]["go_ns"]:
            if state["episode"] not in self._ran:
                self._ran.append(state["episode"])
                if len(self._ran) == 2:
                    return self._command("touch", phase="begin")
            if state["touching"]:
                return self._command("touch", phase="end", kind="hand_in_scene")
        return super().decide(state)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = tmp_path_factory.mktemp("lab")
    rules = {f"tau_s = {30.0}": f'tau_s = {30.0}\nreference = "human"'}
    folder = make_campaign(lab, ARMS, blocks=4, items=3, budget=30.0, protocol=rules).folder
    for seconds in (40.0, 30.0):
        told = {"person": "sim-operator", "object": "towels", "moved": 3, "staged": 3, "duration_s": seconds}
        record_practice(folder, told, who="tester", anchor=ManualClock(10**9).anchor())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labctl.drivers.sim.operator.SimulatedOperator", Helper)
        run_campaign(folder, lambda line: None, manual=True)
    with pytest.raises(StateError, match="unblind it first"):
        report_campaign(folder, lab / "early")
    unblind(folder)
    return folder


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    report_campaign(folder, out, boot=20, perm=20)
    return out


def test_one_touched_episode_is_one_of_all_that_its_arm_was_scored_in(folder: Path, report: Path) -> None:
    told = json.loads((report / "report.json").read_text())
    touched = [event for event in events_of(folder) if event.kind == Kind.INTERVENTION_BEGAN]
    assert len(touched) == 1
    arm = next(e["arm"] for e in told["lab"]["episodes"] if e["episode"] == touched[0].episode)
    by_arm = {entry["arm"]: entry for entry in told["lab"]["interventions"]}
    assert sorted(by_arm) == sorted(a["name"] for a in ARMS)
    for name, entry in by_arm.items():
        assert (entry["touched"], entry["episodes"]) == (int(name == arm), 4)
        assert (entry["touched_s"] > 0) == (name == arm) and entry["unaided"] <= entry["moved"]
    assert by_arm[arm]["by_kind"] == {"hand_in_scene": 1}
    rates = {entry["arm"]: entry["intervention_rate"] for entry in told["result"]["arms"]}
    assert rates[arm] >= 1 / 4 and all(rate is not None for rate in rates.values())
    for page in ("report.html", "report.md"):
        text = (report / page).read_text()
        assert "Interventions" in text and "Hand in scene" in text and "every scored episode" in text


def test_stress_measures_stand_in_page_json_and_csv(report: Path) -> None:
    lab = json.loads((report / "report.json").read_text())["lab"]
    arms = {entry["arm"]: entry for entry in lab["stress"]["arms"]}
    assert sorted(arms) == sorted(a["name"] for a in ARMS)
    for entry in arms.values():
        assert entry["inference_hz"]["value"] > 0 and entry["latency_s"]["value"] >= 0
        assert 0 < entry["stability"]["value"] < 1 and entry["stability"]["ci"][0] < entry["stability"]["value"]
    asked = {entry["arm"]: entry for entry in lab["answer_times"]}
    for name, entry in arms.items():  # two ways to the same questions: the mean lies within the spread
        assert entry["latency_s"]["value"] <= asked[name]["command_s"]["p95"] + 1e-6
    with (report / "figures" / "stress.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lab["episodes"]) and {row["arm"] for row in rows} == set(arms)
    text = (report / "report.md").read_text()
    assert "## Stress measures" in text and "standing still" in text


def test_how_late_the_lease_was_renewed_stands_in_the_provenance_by_arm(report: Path) -> None:
    """In simulated time no renewal is late: three per second of a lease of 1 s."""
    lines = json.loads((report / "report.json").read_text())["lab"]["provenance"]["motion lease"]
    assert sorted(lines) == sorted(f"{arm['name']}:" for arm in ARMS)
    for line in lines.values():
        found = re.fullmatch(r"(\d+) renewals, ([\d.]+) s apart in the median and ([\d.]+) s at most", line)
        assert found and int(found[1]) > 0 and float(found[3]) <= 0.4
    assert "motion lease" in (report / "report.md").read_text()


def test_what_each_arm_got_of_the_motion_it_asked_for_stands_beside_it(report: Path) -> None:
    """Issue 20.8: the simulated arm follows a path with its own smoothing of 0.1 s and has no controller."""
    provenance = json.loads((report / "report.json").read_text())["lab"]["provenance"]
    lines = provenance["motion achieved over commanded"]
    assert {f"{arm['name']}:" for arm in ARMS if arm["kind"] == "policy"} <= set(lines)
    for line in lines.values():
        found = re.match(r"([\d.]+) of the way an action asks for is covered when it ends", line)
        assert found and 0.2 < float(found[1]) < 1.1, line
    assert provenance["robot's controller"] is None


def test_the_robot_as_it_was_connected_and_the_limits_in_force_stand_in_the_provenance(report: Path) -> None:
    provenance = json.loads((report / "report.json").read_text())["lab"]["provenance"]
    assert provenance["robot_as_connected"].startswith("fr3 (sim), by labctl ")
    assert "velocity_rad_s [" in provenance["limits_in_force"]
    assert "robot as connected" in (report / "report.md").read_text()


def test_the_reference_is_told_person_by_person_and_practice_apart(report: Path) -> None:
    told = json.loads((report / "report.json").read_text())
    people = told["supplement"]["people"]
    (one,) = people["operators"]
    human = next(cell for cell in told["result"]["cells"] if cell["arm"] == "human")
    assert (one["operator"], one["episodes"], one["moved"]) == ("sim-operator", 4, human["items_moved"])
    assert one["rate"] == pytest.approx(human["uph"], rel=1e-6), "practice is in no number of the reference"
    assert people["learning"]["episodes"] == 4
    assert [p["rates"] for p in told["lab"]["practice"]["people"]] == [[270.0, 360.0]]
    text = (report / "report.md").read_text()
    assert "person by person" in text and "by labctl's default" in text


def test_a_report_names_its_stream_of_labels_and_refuses_one_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    report_campaign(folder, tmp_path / "by-detector", boot=20, perm=20, labels="detector")
    told = json.loads((tmp_path / "by-detector" / "report.json").read_text())
    assert told["lab"]["labels"]["stream"] == "detector"
    for page in ("report.html", "report.md"):
        assert "labels: detector" in (tmp_path / "by-detector" / page).read_text()
    words = ["report", str(folder), "--labels", "reviewed", "--out", str(tmp_path / "none")]
    refused = CliRunner().invoke(group, words)
    assert isinstance(refused.exception, StateError)
    assert str(refused.exception) == "--labels reviewed: no episode was reviewed; there is detector, device"
    assert not (tmp_path / "none").exists()


def counted(events: list[Any]) -> list[Any]:
    """The journal with an operator's tally: every placement counted by hand 0.2 to 1.2 s after it happened, or when
    the episode ended if that was sooner.
    """
    rng, found = np.random.default_rng(17), []
    ends = {e.episode: e.body["end_ns"] for e in events if e.kind == Kind.EPISODE_ENDED}
    tally: dict[str, int] = {}
    for event in events:
        found.append(event)
        if event.kind == Kind.OPERATION_RECORDED and event.body["result"] == "success":
            tally[event.episode] = tally.get(event.episode, 0) + 1
            seen_ns = min(event.body["t_ns"] + int(rng.uniform(0.2, 1.2) * SECOND), ends[event.episode])
            body = {"moved": tally[event.episode], "t_ns": seen_ns}
            found.append(replace(event, kind=Kind.ITEM_COUNTED, body=body))
    return [replace(event, seq=number) for number, event in enumerate(found, 1)]


def test_the_ranking_by_the_detectors_labels_is_that_of_an_operator_and_of_the_devices(folder: Path) -> None:
    """The paper's robustness check, on simulated episodes: its ranking on the reviewed subset alone was the same, with
    HRT 2 to 5 percentage points apart (PhAIL, as methodology section 2 has it). Here over all episodes: the detector's
    labels against an operator's tally with a reaction time, and against the devices' own truth.
    """
    events = counted(events_of(folder))
    found = {}
    for labels in ("device", "detector", "operator"):
        table = table_from_rows(operations(record_of(events), labels=labels), source=labels)
        result = analyze(table, reference="human", tau=30.0, boot=9, perm=9)
        found[labels] = {arm["arm"]: arm["hrt"] for arm in result["arms"]}
    ranking = {labels: sorted(hrt, key=lambda arm: -hrt[arm]) for labels, hrt in found.items()}
    assert ranking["detector"] == ranking["operator"] == ranking["device"]
    assert found["operator"] != found["device"], "a hand is later than a sensor"
    for labels in ("operator", "device"):
        apart = {arm: abs(found[labels][arm] - found["detector"][arm]) for arm in found[labels]}
        assert max(apart.values()) <= 0.05, (labels, apart)
