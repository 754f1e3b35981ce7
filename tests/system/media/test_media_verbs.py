"""`labctl media` as typed: its documents, its exit codes, and what each verb says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.json_documents import judged
from support.media.campaigns import blind_lab, folder_store, media_of, name_store, open_lab, videos
from support.runs.recordings import Recordings

from labctl.cli import call


def test_every_verb_of_media_prints_its_document(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    folder_store(folder, tmp_path / "store", "keep_days = 0")
    at = ["--lab", str(tmp_path / "lab"), "--json"]
    number = len(media_of(folder).files)

    def typed(*words: str, code: int = 0) -> dict[str, object]:
        assert call(["media", *words, *at]) == code
        return judged(capsys.readouterr().out, "media/1")

    listed = typed("list", folder.name)["campaigns"][0]["files"]  # type: ignore[index]
    assert {one["where"] for one in listed} == {"here"} and len(listed) == number
    sent = typed("upload")["campaigns"][0]  # type: ignore[index]
    assert sent["sent"] == sent["stored"] == number and sent["broken"] == sent["gone"] == []
    assert typed("check", folder.name)["campaigns"][0]["ok"]  # type: ignore[index]
    dry = typed("trim", "--dry-run")["campaigns"][0]  # type: ignore[index]
    assert dry["dry_run"] and len(dry["files"]) == len(videos(folder))
    gone = typed("trim")["campaigns"][0]["files"]  # type: ignore[index]
    assert sorted(gone) == sorted(dry["files"]) and not videos(folder)
    assert {one["where"] for one in typed("list")["campaigns"][0]["files"]} == {"both", "store"}  # type: ignore[index]
    assert len(typed("fetch", folder.name)["files"]) == len(gone)  # type: ignore[arg-type]
    for path in (tmp_path / "store/sha256").iterdir():
        shutil.rmtree(path)
    assert not typed("check", code=1)["campaigns"][0]["ok"]  # type: ignore[index]


def test_what_cannot_be_is_one_line_with_its_exit_code(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    at = ["--lab", str(tmp_path / "lab")]

    def refused(words: list[str], code: int, said: str) -> None:
        assert call(["media", *words, *at]) == code
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1 and "Traceback" not in told

    refused(["upload"], 2, "no media store is named")
    name_store(folder, f"file://{tmp_path / 'nowhere'}")
    refused(["upload"], 69, "is its disk mounted?")
    folder_store(folder, tmp_path / "store")
    refused(["trim", folder.name], 2, "give --older-than DAYS")
    refused(["trim", folder.name, "--older-than", "0"], 1, "neither frozen nor unblinded")
    (folder.parent.parent / "lab.toml").write_text('[media]\nurl = "s3://key:hush-99@bucket"\n')
    refused(["upload"], 2, "the media store is file:///FOLDER or s3://BUCKET/PREFIX")


def test_a_list_says_in_words_where_each_file_is(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    folder_store(folder, tmp_path / "store", 'after = "closing"')
    at = ["--lab", str(tmp_path / "lab")]
    assert call(["media", "upload", *at]) == 0
    assert "may not leave yet" in capsys.readouterr().out
    assert call(["media", "list", *at]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].endswith("here alone  (may not leave yet)") and told[-1].endswith("here alone")


@pytest.mark.thorough
def test_report_export_and_publication_of_a_campaign_whose_videos_are_elsewhere_are_as_before(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same clips and as large a bag, and a folder that `labctl verify` holds; without the store each says why."""
    folder = open_lab(recordings, tmp_path / "lab")
    folder_store(folder, tmp_path / "store", "keep_days = 0")
    at = ["--lab", str(tmp_path / "lab")]

    def made(name: str) -> tuple[dict[str, bytes], bytes]:
        out = tmp_path / name
        assert call(["report", folder.name, "--out", str(out / "report"), "--boot", "9", "--perm", "19", *at]) == 0
        assert call(["export", folder.name, "--to", "mcap", "--out", str(out / "bags"), *at]) == 0
        bags = b"".join(path.read_bytes() for path in sorted((out / "bags").glob("*.mcap")))
        return {path.name: path.read_bytes() for path in (out / "report").rglob("*.mp4")}, bags

    before = made("before")
    assert call(["media", "upload", *at]) == call(["media", "trim", *at]) == 0 and not videos(folder)
    after = made("after")
    assert after[0] == before[0] != {}
    assert abs(len(after[1]) - len(before[1])) < 500 < len(before[1]), "a bag names the journal's head, which has moved"
    words = ["publish", folder.name, "--licence", "CC0-1.0", "--out", str(tmp_path / "published"), *at]
    assert call(words) == 0 and call(["verify", str(tmp_path / "published"), *at]) == 0
    assert list((tmp_path / "published").rglob("*.mp4"))
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "store").rename(tmp_path / "unplugged")
    capsys.readouterr()
    assert call(["export", folder.name, "--to", "mcap", "--out", str(tmp_path / "none"), *at]) == 69
    told = capsys.readouterr().err
    assert "is its disk mounted" in told and "Traceback" not in told
    assert call(["report", folder.name, "--out", str(tmp_path / "none-2"), "--boot", "9", "--perm", "19", *at]) == 0
