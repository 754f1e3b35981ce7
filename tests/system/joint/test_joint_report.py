"""One report of a joint campaign's folders: rows of both cells under each other, claims of these two cells."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.joint.joint_recordings import cell_folders, recorded_cells
from support.runs.recordings import copied

from labctl.cli import call
from labctl.core.event_bodies import OperationRecorded
from labctl.core.events import STOPPED_BY_HAND, Event
from labctl.core.interventions import Intervention
from labctl.core.record import HandStop, Record
from labctl.core.record_fold import record_of
from labctl.core.reviewed import queue
from labctl.core.trial_table import Void
from labctl.errors import InputError
from labctl.people.qualifications import FOLDER, Kind, write_down
from labctl.reporting.cells import report
from labctl.reporting.cells.counts import own_people
from labctl.reporting.cells.parts import parts_named
from labctl.reporting.cells.report import report_cells
from labctl.store.verifying.timestamps import keep


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both cells' folders, which a test writes beside."""
    return cell_folders(recorded_cells(tmp_path_factory.mktemp("joint"), cameras=False))


def test_two_folders_make_one_report_that_is_of_these_two_cells(parts: list[Path], tmp_path: Path) -> None:
    assert call(["report", *map(str, parts), "--out", str(tmp_path / "out"), "--boot", "99", "--perm", "99"]) == 0
    body = json.loads((tmp_path / "out" / "report.json").read_text())
    assert body["result"]["by_cell"]["cells"] == ["a", "b"] and not body["result"]["by_cell"]["sample"]
    assert {one["cell"] for one in body["result"]["by_cell"]["arms"]} == {"a", "b"}
    lab = body["lab"]
    assert (lab["campaign"], lab["cell"], lab["flow"]["planned"], lab["flow"]["scored"]) == ("two", "a, b", 8, 8)
    assert not any("is not in this report" in line for line in lab["deviations"])
    commands = {episode["rrd_command"].replace(episode["episode"], "E") for episode in lab["episodes"]}
    labs = {folder.parents[1] for folder in parts}
    assert commands == {"labctl show E --lab DIR" if len(labs) > 1 else "labctl show E"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("DIR is the lab folder of the episode’s cell." in page) == (len(labs) > 1)
    assert not any(str(lab) in page for lab in labs), "no path of the machine that made it"
    assert "in these two cells" in page.lower() and "nothing here is claimed of another cell" in page
    assert "Cell by cell" in page


def test_what_binds_each_cell_s_chain_and_what_its_lab_opened_stand_beside_its_provenance(
    parts: list[Path], tmp_path: Path
) -> None:
    """As a report of one cell has them: heads noted elsewhere, timestamps, the list of opened campaigns."""
    lab = copied(parts[1].parents[1], tmp_path / "b")
    keep(stamped := lab / "campaigns/two-b", 5, b"an authority's answer")
    page = report_cells([parts[0], stamped], tmp_path / "out", boot=19, perm=19)
    found = json.loads((page.parent / "report.json").read_text())["lab"]["provenance"]
    for cell in "ab":
        assert found[f"{cell}: anchored to"].startswith("not checked against an outside head")
        ((name, became),) = found[f"{cell}: opened by this lab, on its word"].items()
        assert name.startswith(f"two-{cell} (") and became == "this report's"
    assert found["b: timestamps"] == "1 timestamp in timestamps/, unchecked: lab.toml names no [timestamps]"
    assert "a: timestamps" not in found
    assert "not checked against an outside head" in page.read_text() and "1 timestamp in" in page.read_text()


def test_sessions_and_people_of_two_labs_are_not_taken_for_one(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # seen: both labs have a session s-3 and a person sim-operator, who was one person with one session
    found: list[list[dict]] = []
    write = report.write_report
    monkeypatch.setattr(report, "write_report", lambda rows, *given: found.append(rows) or write(rows, *given))
    body = json.loads(report_cells(parts, tmp_path / "out", boot=19, perm=19).with_name("report.json").read_text())
    of = {(row["cell"], row["operator"], row["session"]) for row in found[0]}
    assert of == {("a", "a: sim-operator", "a: s-3"), ("b", "b: sim-operator", "b: s-3")}
    assert [one["session"] for one in body["lab"]["sessions"]] == ["a: s-3", "b: s-3"]


def test_people_who_operated_together_are_each_named_with_their_cell_and_sessions_with_their_part() -> None:
    joint: Any = {"cell": "b", "part": 2}
    (row,) = own_people([{"operator": "p01+p02", "session": "s-1"}], joint)
    assert row == {"operator": "b: p01+b: p02", "session": "b part 2: s-1"}
    (row,) = own_people([{"operator": "p01", "session": None}], joint)
    assert row == {"operator": "b: p01", "session": None}


def test_a_cell_that_is_not_given_is_named(parts: list[Path], tmp_path: Path) -> None:
    page = report_cells(parts[:1], tmp_path / "out", boot=19, perm=19)
    assert "cell b of this campaign is not in this report" in page.read_text()


def test_the_same_part_twice_and_a_stranger_are_refused(parts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="are both part 1 of cell a"):
        report_cells([parts[0], parts[0]], tmp_path / "out")
    assert parts_named([str(parts[0])], None) == [parts[0]]


def test_exports_name_the_cell_in_both_tables(parts: list[Path], tmp_path: Path) -> None:
    for what in ("table", "episodes"):
        out = tmp_path / f"{what}.csv"
        assert call(["export", str(parts[1]), "--to", what, "--out", str(out)]) == 0
        rows = list(csv.DictReader(io.StringIO(out.read_text())))
        assert {row["cell"] for row in rows} == {"b"}


def test_whoever_scored_before_passing_on_common_videos_makes_the_report_provisional(
    parts: list[Path], tmp_path: Path
) -> None:
    lab = parts[1].parents[1]
    write_down(lab, Kind.ASSESSOR, {"person": "p9", "passed": False}, who="lee")
    try:
        page = report_cells(parts, tmp_path / "out", boot=19, perm=19)
        body = json.loads((page.parent / "report.json").read_text())["lab"]
        early = [line for line in body["deviations"] if "before passing the calibration on common videos" in line]
        assert [line.split(" ", 1)[0] for line in early] == ["b:"] and "scored 4 of 4 episodes" in early[0]
        assert body["provisional"] and early[0] in body["provisional_why"]
    finally:
        shutil.rmtree(lab / FOLDER)


COUNTS = {"help": "no_success", "voids": "left_out", "early_ends": "by_reason", "crash": "void"}


def as_counted_otherwise(
    monkeypatch: pytest.MonkeyPatch, estimand: dict[str, str], *, stops: list[str]
) -> list[Record]:
    """The folders read as if, in each cell, people had helped the policy's first episode and stopped its second by
    mistake, the operator had counted a different number in its first, and it had one more episode, voided after go.
    What was read stands in the list once they are.
    """
    found: list[Record] = []

    def read(events: Iterable[Event]) -> Record:
        record = record_of(events)
        opened = replace(record.state, opened={**record.state.opened, "estimand": estimand, "stops_count": stops})
        first, second, *_ = (one for _, one in record.scored if record.arms[one.trial] == "policy-a")
        assert first.go_ns is not None and second.end_ns is not None
        touch = Intervention(1, "reset", "console", first.go_ns, first.go_ns + 1)
        stop: OperationRecorded = {
            "op_index": 9,
            "result": "safety_stop",
            "t_ns": second.end_ns,
            "cause": STOPPED_BY_HAND,
        }
        cell = str(record.state.opened["joint"]["cell"])  # pyright: ignore[reportTypedDictNotRequiredAccess]
        void = Void("camera_lost", after_go=True)
        changed = {
            first.id: replace(first, interventions=(touch,), counts=((7, first.go_ns),)),
            second.id: replace(
                second, stop=HandStop("mistaken_key", "a sleeve", "lee"), operations=(*second.operations, stop)
            ),
            f"void-{cell}": replace(first, id=f"void-{cell}", void=void),
        }
        found.append(replace(record, state=opened, episodes={**record.episodes, **changed}))
        return found[-1]

    monkeypatch.setattr(report, "record_of", read)
    return found


def test_it_counts_as_the_protocol_declares_and_repeats_every_other_way(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = as_counted_otherwise(monkeypatch, COUNTS, stops=[])
    page = report_cells(parts, tmp_path / "out", boot=19, perm=19)
    body, text = json.loads((tmp_path / "out" / "report.json").read_text()), page.read_text()
    assert (body["counting"]["declared"], body["counting"]["counts"]) == (True, COUNTS)
    assert "As the protocol declares, an episode that a person helped counts as no success (policy-a 2)" in text
    assert body["counting"]["affected"]["voids"] == {"policy-a": 2}
    again = {(one["key"], one["value"]) for one in body["counting"]["repeated"]}
    assert {("help", "as_it_went"), ("voids", "no_success")} <= again
    lab = body["lab"]
    disputed = Counter(one.arms[item.trial.id] for one in records for item in queue(one) if item.disagreements)
    assert disputed["policy-a"] >= 2, "one in each cell at least"
    assert (+Counter(lab["disputed"]["by_arm"]), lab["disputed"]["scored"]) == (disputed, 8)
    assert f"In {disputed.total()} of 8 episodes (" in text and "the witnesses disagree with the assessor" in text
    assert "The protocol counts no stop by hand against an arm; 2 stops (mistaken key 2) count as ends" in text
    assert {one["arm"] for one in lab["stops"]["repeated"]["arms"]} == {"human", "policy-a"}
    touched = {one["arm"]: (one["episodes"], one["touched"]) for one in lab["interventions"]}
    assert touched == {"human": (4, 0), "policy-a": (4, 2)}


def test_voids_after_go_in_either_cell_are_counted_again_as_no_success(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_counted_otherwise(monkeypatch, COUNTS, stops=[])
    page = report_cells(parts, tmp_path / "out", boot=19, perm=19)
    again = json.loads((tmp_path / "out" / "report.json").read_text())["lab"]["void_as_failure"]
    assert {one["arm"]: one["staged"] for one in again} == {"human": 4, "policy-a": 6}
    assert "If every void after go had been an episode without success" in page.read_text()
    assert "No episode was voided after go" not in page.read_text()
    as_counted_otherwise(monkeypatch, {**COUNTS, "voids": "no_success"}, stops=[])
    page = report_cells(parts, tmp_path / "out", boot=19, perm=19)
    assert "2 episodes voided after go count as no success already." in page.read_text()


def test_what_its_conditions_trained_its_changed_software_and_its_labels_are_said_as_of_one_campaign(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "trained_with", lambda *_: [("towels/layout-1", "policy-a")])
    monkeypatch.setattr(report, "changes_of_policies", lambda *_: ["the software of policy-a changed"])
    report_cells(parts, tmp_path / "out", boot=19, perm=19)
    lab = json.loads((tmp_path / "out" / "report.json").read_text())["lab"]
    assert lab["trained"] == [{"condition": "towels/layout-1", "arm": "policy-a"}]
    assert lab["notes"].count("condition towels/layout-1 is training data of policy-a, by its policy card") == 1
    assert {"a: the software of policy-a changed", "b: the software of policy-a changed"} <= set(lab["deviations"])
    assert {"a: labels", "b: labels"} <= set(lab["provenance"])
