"""A campaign that an earlier labctl recorded opens, verifies, exports and reports as it did then (tests/campaigns)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import judged
from support.runs.campaigns import unblind
from support.runs.compared import differences
from support.runs.export_contents import contents

from labctl.cli import call

KEPT = Path(__file__).resolve().parents[2] / "campaigns"
RECORDED = sorted(path.name for path in KEPT.iterdir() if path.is_dir())
NO_LIST = "this lab has no list of what it opened (opened.log): what else was tried is not known"
# What a report says otherwise than then, on purpose: throughput at each allowed time is of each cell and no longer of
# an arm, a campaign that was frozen without a review promises none, a count has no "(s)" behind it, and an arm at an
# object is no longer called a cell.
OTHERWISE = (
    *(
        "/supplement/arms[0]/sweep",
        "/supplement/arms[1]/sweep",
        "/lab/provisional_why",
        "/lab/deviations",
        "/result/warnings[0]",
        "/result/warnings[1]",
    ),
    *(f"/lab/provenance/clocks/camera/{name}:" for name in ("over_shoulder", "wrist")),
)


@pytest.fixture(params=RECORDED)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of a recorded campaign, and what its own version made of it."""
    kept = KEPT / request.param
    shutil.copytree(kept / "lab", tmp_path / "lab")
    folder = tmp_path / "lab" / "campaigns" / "old"
    for path in (folder / "seal").iterdir():  # git keeps no such modes, and `verify` notes what others may read
        path.chmod(0o600)
    (folder / "seal").chmod(0o700)
    folder.chmod(0o700)
    return folder, kept / "expected"


def table(folder: Path, out: Path) -> bytes:
    assert call(["export", str(folder), "--to", "table", "--out", str(out)]) == 0
    return out.read_bytes()


def test_it_verifies_and_exports_the_same(
    old: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, expected = old
    assert table(folder, tmp_path / "blind.csv") == (expected / "blind.csv").read_bytes()
    unblind(folder)
    capsys.readouterr()
    assert call(["verify", str(folder), "--json"]) == 0
    then, (now,) = json.loads((expected / "verify.json").read_text()), judged(capsys.readouterr().out)["campaigns"]
    assert now.pop("outside") == {"head": None, "entries": 0, "commitment": None}
    said = [note for note in now["notes"] if note.startswith("not bound by format 1: ")]
    assert len(said) == len(now.pop("not_bound")) == 3, "what their format lacks is said"
    notes = [note for note in now["notes"] if note not in (*said, NO_LIST)]
    assert differences(then, [{**now, "notes": notes}]) == []
    assert table(folder, tmp_path / "open.csv") == (expected / "open.csv").read_bytes()


FORMATS = ("parquet", "mcap", "npz")


def test_it_exports_the_same_streams_events_and_tables(old: tuple[Path, Path], tmp_path: Path) -> None:
    """Blind and after unblinding, each column, topic and array as it was; there may be more of them. Compared is what
    is read back, since the bytes of a file are those of a version of pyarrow or mcap (support.runs.export_contents).
    """
    folder, expected = old
    then: dict[str, dict[str, str]] = json.loads((expected / "exports.json").read_text())
    for state in ("blind", "open"):
        if state == "open":
            unblind(folder)
        for form in FORMATS:
            out = tmp_path / f"{state}-{form}"
            assert call(["export", str(folder), "--to", form, "--out", str(out)]) == 0
            found = differences(then[f"{state} {form}"], contents(out))
            assert [d for d in found if ": None then, " not in d] == []
    assert {*then} == {f"{state} {form}" for state in ("blind", "open") for form in FORMATS}


@pytest.mark.thorough
def test_it_reports_the_same(old: tuple[Path, Path]) -> None:
    folder, expected = old
    unblind(folder)
    report = folder.parents[1] / "report"  # links to videos are relative
    assert call(["report", str(folder), "--out", str(report)]) == 0
    now: Mapping[str, Any] = json.loads((report / "report.json").read_text())
    provenance = now["lab"]["provenance"]
    assert "columns" in provenance.pop("format")["1"], "what their format lacks is said"
    assert "not checked against an outside head" in str(provenance)
    assert now["lab"].pop("abandoned") == []
    then = json.loads((expected / "report.json").read_text())
    found = [d for d in differences(then, now) if ": None then, " not in d]  # a later report says more
    assert [d for d in found if not d.startswith(OTHERWISE)] == []
    assert len(found) == len(OTHERWISE), "each of these is otherwise"


def test_a_difference_is_named() -> None:
    then, now = {"a": [1.0, 2.0], "b": "x", "head": "1"}, {"a": [1.0, 2.1], "b": "y", "head": "2"}
    assert differences(then, now) == ["/a[1]: 2.0 then, 2.1 now", "/b: 'x' then, 'y' now"]
    assert differences({"a": 1.0}, {"a": 1.0 + 1e-12}) == [] and differences({"a": 1}, {}) == ["/a: 1 then, None now"]
