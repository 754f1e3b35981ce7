"""Camera drivers in whole campaigns: every recorded picture is the one that its index names, and gaps tell the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cameras import barcode
from support.cameras.mjpeg import MjpegServer
from support.cameras.recorded_videos import write_video
from support.cameras.software_realsense import SoftRealSense
from support.robots.cells import cell_named, changed
from support.runs.campaigns import ROOT, events_of, make_campaign, policy
from support.runs.live_campaign import CLOCK, end_of, of_kind, running, wait_for

import labctl.runtime.campaign_run
from labctl.clock import SECOND
from labctl.config.cell_schema import CameraTable, Setup
from labctl.core.events import Kind
from labctl.core.trial import State, fold
from labctl.errors import InputError
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.hosting.cell_nodes import load_camera
from labctl.store.lab_folder import read_cell
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign
from labctl.store.video import read_depth, read_frames
from labctl.testing.given import FIXTURE

ARMS = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
SIZE = "width = 320\nheight = 240\nrate_hz = {rate}\n[camera.options]\n"


def camera(name: str, driver: str, rate_hz: float, **options: Any) -> dict[str, str]:
    """What to replace in a simulated cell's file, so that another driver gives this camera's pictures."""
    text = (Path(__file__).parents[3] / "hw_configs" / "sim_fr3.toml").read_text()
    old = (
        next(part for part in text.split("[[camera]]\n") if part.startswith(f'name = "{name}"')).split("\n\n")[0] + "\n"
    )
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
    return {old: f'name = "{name}"\ndriver = "{driver}"\n{SIZE.format(rate=rate_hz)}{lines}'}


class Recorded:
    """The sealed recording of one camera in one episode."""

    def __init__(self, folder: Path, episode: str, name: str, video: dict[str, Any]) -> None:
        store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
        self.t_ns, self.rows = store.read(episode, f"camera/{name}")
        store.close()
        self.number = self.rows[:, 0]
        self.pictures = list(read_frames(folder / video["file"]))
        self.marks = [barcode.read(image) for _, image in self.pictures]
        self.note = json.loads((folder / video["file"]).with_suffix(".json").read_text())
        self.depth = folder / video["depth"]["file"] if "depth" in video else None
        assert len(self.pictures) == len(self.rows) == video["frames"]
        assert [pts for pts, _ in self.pictures] == self.rows[:, 3].tolist()


def recordings(folder: Path) -> Iterator[tuple[str, Recorded]]:
    """Camera and recording of all that was sealed."""
    for event in of_kind(folder, Kind.RECORDING_SEALED):
        for name, video in event.body["videos"].items():
            yield name, Recorded(folder, str(event.episode), name, video)


@pytest.mark.thorough
def test_recordings_stand_in_for_both_cameras_in_simulated_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A film of two minutes and a RealSense recording of nine seconds, which ends in mid-episode and begins anew."""
    monkeypatch.setattr(labctl.runtime.campaign_run, "free_gb", lambda folder: 100.0)
    film = write_video(tmp_path / "film.mp4", [i * 100_000 for i in range(1500)])
    golden = SoftRealSense(rate_hz=10).record(tmp_path / "golden.db3", range(1, 91))
    cell = camera("over_shoulder", "opencv_camera", 10.0, source=str(film))
    cell |= camera("wrist", "realsense", 10.0, file=str(golden))
    folder = make_campaign(tmp_path, ARMS, cameras=True, items=3, budget=8.0, arming=2.0, cell=cell).folder
    run_campaign(folder, lambda line: None, manual=True)
    events = events_of(folder)
    assert {trial.state for trial in fold(events).trials.values()} == {State.SCORED}
    gaps = [event.body for event in events if event.kind == Kind.GAP]
    assert {(gap["stream"], gap["why"].split(": ")[-1]) for gap in gaps} == {
        ("camera/wrist", "it has been played to its end")
    }
    seen = 0
    for name, recorded in recordings(folder):
        assert [mark.number for mark in recorded.marks] == recorded.number.tolist()
        assert recorded.note["kind"] == "replay"
        seen += len(recorded.pictures)
        if name == "wrist":
            assert recorded.note["about"]["model"] == "Soft D435" and recorded.depth is not None
            assert (recorded.rows[:, 5] >= 0).all() and len(list(read_depth(recorded.depth))) == len(recorded.rows)
        else:
            assert np.diff(recorded.number).tolist() == [1] * (len(recorded.number) - 1)
            assert np.diff(recorded.t_ns).tolist() == [SECOND // 10] * (len(recorded.number) - 1)
    assert seen > 100
    assert verify_campaign(folder).problems == []


@pytest.mark.thorough
@pytest.mark.real_time
def test_a_stream_and_a_realsense_camera_are_recorded_picture_by_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real time, each in its process. Once the stream stalls for three seconds: a gap, and it goes on."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    with MjpegServer(320, 240, 30.0) as server:
        cell = camera("over_shoulder", "opencv_camera", 30.0, source=server.url)
        cell |= camera("wrist", "support.cameras.realsense_driver:build", 30.0)
        opened = make_campaign(tmp_path, ARMS, cameras=True, live=True, items=1, budget=9.0, cell=cell)
        folder, log = opened.folder, tmp_path / "run.log"
        with running(folder, log) as run:
            went = wait_for("go", lambda: of_kind(folder, Kind.GO))
            assert isinstance(went, list)
            CLOCK.sleep_until(went[0].body["go_ns"] + SECOND)
            server.fault = "stall"
            CLOCK.sleep_until(CLOCK.now_ns() + 3 * SECOND)
            server.fault = ""
            wait_for("its outcome", lambda: of_kind(folder, Kind.OUTCOME_RECORDED))
            run.terminate()
            assert end_of(run) == 0, log.read_text()
    gaps = [event.body for event in of_kind(folder, Kind.GAP) if event.body["stream"] == "camera/over_shoulder"]
    (stalled,) = [gap for gap in gaps if "no picture" in gap["why"]]
    assert 2.5 < (stalled["to_ns"] - stalled["from_ns"]) / SECOND < 9
    holes = 0
    for name, recorded in recordings(folder):
        assert None not in recorded.marks and recorded.note["kind"] == "real"
        marks = np.array([mark.number for mark in recorded.marks])
        sent = marks[-1] - marks[0] + 1
        if name == "wrist":
            assert np.array_equal(marks, recorded.number)
            assert recorded.note["clock_domains"] == ["global_time"] and recorded.depth is not None
        else:
            late_ms = (recorded.rows[:, 2] - np.array([mark.t_ns for mark in recorded.marks])) / 1e6
            assert late_ms.min() > 0 and np.median(late_ms) < 50, "stamped on receipt, soon after it was sent"
            together = np.diff(recorded.t_ns) < 2 * SECOND
            holes += len(together) - together.sum()
            assert np.array_equal(np.diff(marks)[together], np.diff(recorded.number)[together])
            sent = np.diff(marks)[together].sum() + 1
        assert len(marks) > max(sent / 2, 30), "most of what was sent"
    assert holes == 1, "where the stream was lost"
    assert verify_campaign(folder).problems == []


def in_a_cell(kind: str) -> Setup:
    return Setup(cell=changed(cell_named("sim_fr3"), {"cell": {"kind": kind, "clock": None}}), fixture=FIXTURE)


def test_a_real_cell_takes_no_stand_in_for_a_camera(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4", [0, 100_000])
    size = {"width": 320, "height": 240, "rate_hz": 10.0}
    played = CameraTable(name="wrist", driver="opencv_camera", **size, options={"source": str(film)})
    for kind in ("sim", "replay", "emulated"):
        assert load_camera(played, in_a_cell(kind)).kind == "replay"
    with pytest.raises(InputError, match="camera 'wrist': opencv_camera is replay with these options"):
        load_camera(played, in_a_cell("real"))
    live = played.model_copy(update={"options": {"source": "http://127.0.0.1:9/"}})
    assert load_camera(live, in_a_cell("real")).kind == "real"


@pytest.mark.parametrize("path", sorted((ROOT / "hw_configs").glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_cell_has_the_cameras_of_its_kind(path: Path) -> None:
    cell = read_cell(path)
    made = [load_camera(table, Setup(cell=cell, fixture=FIXTURE)) for table in cell.camera]
    assert [table.name for table in cell.camera][:2] == ["over_shoulder", "wrist"]
    assert {camera.kind for camera in made} == {"real" if cell.kind == "real" else "sim"}
