"""One report of a joint campaign's folders: rows of both cells under each other, claims of these two cells."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from support.joint.joint_recordings import cell_folders, recorded_cells

from labctl.cli import call
from labctl.errors import InputError
from labctl.people.qualifications import FOLDER, Kind, write_down
from labctl.reporting.cells.parts import parts_named
from labctl.reporting.cells.report import report_cells


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
