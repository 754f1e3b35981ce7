"""What cameras left on disk is sealed as it is there, and each difference from that is named."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from labctl.store.footage import check_files, file_gaps, footage, index_notes
from labctl.store.video import DepthWriter, VideoWriter, count_frames

COLUMNS = ("frame", "host_ns", "pts_us", "depth_ms")


def film(folder: Path, camera: str, frames: int = 20, *, depth: bool = False) -> None:
    path = folder / "video" / "e-1" / f"{camera}.mp4"
    writer = VideoWriter(path, 64, 48)
    deep = DepthWriter(path.with_suffix(".depth.mkv"), 64, 48) if depth else None
    for number in range(frames):
        writer.write(np.full((48, 64, 3), number, np.uint8), number * 100_000)
        if deep:
            deep.write(np.full((48, 64), number, np.uint16), number * 100_000)
    writer.close()
    if deep:
        deep.close()
    path.with_suffix(".json").write_text("{}")


def rows(frames: int, *, depth: bool = False) -> np.ndarray:
    n = np.arange(frames)
    return np.stack([n, n * 10**8, n * 100_000, n * 100 if depth else n * 0 - 1], axis=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    film(tmp_path, "wrist", depth=True)
    film(tmp_path, "front", 10)
    return tmp_path


def test_videos_depth_and_side_files_are_digested_and_counted(folder):
    found = footage(folder, "e-1", ["wrist", "front", "absent"])
    assert found.notes == [] and list(found.videos) == ["wrist", "front"]
    wrist, front = found.videos["wrist"], found.videos["front"]
    assert (wrist["file"], wrist["frames"]) == ("video/e-1/wrist.mp4", 20)
    assert (wrist["depth"]["file"], wrist["depth"]["frames"]) == ("video/e-1/wrist.depth.mkv", 20)
    assert wrist["about"]["file"] == "video/e-1/wrist.json" and "depth" not in front
    for video in (wrist, front):
        assert check_files(folder, video, "e-1") == []


def test_a_torn_video_is_mended_before_it_is_sealed_and_that_is_noted(folder):
    path = folder / "video/e-1/front.mp4"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"moof") + 30])
    found = footage(folder, "e-1", ["front"])
    assert found.notes == [("front", "a half-written header at the end of its video was cut off: 34 bytes")]
    assert 0 < found.videos["front"]["frames"] < 10 and count_frames(path) == found.videos["front"]["frames"]
    assert check_files(folder, found.videos["front"], "e-1") == []


def test_what_is_no_video_is_noted_and_the_rest_is_sealed(folder):
    (folder / "video/e-1/front.mp4").write_bytes(b"")
    (folder / "video/e-1/wrist.depth.mkv").write_bytes(b"scrap")
    found = footage(folder, "e-1", ["wrist", "front"])
    assert list(found.videos) == ["wrist"] and "depth" not in found.videos["wrist"]
    assert [camera for camera, _ in found.notes] == ["wrist", "front"]
    gaps = file_gaps(found, {})
    assert {gap["stream"] for gap in gaps} == {"camera/wrist", "camera/front"} and gaps[0]["lost"] is None


def test_a_file_that_is_no_video_is_bound_by_its_digest_in_the_gap_that_says_why(folder):
    """With what lies beside it, which no video's entry can bind; a depth file that is none by itself."""
    (folder / "video/e-1/front.mp4").write_bytes(b"scrap")
    (folder / "video/e-1/wrist.depth.mkv").write_bytes(b"scrap")
    gaps = {gap["stream"]: gap for gap in file_gaps(footage(folder, "e-1", ["wrist", "front"]), {})}
    scrap = hashlib.sha256(b"scrap").hexdigest()
    assert gaps["camera/wrist"]["files"] == [{"file": "video/e-1/wrist.depth.mkv", "sha256": scrap}]
    assert gaps["camera/front"]["files"] == [
        {"file": "video/e-1/front.mp4", "sha256": scrap},
        {"file": "video/e-1/front.json", "sha256": hashlib.sha256(b"{}").hexdigest()},
    ]
    assert "cannot be read as a video" in gaps["camera/front"]["why"]


def test_frames_that_were_written_and_are_not_there_are_a_gap(folder):
    found = footage(folder, "e-1", ["wrist", "front"])
    assert file_gaps(found, {"wrist": 20, "front": 10}) == []
    (gap,) = file_gaps(found, {"wrist": 20, "front": 13})
    assert (gap["stream"], gap["lost"]) == ("camera/front", 3)


@pytest.mark.parametrize("name", ["wrist.mp4", "wrist.depth.mkv", "wrist.json"])
def test_every_sealed_file_is_checked(folder, name):
    video = footage(folder, "e-1", ["wrist"]).videos["wrist"]
    path = folder / "video/e-1" / name
    path.write_bytes(path.read_bytes() + b"x")
    (problem,) = check_files(folder, video, "e-1")
    assert problem.what.startswith("changed") and name in problem.where
    path.unlink()
    (problem,) = check_files(folder, video, "e-1")
    assert problem.what.startswith("missing") and name in problem.where


def test_an_index_that_agrees_with_its_frames_says_nothing(folder):
    videos = footage(folder, "e-1", ["wrist", "front"]).videos
    assert index_notes(folder, videos["wrist"], COLUMNS, [rows(20, depth=True)]) == []
    assert index_notes(folder, videos["front"], COLUMNS, [rows(10)]) == []
    assert index_notes(folder, videos["front"], COLUMNS[:2], [rows(3)[:, :2]]) == [], (
        "an index without times in the file"
    )


def test_frames_without_a_row_and_rows_without_a_frame_are_said(folder):
    videos = footage(folder, "e-1", ["wrist", "front"]).videos
    assert index_notes(folder, videos["front"], COLUMNS, [rows(7)]) == [
        "not in the index, so that when they were taken is lost: 3 frames of video/e-1/front.mp4"
    ]
    assert index_notes(folder, videos["wrist"], COLUMNS, [rows(22, depth=True)]) == [
        "not in video/e-1/wrist.mp4: 2 frames of the index",
        "not in video/e-1/wrist.depth.mkv: 2 frames of the index",
    ]


def test_what_is_to_be_sealed_is_on_the_disk_and_found_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()))
    footage(folder, "e-1", ["wrist", "front"])
    assert synced == [], "nobody asked for it"
    footage(folder, "e-1", ["wrist", "front"], durable=True)
    videos = folder / "video" / "e-1"
    assert set(synced) == {*videos.iterdir(), videos, videos.parent, folder} and len(synced) == 5 + 3
