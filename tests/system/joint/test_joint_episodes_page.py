"""Episodes of a joint campaign on one page: each row with its cell and its videos, each cell as blind as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.joint.joint_recordings import BLIND, CELLS, cell_folders, recorded_cells
from support.media.campaigns import folder_store, uploaded
from support.runs.recordings import Recordings, copied

from labctl.analysis.report.report_folder import check_folder
from labctl.cli import call
from labctl.errors import ReportError
from labctl.pages.episodes import page_files
from labctl.reporting.cells.report import report_cells
from labctl.store.campaign import Campaign
from labctl.store.media.trimming import trim

OPEN = ("policy-a", "human", "nothing moved", "Outcome", "Moved", "Seconds", "Reviewed")


@pytest.fixture(scope="module")
def first(recordings: Recordings) -> Path:
    """The first cell's folder of a filmed joint campaign; see `cell_folders`."""
    return recordings.of(recorded_cells, cameras=True)


@pytest.fixture(scope="module")
def report(first: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the report of both cells."""
    return report_cells(cell_folders(first), tmp_path_factory.mktemp("report") / "out", boot=19, perm=19).parent


def text_of(page: Path) -> str:
    """What is written on a page, without its style and script."""
    return re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", page.read_text("utf-8"))


def rows_of(page: Path) -> dict[str, list[str]]:
    """The rows of a page, by their cell."""
    found: dict[str, list[str]] = {}
    for row in re.findall(r"<tr data-.*?</tr>", text_of(page), re.DOTALL):
        found.setdefault(re.findall('data-label="Cell" data-value="([^"]*)"', row)[0], []).append(row)
    return found


def written(where: Path, *words: str) -> Path:
    """The page that `labctl episodes` wrote."""
    page = where / "p.html"
    assert call(["episodes", *words, "--page", str(page)]) == 0
    return page


def test_clips_are_of_episodes_chosen_among_those_of_both_cells(report: Path) -> None:
    """Each arm has its typical and its worst episode once, cut from the video of the cell that ran it."""
    body = json.loads((report / "report.json").read_text())
    arms, clips = {arm["arm"] for arm in body["result"]["arms"]}, body["lab"]["clips"]
    shown = {(clip["arm"], clip["kind"]) for clip in clips}
    assert len(arms) == 2 and shown >= {(arm, kind) for arm in arms for kind in ("typical", "worst")}
    assert len(shown) == len(clips) and all((report / clip["file"]).stat().st_size > 0 for clip in clips)
    assert "Clips" in (report / "report.html").read_text()


def test_the_report_leads_to_a_page_of_both_cells_with_the_videos_as_they_were_recorded(
    first: Path, report: Path
) -> None:
    assert 'href="episodes.html"' in (report / "report.html").read_text("utf-8")
    rows = rows_of(report / "episodes.html")
    assert {cell: len(own) for cell, own in rows.items()} == {"a": 4, "b": 4}
    assert sum(path.is_file() for path in (report / "episodes").rglob("*")) == 8, "the first camera of each, once"
    for cell, folder in zip(CELLS, cell_folders(first), strict=True):
        with Campaign.open(folder) as campaign:
            record = campaign.record()
        for row in rows[cell]:
            ((source, go_s),) = re.findall(r'data-src="([^"]+)" data-go="([^"]+)"', row)
            place, name = source.removeprefix("episodes/").split("/")
            episode, camera = name.removesuffix(".mp4").rsplit("-", 1)
            entry = record.episodes[episode].videos[camera]
            assert place == cell and (report / source).read_bytes() == (folder / entry["file"]).read_bytes()
            assert float(go_s) == pytest.approx(3.875, abs=0.3), "armed for 4 s, at four pictures a second"
            assert f'data-value="{record.arms[record.episodes[episode].trial]}"' in row


def test_the_page_has_a_choice_of_cells_one_speed_and_asks_nobody(report: Path) -> None:
    text = text_of(report / "episodes.html")
    assert "<h1>two: episodes</h1>" in text and "is not on this page" not in text
    choice = re.findall(r'(?s)<select data-filter="cell">(.*?)</select>', text)
    assert [re.findall(r'<option value="\w+">(.*?)</option>', one) for one in choice] == [["a", "b"]]
    assert 'data-sort="cell"' in text and 'data-filter="campaign"' not in text, "a cell says which campaign it is"
    films = re.findall(r"<video[^>]*>", text)
    assert len(films) == 8 and all("noplaybackrate" in film for film in films)
    assert "Every video at 1× real time, from go" in text
    assert "http:" not in text and "https:" not in text and "default-src 'none'" in text


def test_the_reports_table_of_episodes_names_the_cell_and_leads_to_each_video(report: Path) -> None:
    lab = json.loads((report / "report.json").read_text())["lab"]
    assert [entry["cell"] for entry in lab["episodes"]] == ["a"] * 4 + ["b"] * 4
    assert all((report / video).is_file() for entry in lab["episodes"] for video in entry["video"])
    assert "| Episode | Cell | Arm |" in (report / "report.md").read_text("utf-8")


def test_a_report_with_folders_of_cells_is_replaced_unless_something_else_lies_in_one(
    report: Path, tmp_path: Path
) -> None:
    out = copied(report, tmp_path / "out")
    further = out / "episodes" / "a" / "2"
    further.mkdir()
    check_folder(out)
    (further / "notes.txt").touch()
    with pytest.raises(ReportError, match=r"no report wrote \(episodes/a/2/notes.txt\)"):
        check_folder(out)


def test_a_cell_that_is_blinded_is_masked_beside_one_that_is_not(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = written(tmp_path, *map(str, cell_folders(first, blinded="b")))
    rows, text = rows_of(page), text_of(page)
    assert "two-b: masked, as a blind role may see it. No arm and no outcome of it stands here." in text
    assert [word for word in OPEN[:3] for row in rows["b"] if word in row] == []
    assert sorted(word for word in OPEN[:2] for row in rows["a"] if word in row) == ["human"] * 2 + ["policy-a"] * 2
    empty = [f'data-label="{label}" data-value=""' for label in ("Arm", "Outcome", "Seconds")]
    assert all(one in row for row in rows["b"] for one in empty)
    assert "are not compared" not in text, "cells of one joint campaign are one comparison"
    assert not any(b"policy-a" in path.read_bytes() for path in (tmp_path / "p.videos" / "b").iterdir())


def test_while_both_are_blinded_and_when_that_is_asked_nothing_of_an_arm_is_there(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = written(tmp_path / "blind", *map(str, cell_folders(first, blinded="ab")))
    asked = written(tmp_path / "asked", *map(str, cell_folders(first)), "--masked")
    assert [word for word in OPEN if word in text_of(blind)] == []
    assert "two-a, two-b: masked, as a blind role may see it. No arm and no outcome stands here." in text_of(blind)
    assert blind.read_bytes() == asked.read_bytes(), "after unblinding it shows no more, when that is asked for"
    names = [sorted(str(one.relative_to(page.parent)) for one in page.parent.rglob("*.mp4")) for page in (blind, asked)]
    assert names[0] == names[1] and len(names[0]) == 16, "two cameras of eight episodes"


def test_a_joint_campaign_goes_by_its_own_name_and_the_cell_that_is_not_here_is_named(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = first.parents[1]
    page = written(tmp_path, "two", "--lab", str(lab))
    assert "cell b of two is not on this page: its folder was not given" in text_of(page)
    assert "The same in all: cell a" in text_of(page)
    assert call(["episodes", "three", "--lab", str(lab)]) == 2
    assert "no campaign 'three'" in capsys.readouterr().err


def test_videos_of_a_cell_that_a_store_alone_has_are_said_in_its_rows(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = cell_folders(first)
    folder = copied(two[1].parents[1], tmp_path / "b") / "campaigns" / two[1].name
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    trim(folder, store, table, 0.0, who="p01")
    (tmp_path / "store").rename(tmp_path / "unplugged")
    page = written(tmp_path, str(two[0]), str(folder))
    rows = rows_of(page)
    assert all("no video: it is in a media store alone" in row for row in rows["b"])
    assert all("<video" in row and "no video" not in row for row in rows["a"])
    assert "is its disk mounted" in text_of(page)


def test_recordings_that_are_withheld_are_said_in_the_rows_of_their_cell(first: Path, tmp_path: Path) -> None:
    two = cell_folders(first)
    withheld: dict[str, str] = {}
    for folder in two:  # the other lab's ids too: they are of its own episodes
        with Campaign.open(folder) as campaign:
            withheld |= dict.fromkeys(campaign.record().episodes, "people are in the picture")
    files = page_files(two, "p.html", "p.videos", tmp_path, without={two[1]: withheld})
    (tmp_path / "p.html").write_bytes(files["p.html"])
    rows = rows_of(tmp_path / "p.html")
    assert all("no video: people are in the picture" in row for row in rows["b"])
    assert all("no video" not in row for row in rows["a"])
    assert {name.split("/")[1] for name in files if name != "p.html"} == {"a"}


def test_why_no_episode_has_a_video_is_said_once_and_the_column_is_left_out(first: Path, tmp_path: Path) -> None:
    two, why = cell_folders(first), "its pictures are in the publication of its cell"
    withheld: dict[str, str] = {}
    for folder in two:
        with Campaign.open(folder) as campaign:
            withheld |= dict.fromkeys(campaign.record().episodes, why)
    files = page_files(two, "p.html", "p.videos", tmp_path, without=dict.fromkeys(two, withheld))
    (tmp_path / "p.html").write_bytes(files["p.html"])
    text = text_of(tmp_path / "p.html")
    assert text.count(why) == text.count("no video") == 1 and f"no video: {why}</p>" in text
    assert '<th scope="col">Video' not in text and 'class="films"' not in text, "rows keep what differs"
    assert '<strong id="speed" hidden>' in text and "stands at its go" not in text, "there is nothing to play"


def test_a_copy_of_a_blinded_cell_is_what_it_was(first: Path) -> None:
    """What the tests above take for blinded is."""
    for folder in cell_folders(first, blinded="ab"):
        with Campaign.open(folder) as campaign:
            assert BLIND in folder.parts and campaign.record().unblinding is None
