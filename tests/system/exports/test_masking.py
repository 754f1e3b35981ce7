"""What exports hide: everything that depends on the arm before unblinding, every other arm with --for-arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.runs.campaigns import unblinded_copy
from support.runs.coded_campaign import PERSON, QUAGGA, ZEBRA, run_coded
from support.runs.recordings import Recordings as Recorded
from support.screens.all_text import all_text, hits

from labctl.cli import call
from labctl.core.events import Kind
from labctl.exports.recordings import Recordings
from labctl.exports.selection import select
from labctl.store.campaign import Campaign

FORMATS = ["table", "episodes", "parquet", "mcap", "lerobot-v3", "lerobot-v2.1", "rrd", "rosbag2", "npz"]
ENDPOINTS = [
    "zebra-endpoint",
    "quagga-endpoint",
    "0.0731862",
    "0.0917743",
    "swift",
    "clumsy",
    "sim_policy",
    "sim_person",
]
PRIVATE = ["request_ns", "reply_ns", "requested", "limited", "arm/action", "arm_action", "policy"]


@pytest.fixture(scope="module")
def blinded(recordings: Recorded) -> Path:
    """One block of short episodes: what is looked for stands in each."""
    return recordings.of(run_coded, blocks=1, items=1, budget=6.0)


@pytest.fixture(scope="module")
def unblinded(recordings: Recorded, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))


def export(folder: Path, form: str, out: Path, *words: str) -> Path:
    target = out / ("table.csv" if form in ("table", "episodes") else "out")
    assert call(["export", str(folder), "--to", form, "--out", str(target), *words]) == 0
    return target


@pytest.mark.parametrize(
    "form", ["parquet", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("mcap", "rrd", "rosbag2"))]
)
def test_the_search_looks_into_what_is_compressed(unblinded: Path, tmp_path: Path, form: str) -> None:
    """A control: what the other tests look for is found where it may be."""
    out = export(unblinded, form, tmp_path)
    words = [ZEBRA, QUAGGA, "requested", "policy" if form == "rrd" else "request_ns"]
    assert {word for where, word in hits(out, words) if "(decoded)" in where} == set(words)


@pytest.mark.parametrize("form", FORMATS)
def test_before_unblinding_nothing_tells_arms_apart(blinded: Path, tmp_path: Path, form: str) -> None:
    """The campaign is named after two of its arms, which is no secret; which episode is whose is."""
    out = export(blinded, form, tmp_path, *(["--action", "measured"] if form.startswith("lerobot") else []))
    assert len(all_text(out)) >= 2
    names = [f"{QUAGGA}", f"{ZEBRA}", f'"{PERSON}"']
    assert hits(out, [*names, *ENDPOINTS, *PRIVATE]) == []
    if form == "npz":
        columns = np.load(next(out.glob("*.npz")))["columns"].tolist()
        assert "q.fr3_joint1" in columns and not [name for name in columns if name.startswith(("dq.", "tau."))]
    if form == "parquet":
        shown = pq.read_schema(out / "streams/arm_state.parquet").names
        assert "q.fr3_joint1" in shown and not [name for name in shown if name.startswith(("dq.", "tau."))]
        assert "arm" not in pq.read_schema(out / "operations.parquet").names
        assert "arm" not in pq.read_schema(out / "episodes.parquet").names
        assert sorted(path.stem for path in (out / "streams").iterdir()) == [
            "arm_state",
            "camera_over_shoulder",
            "camera_wrist",
            "tracker",
        ]


@pytest.mark.parametrize("form", FORMATS)
def test_for_one_arm_before_unblinding_is_refused_with_what_to_do(
    blinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    words = ["export", str(blinded), "--to", form, "--out", str(tmp_path / "out"), "--for-arm", ZEBRA]
    assert call(words) == 1
    assert "close, review, freeze and unblind it first" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_filter_by_arm_before_unblinding_is_refused_too(
    blinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", str(blinded), "--to", "table", "--out", str(tmp_path / "t.csv"), "--where", f"arm={ZEBRA}"]
    assert call(words) == 2
    assert "no arm column before unblinding" in capsys.readouterr().err


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("arm", [ZEBRA, pytest.param(PERSON, marks=pytest.mark.thorough)])
def test_for_one_arm_no_other_is_named(unblinded: Path, tmp_path: Path, form: str, arm: str) -> None:
    out = export(unblinded, form, tmp_path, "--for-arm", arm)
    with Campaign.open(unblinded) as campaign:
        slots = next(e.body for e in campaign.events() if e.kind == Kind.CAMPAIGN_UNBLINDED)["schedule"]
        theirs = {slot["trial"] for slot in slots if slot["arm"] != arm}
        hidden = [episode for trial in theirs for episode in campaign.state.trials[trial].episodes]
    others = {ZEBRA, QUAGGA} - {arm}
    assert len(theirs) == len(hidden) == 2
    assert hits(out, [*others, *theirs, *hidden, *ENDPOINTS[:2]]) == []
    if form != "npz":
        assert hits(out, [arm])
    if form in ("table", "parquet"):
        assert hits(out, ["other-1"]) and hits(out, ["other-2"])


def test_the_people_of_an_arm_can_still_pair(unblinded: Path, tmp_path: Path) -> None:
    """The masked table has every row, block and time of the whole one; the others' names are drawn for each arm."""
    whole = pq.read_table(export(unblinded, "parquet", tmp_path / "all") / "operations.parquet").to_pylist()
    labels = {}
    for arm in (ZEBRA, QUAGGA, PERSON):
        out = export(unblinded, "parquet", tmp_path / arm, "--for-arm", arm)
        rows = pq.read_table(out / "operations.parquet").to_pylist()
        same = ["object", "kind", "time_s", "block", "op_index", "end_s", "cause"]
        assert [[row[key] for key in same] for row in rows] == [[row[key] for key in same] for row in whole]
        labels[arm] = {(was["arm"], row["arm"]) for was, row in zip(whole, rows, strict=True)}
        assert (arm, arm) in labels[arm] and len(labels[arm]) == 3
        assert {row["episode"] for row in rows if row["arm"] == arm} <= {row["episode"] for row in whole}
        assert pq.read_table(out / "episodes.parquet")["arm"].unique().to_pylist() == [arm]


def test_the_room_that_an_export_asks_for_is_of_what_it_shows(blinded: Path) -> None:
    """How much there is of a hidden stream tells how often a policy was asked."""
    with Campaign.open(blinded) as campaign, Recordings(campaign, select(campaign)) as recordings:
        seen = [recordings.of(chosen, pictured=False) for chosen in recordings.selection.episodes]
        shown = [(recording.read(spec.name)[0], spec.columns) for recording in seen for spec in recording.specs]
        assert recordings.stored_bytes()[0] == sum(8 * len(t_ns) * (len(columns) + 2) for t_ns, columns in shown)
