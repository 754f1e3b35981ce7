"""A published campaign convinces somebody who has neither the lab nor a reason to trust it."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.json_documents import judged
from support.machine.processes import end_with_parent
from support.runs.campaigns import make_campaign, recorded_with_cameras, unblinded_copy
from support.runs.published import AT, FEW, alone, listed, manifest_of, request, rewrite
from support.runs.recordings import Recordings, digests

from labctl.cli import call
from labctl.errors import InputError, StateError
from labctl.publishing.again import report_again
from labctl.publishing.check import check_published
from labctl.publishing.leaving_out import SALTS
from labctl.publishing.publish import publish


def test_a_stranger_verifies_a_folder_and_makes_its_report_again_byte_for_byte(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "download")
    before = digests(folder)
    said = alone(["verify", "./download"], tmp_path)
    assert said.returncode == 0, said.stderr
    assert "trial-run: holds (" in said.stdout and "unchecked: not checked against an outside head" in said.stdout
    made = alone(["report", "download", "--out", "again"], tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1] == "byte for byte the published report"
    assert digests(folder) == before, "whoever reads a published folder writes nothing into it"


def test_the_same_campaign_is_published_with_the_same_bytes(
    recordings: Recordings, whole: Path, tmp_path: Path
) -> None:
    lab = whole.parent
    made = publish(lab / "campaigns" / "trial-run", tmp_path / "again", request())
    assert digests(made.folder) == digests(whole)


def test_what_is_withheld_is_left_out_under_a_salted_digest_and_the_chain_holds(without: Path) -> None:
    lab, entries = without.parent, manifest_of(without)["withheld"]
    assert {one["what"] for one in entries} == {"video", "side file", "photo"}
    salts = json.loads((lab / "campaigns/trial-run" / SALTS).read_text())
    for one in entries:
        content = (lab / AT / one["file"]).read_bytes()
        assert not (without / AT / one["file"]).exists()
        assert hashlib.sha256(bytes.fromhex(salts[one["file"]]) + content).hexdigest() == one["salted"]
        assert all(path.read_bytes() != content for path in without.rglob("*") if path.is_file()), "nor as a copy"
    checked = check_published(without)
    assert checked.problems == [] and len(checked.withheld) == len(entries)
    assert all("a visitor" in line for line in checked.withheld)
    episode = entries[0]["episode"]
    report = (without / "report/report.md").read_text()
    assert f"withheld when this was published, pictures of {episode}: a visitor" in report
    assert not list((without / "report").rglob(f"*{episode}*.mp4"))


def test_samples_of_episodes_that_are_not_chosen_stay_in_the_lab(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unblinded_copy(tmp_path / "lab", str(recordings.of(recorded_with_cameras)))
    one, other = sorted(path.name for path in (folder / "video").iterdir())
    words = ["publish", str(folder), "--licence", "CC0-1.0", "--episode", one, "--out", str(tmp_path / "p")]
    assert call([*words, "--boot", str(FEW), "--perm", str(FEW), "--json"]) == 0
    assert judged(capsys.readouterr().out)["schema"] == "labctl.published_made/1"
    data = b"".join(path.read_bytes() for path in (tmp_path / "p").rglob("*.db"))
    assert data.count(one.encode()) > data.count(other.encode()) > 0, "the journal speaks of both"
    checked = check_published(tmp_path / "p")
    assert checked.problems == [] and checked.counts.recordings == 1
    assert report_again(tmp_path / "p", tmp_path / "r").same
    assert len((tmp_path / "p/tables/episodes.csv").read_text().splitlines()) == 3, "outcomes are there of all"


def test_a_campaign_that_is_sealed_or_has_no_licence_is_not_published(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blinded = recordings.of(recorded_with_cameras)
    with pytest.raises(StateError, match="what would be published is sealed"):
        publish(blinded, tmp_path / "p", request())
    assert call(["publish", str(blinded), "--out", str(tmp_path / "p")]) == 2
    assert call(["publish", str(blinded), "--out", str(tmp_path / "p"), "--licence", "mine"]) == 2
    assert "no licence known here and no file; name one of Apache-2.0" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_publication_takes_no_place_of_anything_else(whole: Path, tmp_path: Path) -> None:
    campaign = whole.parent / "campaigns/trial-run"
    (tmp_path / "p").mkdir()
    (tmp_path / "p/thesis.tex").touch()
    for place, why in (
        (tmp_path / "p", "nothing that labctl published"),
        (campaign / "p", "the campaign's own folder"),
        (Path(), "the folder that labctl runs in"),
    ):
        with pytest.raises(InputError, match=why):
            publish(campaign, place, request(force=True))
    with pytest.raises(InputError, match="replace it with --force"):
        publish(campaign, whole, request())


def test_an_archive_takes_the_place_of_nothing_else(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign, out = recordings.of(sealed_small), tmp_path / "p"
    beside = tmp_path / "p.zip"
    words = ["publish", str(campaign), "--licence", "CC0-1.0", "--out", str(out), "--archive", "--boot", "9"]
    beside.write_bytes(b"my own other data")
    for more in ([], ["--force"]):
        assert call([*words, *more]) == 2
        assert "p.zip is there and is nothing that labctl published" in capsys.readouterr().err
        assert beside.read_bytes() == b"my own other data" and not out.exists(), "it is refused before work begins"
    beside.unlink()
    beside.symlink_to(tmp_path / "elsewhere")
    assert call([*words, "--force"]) == 2 and not (tmp_path / "elsewhere").exists()
    beside.unlink()
    assert call(words) == 0
    before = beside.read_bytes()
    shutil.rmtree(out)
    assert call(words) == 2 and "replace it with --force" in capsys.readouterr().err
    assert call([*words, "--force"]) == 0 and beside.read_bytes() == before


STEPS = {
    "the record is copied": "labctl.publishing.publish.write_tables",
    "the tables are written": "labctl.publishing.publish.made_report",
    "the report is made": "labctl.publishing.publish.write_cards",
    "all is written but the manifest": "labctl.publishing.publish.manifest_bytes",
    "the manifest is written": "labctl.publishing.publish.free_texts",
}
KILLED = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
from labctl.publishing.publish import Request, publish
with patch(sys.argv[3], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)):
    publish(Path(sys.argv[1]), Path(sys.argv[2]), Request("CC0-1.0", boot=9, perm=9))
"""


def sealed_small(lab: Path) -> Path:
    """A campaign that nobody ran a trial of, unblinded: the quickest that can be published."""
    from support.runs.campaigns import HUMAN, policy, run_campaign, unblind

    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], items=1, budget=4.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


@pytest.mark.parametrize(
    "step", [pytest.param(one, marks=pytest.mark.thorough if n in (1, 2) else ()) for n, one in enumerate(STEPS)]
)
def test_a_publication_that_was_killed_verifies_as_nothing_and_is_made_again(
    step: str, recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign, out = recordings.of(sealed_small), tmp_path / "p"
    words = [sys.executable, "-c", KILLED, str(campaign), str(out), STEPS[step]]
    done = subprocess.run(words, capture_output=True, preexec_fn=end_with_parent)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not out.exists()
    (left,) = tmp_path.iterdir()
    if step != "the manifest is written":
        assert call(["verify", str(left)]) == 2
        assert "is no published folder" in capsys.readouterr().err
    else:
        assert call(["verify", str(left)]) == 0, "what has its manifest is whole, wherever it lies"
    if step == "the record is copied":
        publish(campaign, out, request())
        assert [path.name for path in tmp_path.iterdir()] == ["p"] and not check_published(out).problems


def test_a_head_noted_elsewhere_binds_a_published_folder(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = manifest_of(whole)
    assert call(["verify", str(whole), "--head", manifest["head"], "--commitment", manifest["commitment"]]) == 0
    assert "bound by the outside head" in (said := capsys.readouterr().out)
    assert "not checked against" not in said
    assert call(["verify", str(whole), "--head", f"3:{'0' * 64}", "--json"]) == 1
    assert judged(capsys.readouterr().out)["problems"][0]["what"] == "head not in chain"


def test_a_report_that_is_not_the_records_is_said_to_be_another(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A publisher who writes another number into the report, and lists it, is found by whoever makes it again."""
    folder = shutil.copytree(whole, tmp_path / "p")
    report = folder / "report/report.json"
    document = json.loads(report.read_text())
    document["result"]["arms"][0]["rmst"] += 0.5
    report.write_text(json.dumps(document))
    listed(folder, "report/report.json")
    again = report_again(folder, tmp_path / "r")
    assert not again.same and again.numbers[0].startswith("result.arms[0].rmst: published ")
    assert call(["report", str(folder), "--out", str(tmp_path / "r"), "--json"]) == 1
    assert judged(capsys.readouterr().out)["numbers"] == list(again.numbers)


def test_other_versions_are_named_and_the_same_numbers_are_no_fault(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "p")
    page = folder / "report/report.html"
    page.write_text(page.read_text() + "<!-- drawn by another version -->")
    document = json.loads((folder / "report/report.json").read_text())
    document["result"]["arms"][0]["rmst"] *= 1 + 1e-13
    (folder / "report/report.json").write_text(json.dumps(document))
    listed(folder, "report/report.html", "report/report.json")
    rewrite(folder, lambda m: m["versions"].update(numpy="1.0"))
    again = report_again(folder, tmp_path / "r")
    assert again.numbers == () and again.words.startswith("the same numbers (to 1e-13 of each), other bytes in 2 files")
    assert "not compared: report.html; other versions here: numpy 1.0 then" in again.words
