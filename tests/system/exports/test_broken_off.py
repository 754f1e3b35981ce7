"""An export that was killed or broken off leaves nothing at its place, and the same command makes of what it left what
it would have been.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labctl.cli.export import drawing
from labctl.exports.writing import FORMATS, TABLES, Grid, Request, export_campaign

FOLDERS = [name for name in FORMATS if name not in TABLES]
NOBODY = 2**22 + 1  # no process has this number


def request(form: str, out: Path) -> Request:
    grid = Grid(fps=10, max_error_ms=1000.0) if form.startswith("lerobot") else Grid()
    return Request(form, out, views=drawing, grid=grid)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Killed(BaseException):
    """Of the process, in the middle of its work."""


QUICK = ("npz", "rrd")  # what the others leave is what these do, and they take far longer


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[] if form in QUICK else [pytest.mark.thorough]) for form in FOLDERS]
)
def test_what_a_killed_export_left_is_gone_on_with(form: str, unblinded: Path, tmp_path: Path) -> None:
    export_campaign(unblinded, request(form, tmp_path / "whole"), lambda line: None)
    out, said = tmp_path / "out", list[str]()

    def kill(line: str) -> None:
        if not line.startswith("2/"):
            return
        (building,) = tmp_path.glob(".out.*.part")
        left = tmp_path / f".out.{NOBODY}.part"
        shutil.copytree(building, left)
        for path in left.rglob("*"):  # what nobody called finished may be half of what it was to be
            if path.is_file() and path.suffix in (".parquet", ".mcap", ".mp4", ".rrd", ".npz"):
                finished = left / ".done" / (str(path.relative_to(left)).replace("/", "+") + ".json")
                if not finished.is_file():
                    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        raise Killed

    with pytest.raises(Killed):
        export_campaign(unblinded, request(form, out), kill)
    assert [path.name for path in tmp_path.iterdir() if path.name != "whole"] == [f".out.{NOBODY}.part"]
    export_campaign(unblinded, request(form, out), said.append)
    assert any("going on with" in line for line in said)
    made, whole = content(out), content(tmp_path / "whole")
    if form == "rrd":  # rerun numbers its chunks anew in each file
        made, whole = {name: b"" for name in made}, {name: b"" for name in whole}
    assert made == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


@pytest.mark.parametrize("form", ["parquet", pytest.param("mcap", marks=pytest.mark.thorough)])
def test_one_that_a_person_breaks_off_says_what_is_kept(form: str, unblinded: Path, tmp_path: Path) -> None:
    said: list[str] = []

    def break_off(line: str) -> None:
        said.append(line)
        if line.startswith("3/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_campaign(unblinded, request(form, tmp_path / "out"), break_off)
    assert "the same command goes on from there" in said[-1] and not (tmp_path / "out").exists()
    written = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob(f".out.*.part/**/*.{form}")}
    export_campaign(unblinded, request(form, tmp_path / "out"), lambda line: None)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob(f"**/*.{form}")}
    assert len(set(written.items()) & set(after.items())) >= 2, "what was whole was not written again"
