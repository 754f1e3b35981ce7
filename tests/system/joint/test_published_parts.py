"""Whoever has nothing but the published parts of a joint campaign verifies its seal and makes its one report anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.joint.joint_labs import make_labs
from support.joint.joint_recordings import cell_folders
from support.joint.published_parts import SEAL, parts_of, published_cells, reforged
from support.json_documents import judged
from support.runs.published import FEW, alone, listed, request, rewrite
from support.runs.recordings import Recordings, copied, digests

from labctl.cli import call
from labctl.errors import BrokenRecord, InputError, LabctlError, StateError
from labctl.joint.state import JointKind
from labctl.people.qualifications import FOLDER, Kind, write_down
from labctl.publishing.cells.check import check_together
from labctl.publishing.cells.report import publish_joint, report_together
from labctl.publishing.cells.seal_record import ENTRIES, read_seal_record
from labctl.publishing.leaving_out import Choice
from labctl.publishing.publish import publish
from labctl.publishing.site import make_site
from labctl.reporting.cells.report import report_cells

pytestmark = pytest.mark.usefixtures("no_collector")

Typed = Callable[..., Any]


@pytest.fixture
def out(recordings: Recordings) -> Path:
    """The folder of both published parts and of the seal host's record; only to be read."""
    return recordings.of(published_cells)


@pytest.fixture
def everything(out: Path) -> list[Path]:
    """The three published folders."""
    return [out / SEAL, *parts_of(out)]


@pytest.fixture
def mine(out: Path, tmp_path: Path) -> list[Path]:
    """Copies of them, to spoil."""
    copied(out, tmp_path / "mine")
    return [tmp_path / "mine" / name for name in (SEAL, "two-a", "two-b")]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """A command with --json: its document, judged."""

    def run(*words: object, code: int = 0) -> Any:
        capsys.readouterr()
        left = call([*map(str, words), "--json"])
        told = capsys.readouterr()
        assert left == code, told.err
        return judged(told.out)

    return run


def test_a_stranger_verifies_the_seal_over_all_cells_and_makes_the_one_report_again_byte_for_byte(
    out: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(out, tmp_path / "download")
    before = digests(folder)
    names = [f"download/{name}" for name in ("two-b", "two", "two-a")]
    said = alone(["verify", *names], tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "two: the parts hold together (cells read: a, b; 8 arms given by the seal host, head " in said.stdout
    assert "missing" not in said.stdout
    made = alone(["report", *names, "--out", "again"], tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1] == "byte for byte the published report"
    assert digests(folder) == before, "whoever reads a published folder writes nothing into it"


@pytest.mark.thorough
def test_the_report_of_published_parts_has_the_bytes_of_the_lab_s_own(
    out: Path, everything: list[Path], tmp_path: Path
) -> None:
    folders = cell_folders(out.parent / "a/campaigns/two-a")
    own = report_cells(folders, tmp_path / "own", boot=FEW, perm=FEW).parent
    lab = json.loads((own / "report.json").read_text())["lab"]
    assert [line["trials"] for line in lab["hours"]["cells"]] == [4, 4] and set(lab["judgements"]["by_cell"]) == {
        "a",
        "b",
    }
    for folders_given in (everything, parts_of(out), parts_of(out)[::-1]):
        made = report_together(folders_given, tmp_path / "made")
        assert made.together.missing == [] and digests(made.page.parent) == digests(own)
        shutil.rmtree(tmp_path / "made")


def test_verify_and_report_of_parts_are_documents(everything: list[Path], typed: Typed, tmp_path: Path) -> None:
    found = typed("verify", *everything)
    assert found["ok"] and found["joint"] == "two" and found["cells"] == ["a", "b"] and found["seal_host"]["given"] == 8
    assert [part["campaign"] for part in found["parts"]] == ["two-a", "two-b"]
    made = typed("report", *everything, "--out", tmp_path / "r")
    assert made["same"] is True and made["missing"] == made["notes"] == [] and made["why"] == ""
    head = read_seal_record(everything[0]).events[4]
    bound = typed("verify", *everything, "--head", f"5:{head.hash}", "--commitment", found["commitment"])
    assert "entries 1 to 5 of the seal host's 18 are bound by it" in bound["notes"]
    wrong = typed("verify", *everything, "--head", f"6:{head.hash}", "--commitment", "0" * 32, code=1)
    assert {problem["what"] for problem in wrong["problems"]} == {"another head", "another commitment"}


@pytest.mark.thorough
def test_the_record_of_a_seal_host_is_published_with_the_report_of_the_parts_that_are_there(
    out: Path, typed: Typed, tmp_path: Path
) -> None:
    words = ["--licence", "CC0-1.0", "--boot", FEW, "--perm", FEW, "--lab", out.parent / "host"]
    made = typed("joint", "publish", "two", parts_of(out)[0], "--out", tmp_path / "p", *words)
    assert [part["campaign"] for part in made["parts"]] == ["two-a"]
    assert made["missing"] == ["cell b: its part is not here", "blocks 1, 3 of 4 are of no part that is here"]
    assert all(line in (tmp_path / "p/README.md").read_text() for line in made["missing"])
    page = (tmp_path / "p/report/report.md").read_text()
    assert "cell b of this campaign is not in this report" in page
    assert report_together([tmp_path / "p", parts_of(out)[0]], tmp_path / "r").again is not None
    more = report_together([tmp_path / "p", *parts_of(out)], tmp_path / "r2")
    assert more.again is None and more.why == "not held against the published one: two-b was not in it"


@pytest.mark.thorough
def test_a_part_that_is_not_here_and_what_is_withheld_are_said(
    out: Path, everything: list[Path], tmp_path: Path, recordings: Recordings
) -> None:
    gone = check_together([everything[0], everything[2]])
    assert gone.holds
    assert gone.missing == ["cell a: its part is not here", "blocks 0, 2 of 4 are of no part that is here"]
    report = report_together([everything[0], everything[2]], tmp_path / "r")
    assert report.again is None and "it is of two-a, as published then, which is not here" in report.why
    filmed = cell_folders(recordings.of(published_cells, cameras=True).parent / "a/campaigns/two-a")[0]
    episode = sorted(path.name for path in (filmed / "video").iterdir())[0]
    copy = shutil.copytree(filmed, tmp_path / "lab/campaigns/two-a")
    part = publish(copy, tmp_path / "part", request(choice=Choice(withhold={episode: "a visitor"}))).folder
    found = check_together([part])
    assert any("of what was recorded is withheld, as its manifest lists" in line for line in found.missing)
    text = (report_together([part], tmp_path / "w").page.parent / "report.md").read_text()
    assert f"a: withheld when this was published, pictures of {episode}: a visitor" in text


def test_without_the_seal_host_s_record_what_it_alone_shows_stays_open(out: Path, tmp_path: Path) -> None:
    found = check_together(parts_of(out))
    assert found.holds and any("the seal host's record is not here" in line for line in found.unchecked)
    assert (
        "the seal host's record, which has it, is not among the folders"
        in report_together(parts_of(out), tmp_path / "r").why
    )
    assert call(["verify", *map(str, parts_of(out)), "--head", "5:" + "0" * 20]) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["verify", "report", "site"])
def test_what_is_of_another_campaign_is_refused_in_a_line(
    verb: str, out: Path, recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = recordings.of(published_cells, blocks=2)
    more = [] if verb == "verify" else ["--out", str(tmp_path / "o")]
    pairs = [[out / "two-a", other / "two-b"], [out / SEAL, other / "two-b"], [out / "two-a", out / "two-a"]]
    for pair in pairs:
        assert call([verb, *map(str, pair), *more]) == 2
        said = capsys.readouterr().err.splitlines()
        lines = [line for line in said if line.startswith("error: ")]
        assert len(lines) == 1, said
        wanted = (
            "of another joint campaign",
            "both part 1 of cell a",
            "a site has each name once",
            "seal host's record",
        )
        assert any(words in lines[0] for words in wanted), lines[0]
        assert not (tmp_path / "o").exists()


@pytest.mark.thorough
def test_a_site_has_one_entry_for_a_joint_campaign_and_ranks_no_part_of_it(
    everything: list[Path], tmp_path: Path
) -> None:
    said: list[str] = []
    made = make_site(everything, tmp_path / "site", say=said.append)
    assert [line.partition(" ")[0] for line in said] == ["1/4", "2/4", "3/4", "3/4", "4/4"], "no step is passed over"
    assert "the report of 2 parts" in said[3] and "pages" in said[4]
    assert made.names == ["two"] and made.boards.boards == []
    assert made.boards.apart == {"two": "one campaign in several cells, which is linked to no other"}
    page = made.index.read_text()
    assert "<h1>two: episodes</h1>" in (tmp_path / "site/runs.html").read_text(), "its parts are no campaigns"
    assert page.count("<article>") == 1 and "reports/two/report.html" in page and "reports/two-a/report.html" in page
    assert (tmp_path / "site/feed.xml").read_text().count("<entry>") == 1
    report = json.loads((tmp_path / "site/reports/two/report.json").read_text())
    assert report["result"]["by_cell"]["cells"] == ["a", "b"]
    assert "../" not in json.dumps(report["lab"]["episodes"]), "a site leads to no folder outside it"
    alone_ = make_site(everything[1:2], tmp_path / "one")
    assert alone_.names == ["two"] and "cell b: its part is not here" in alone_.index.read_text()


def test_a_site_of_a_seal_host_s_record_alone_is_refused(everything: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give its published parts too"):
        make_site(everything[:1], tmp_path / "site")
    with pytest.raises(InputError, match="name published parts beside it"):
        report_together(everything[:1], tmp_path / "r")
    assert check_together(everything[:1]).missing[:2] == [
        "cell a: its part is not here",
        "cell b: its part is not here",
    ]


@pytest.mark.thorough
def test_whoever_scored_too_early_by_the_lab_s_journal_stands_in_the_report_of_published_parts(
    out: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(out.parent / "b", tmp_path / "b", ignore=shutil.ignore_patterns(FOLDER))
    write_down(copy, Kind.ASSESSOR, {"person": "p9", "passed": False}, who="lee")
    part = publish(copy / "campaigns/two-b", tmp_path / "part", request()).folder
    own = report_cells([out.parent / "a/campaigns/two-a", copy / "campaigns/two-b"], tmp_path / "own", boot=9, perm=9)
    rewrite(out_copy := copied(out / "two-a", tmp_path / "two-a"), lambda one: one["report"].update(boot=9, perm=9))
    made = report_together([out_copy, part], tmp_path / "made")
    assert "before passing the calibration on common videos" in own.read_text()
    assert digests(made.page.parent) == digests(own.parent)
    assert made.notes and "that of two-b has others" in made.notes[0]


def test_a_campaign_that_is_not_unblinded_is_not_published(out: Path, tmp_path: Path) -> None:
    host = shutil.copytree(out.parent / "host/joint/two", tmp_path / "two")
    with pytest.raises(InputError, match="both part 1 of cell a"):
        publish_joint(host, [parts_of(out)[0]] * 2, tmp_path / "p", request(), "UTC")
    with pytest.raises(InputError, match="is a seal host's record; name the published parts"):
        publish_joint(host, [out / SEAL], tmp_path / "p", request(), "UTC")
    with pytest.raises(
        StateError, match=r"joint campaign two is sealed: unblind it first.*: labctl joint unblind two$"
    ):
        publish_joint(make_labs(tmp_path / "labs").made.folder, parts_of(out), tmp_path / "p", request(), "UTC")
    assert not (tmp_path / "p").exists()


def test_a_seal_host_s_record_that_was_made_anew_disagrees_with_the_parts(mine: list[Path]) -> None:
    seal = mine[0]
    opened = read_seal_record(seal).events[0].body
    blocks = [{**block, "drawn_for": "a"} for block in opened["blocks"]]
    reforged(seal, 1, blocks=blocks)
    found = check_together(mine)
    kinds = {problem.what for problem in found.problems}
    assert {"unbalanced over cells", "not given"} <= kinds and not found.holds
    with pytest.raises(BrokenRecord, match="nothing is shown of it"):
        report_together(mine, seal.parent / "r")


def test_arms_that_were_exchanged_after_the_fact_break_the_commitment(mine: list[Path]) -> None:
    last = read_seal_record(mine[0]).events[-1]
    assert last.kind == JointKind.UNBLINDED
    turned = {"human": "policy-a", "policy-a": "human"}
    schedule = [{**slot, "arm": turned[slot["arm"]]} for slot in last.body["schedule"]]
    reforged(mine[0], last.seq, schedule=schedule)
    assert {problem.what for problem in check_together(mine).problems} == {"broken commitment"}


SPOILT = {
    "no JSON": b"{",
    "deep": b"[" * 200_000,
    "a list": b"[]\n",
    "another first entry": b'{"seq": 1}\n',
    "nothing": b"",
}


@pytest.mark.parametrize("name", SPOILT)
def test_lines_that_are_no_entries_are_refused_in_a_line(name: str, mine: list[Path]) -> None:
    (mine[0] / ENTRIES).write_bytes(SPOILT[name])
    listed(mine[0], ENTRIES)
    with pytest.raises(BrokenRecord, match=ENTRIES):
        check_together(mine)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"blocks": 3}, "lacks what the opening"),
        ({"cells": ["../x", "b"]}, "is no plain name"),
        ({"cells": [["a"], "b"]}, "lacks what the opening"),
        ({"parts": [{}]}, "lacks what the opening"),
    ],
)
def test_an_opening_whose_form_was_tampered_with_is_refused_in_a_line(
    body: dict[str, Any], says: str, mine: list[Path]
) -> None:
    reforged(mine[0], 1, **body)
    with pytest.raises(BrokenRecord, match=says):
        check_together(mine)


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(1, 19))
def test_an_entry_without_its_body_never_passes_and_never_ends_in_a_traceback(number: int, mine: list[Path]) -> None:
    body = read_seal_record(mine[0]).events[number - 1].body
    reforged(mine[0], number, **dict.fromkeys(body))
    try:
        assert not check_together(mine).holds
    except LabctlError as error:
        assert "\n" not in str(error)


def test_files_that_the_record_must_not_have_are_refused(mine: list[Path]) -> None:
    (mine[0] / "journal.db").write_bytes(b"SQLite")
    with pytest.raises(BrokenRecord, match=r"unlisted file: journal\.db"):
        check_together(mine)
    listed(mine[0], "journal.db")
    with pytest.raises(BrokenRecord, match=r"'journal\.db'; a seal host's published record has"):
        check_together(mine)


def test_a_time_of_unblinding_that_the_seal_host_s_journal_does_not_say_is_named(mine: list[Path]) -> None:
    rewrite(mine[0], lambda manifest: manifest.update(frozen="2099-01-01"))
    (problem,) = check_together(mine).problems
    assert problem.detail.startswith("its time of unblinding is 2099-01-01…, the journal's 20")
