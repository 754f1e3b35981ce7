"""What one report of a joint campaign's folders says of hours, of people and what they judged, and of traces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.joint.joint_recordings import cell_folders, recorded_cells

from labctl.core.events import Event
from labctl.core.outcome import outcome_from
from labctl.core.record import Practice, Record
from labctl.core.record_fold import record_of
from labctl.reporting.cells import report
from labctl.reporting.cells.report import report_cells
from labctl.reporting.judgements import second_assessor
from labctl.reporting.times.hours import hours
from labctl.store.campaign import Campaign


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both cells' folders; only to be read."""
    return cell_folders(recorded_cells(tmp_path_factory.mktemp("joint"), cameras=False))


def reported(parts: list[Path], out: Path) -> tuple[dict[str, Any], str, str]:
    """The report's JSON, and its page as HTML and Markdown."""
    page = report_cells(parts, out, boot=19, perm=19)
    body = json.loads(page.with_name("report.json").read_text())
    return body, page.read_text(), page.with_name("report.md").read_text()


def test_hours_are_those_of_the_cells_and_add_up(parts: list[Path], tmp_path: Path) -> None:
    body, html, markdown = reported(parts, tmp_path / "out")
    each = []
    for folder in parts:
        with Campaign.open(folder) as campaign:
            each.append(hours(campaign.record()))
    found = body["lab"]["hours"]
    assert [line["of"] for line in found["cells"]] == ["a", "b"] and found["campaign"] == "two"
    for line, own in zip(found["cells"], each, strict=True):
        assert {**line, "of": "all"} == json.loads(json.dumps(own["total"]))
    assert found["total"]["total_s"] == pytest.approx(sum(own["total"]["total_s"] for own in each))
    assert (found["total"]["trials"], found["total"]["ran_s"]) == (
        8,
        pytest.approx(sum(o["total"]["ran_s"] for o in each)),
    )
    blocks = [line["of"] for line in found["blocks"] if line["trials"]]
    assert blocks == ["a: 1", "a: 3", "b: 2", "b: 4"], "as the seal host dealt them"
    assert {line["of"] for line in found["operators"] if line["trials"]} == {"a: sim-operator", "b: sim-operator"}
    for page in (html, markdown):
        assert "Where the hours went" in page and "By cell" in page and "Cells may run at once" in page
    assert "| b: sim-operator | 4 |" in markdown


def as_judged(monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """The folders read as if in each cell p07 had practised and eva judged every episode from its video, in cell b the
    first of them otherwise. What was read stands in the list once they are.
    """
    found: list[Record] = []

    def read(events: Iterable[Event]) -> Record:
        record = record_of(events)
        cell = record.state.opened["joint"]["cell"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        changed = {}
        for number, (_, episode) in enumerate(record.scored):
            assert episode.stands is not None
            first = outcome_from(episode.stands)
            other = replace(first, moved=1 - first.moved, lost=0, remaining=first.moved)
            said = other if (cell, number) == ("b", 0) else first
            changed[episode.id] = replace(
                episode, judged=(("eva", said),), judged_against=episode.stands, guesses=(("ann", "human"),)
            )
        body: Any = {"person": "p07", "object": "towels", "moved": 1, "staged": 1}
        seconds = {"a": (60.0, 30.0), "b": (40.0,)}[cell]
        practised = tuple(Practice({**body, "duration_s": s}, frozenset()) for s in seconds)
        found.append(replace(record, episodes={**record.episodes, **changed}, practice=practised))
        return found[-1]

    monkeypatch.setattr(report, "record_of", read)
    return found


def test_practice_and_second_judgements_are_of_each_cell_and_agreement_of_all(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = as_judged(monkeypatch)
    body, html, markdown = reported(parts, tmp_path / "out")
    lab = body["lab"]
    # one item in 60, 30 and 40 s: 60, 120 and 90 an hour
    assert [(one["person"], one["rates"]) for one in lab["practice"]["people"]] == [
        ("a: p07", [60.0, 120.0]), ("b: p07", [90.0])
    ]  # fmt: skip
    found = lab["judgements"]
    (second,) = found["second"]
    assert (second["n"], second["same"], second["disagreements"]) == (8, 7 / 8, 1)
    each = {cell: one["second"][0] for cell, one in found["by_cell"].items()}
    assert {cell: (one["n"], one["same"]) for cell, one in each.items()} == {"a": (4, 1.0), "b": (4, 3 / 4)}
    for record, one in zip(records, each.values(), strict=True):
        assert second_assessor([record]) == [one]
    assert {one["arm"]: (one["said"], one["right"]) for one in found["guesses"]} == {
        "human": (4, 4),
        "policy-a": (4, 0),
    }
    for page in (html, markdown):
        assert "Does a second assessor agree?" in page and "read them cell by cell" in page and "a: p07" in page
    assert "| all | b | items | 4 | 75.0 |" in markdown


def test_learning_and_trends_are_told_of_each_cell(parts: list[Path], tmp_path: Path) -> None:
    body, _, markdown = reported(parts, tmp_path / "out")
    more = body["supplement"]
    assert all([one["cell"] for one in arm["trend_by_cell"]] == [] for arm in more["arms"]), "two blocks are no trend"
    assert "The cells’ blocks stand one after the other; the slope of all is within cells." in markdown


def test_what_is_read_from_traces_is_told_of_each_cell(parts: list[Path], tmp_path: Path) -> None:
    body, _, markdown = reported(parts, tmp_path / "out")
    lab = body["lab"]
    each = {("a", "human"), ("a", "policy-a"), ("b", "human"), ("b", "policy-a")}
    assert {(one["cell"], one["arm"]) for one in lab["answer_times"]} == each
    assert {(one["cell"], one["arm"], one["episodes"]) for one in lab["stress"]["arms"]} == {(*of, 2) for of in each}
    assert {"a: motion lease", "b: motion lease"} <= set(lab["provenance"]), "as of one campaign, with its cell"
    assert "## How fast each arm answered" in markdown and "## Stress measures" in markdown
    assert (tmp_path / "out/figures/stress.csv").read_text().count("\n") == 9, "a head and eight episodes"


def test_a_further_part_of_a_cell_has_a_provenance_of_its_own(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # seen: the rows of part 2 stood in place of those of part 1
    joined, found = report.joined, []
    monkeypatch.setattr(report, "joined", lambda read: found.extend(read) or joined(read))
    reported(parts, tmp_path / "out")
    again = replace(found[0], joint={**found[0].joint, "part": 2})
    lab = joined([found[0], again, found[1]])
    assert {"a: motion lease", "a part 2: motion lease", "b: motion lease"} <= set(lab.get("provenance", {}))
    assert [line["of"] for line in lab.get("hours", {}).get("cells", [])] == ["a", "b"]
    assert {one.get("cell") for one in lab.get("answer_times", [])} == {"a", "a part 2", "b"}
