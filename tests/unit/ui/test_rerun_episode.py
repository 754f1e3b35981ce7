"""An .rrd holds what was measured at its measured time, and a masked one nothing that tells the experiment's arm."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from labctl.ui.rerun_episode import STAGES, EpisodeView, Stream, Video, save_episode

from labctl.errors import MissingExtra, StorageError
from labctl.video import VideoWriter

pytest.importorskip("rerun")

GO = 7_000_000_000_000
JOINTS = tuple(f"fr3_joint{i}" for i in range(1, 8))
N = 50


def cli() -> Path:
    """The Rerun binary itself: its Python wrapper would leave an orphan behind."""
    import rerun_cli

    return Path(rerun_cli.__file__).parent / "rerun"


def contents(path: Path) -> str:
    """Every entity, component and value of a recording, in words."""
    from rerun.chunk import RrdReader

    chunks = RrdReader(path).stream()
    return "\n".join(f"{chunk.entity_path} {chunk.to_record_batch().to_pydict()}" for chunk in chunks)


@pytest.fixture
def episode(tmp_path) -> EpisodeView:
    t_ns = GO + np.arange(N) * 10_000_000
    poses = tuple(f"tcp.{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    ramp = np.linspace(0.0, 0.05, N)[:, None].repeat(15, axis=1)
    state = Stream((*(f"q.{name}" for name in JOINTS), *poses, "gripper"), t_ns, ramp)
    columns = tuple(f"{stage}.{part}" for stage in STAGES for part in (*JOINTS, "gripper"))
    action = Stream(columns, t_ns, np.full((N, 24), 0.5))
    asked = t_ns[:5]
    replies = np.stack([asked, asked + 80_000_000], axis=1)
    policy = Stream(("request_ns", "reply_ns"), asked, replies, arm_dependent=True)
    tracker = Stream(("item", "x", "y", "z"), t_ns[:10].repeat(2), np.zeros((20, 4)))
    writer = VideoWriter(tmp_path / "wrist.mp4", 64, 48)
    pts_us = np.arange(5) * 100_000
    for pts in pts_us:
        writer.write(np.full((48, 64, 3), 90, dtype=np.uint8), int(pts))
    writer.close()
    return EpisodeView(
        title="e-7k2m4q",
        start_ns=GO,
        streams={"arm/state": state, "arm/action": action, "policy": policy, "tracker": tracker},
        videos={"wrist": Video(tmp_path / "wrist.mp4", GO + pts_us * 1000 + 333, pts_us)},
        events=[(GO, "INFO", "go"), (GO + 300_000_000, "WARN", "item lost")],
        operations=[(GO, "item 1"), (GO + 300_000_000, "item 2")],
        joint_names=JOINTS,
        totes={"left": ((0.48, 0.24, 0.0), (0.34, 0.30, 0.12))},
        masked=False,
    )


def test_the_file_is_whole_by_reruns_own_check(episode, tmp_path):
    save_episode(tmp_path / "out" / "e.rrd", episode)
    done = subprocess.run(
        [cli(), "rrd", "verify", tmp_path / "out" / "e.rrd"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_everything_of_an_episode_is_in_it(episode, tmp_path):
    save_episode(tmp_path / "e.rrd", episode)
    text = contents(tmp_path / "e.rrd")
    world = [f"/world/{thing}" for thing in ("tcp", "path", "items", "totes", "fr3/visual_geometries/link6")]
    for entity in ("/joints", "/gripper", "/cameras/wrist", "/operations", *world):
        assert entity in text
    for stage in STAGES:
        assert f"/actions/fr3_joint7/{stage}" in text
    assert "/policy" in text
    assert "item lost" in text


def test_samples_and_frames_stand_at_their_measured_time(episode, tmp_path):
    from rerun.chunk import RrdReader

    save_episode(tmp_path / "e.rrd", episode)
    times = {}
    for chunk in RrdReader(tmp_path / "e.rrd").stream():
        batch = chunk.to_record_batch()
        if "t" in batch.schema.names:
            times.setdefault(chunk.entity_path, []).extend(batch.column("t").cast("int64").to_pylist())
    assert sorted(times["/joints"]) == [n * 10_000_000 for n in range(N)]
    assert sorted(times["/cameras/wrist"]) == [n * 100_000_000 + 333 for n in range(5)]


def test_a_masked_view_has_no_policy_timing_and_no_actions(episode, tmp_path):
    save_episode(tmp_path / "m.rrd", dataclasses.replace(episode, masked=True))
    text = contents(tmp_path / "m.rrd")
    assert "/joints" in text
    for told in ("policy", "/actions", "requested", "time to answer"):
        assert told not in text


def test_two_arms_that_differ_only_in_policy_timing_look_the_same_when_masked(episode, tmp_path):
    policy = episode.streams["policy"]
    for name, factor in (("a", 1), ("b", 2)):
        streams = {**episode.streams, "policy": dataclasses.replace(policy, values=policy.values * factor)}
        save_episode(tmp_path / f"{name}.rrd", dataclasses.replace(episode, streams=streams, masked=True))
    compare = [cli(), "rrd", "compare", "--unordered", tmp_path / "a.rrd", tmp_path / "b.rrd"]
    assert subprocess.run(compare, capture_output=True, timeout=60, check=False).returncode == 0


def test_an_episode_of_an_unknown_arm_without_cameras_can_still_be_shown(episode, tmp_path):
    bare = EpisodeView("e-1", GO, {"arm/state": episode.streams["arm/state"]}, joint_names=("a", "b"))
    save_episode(tmp_path / "e.rrd", bare)
    assert "/world/path" in contents(tmp_path / "e.rrd")


def test_a_missing_video_is_one_clear_line(episode, tmp_path):
    (tmp_path / "wrist.mp4").unlink()
    with pytest.raises(StorageError, match=r"wrist\.mp4 is missing"):
        save_episode(tmp_path / "e.rrd", episode)
    assert not (tmp_path / "e.rrd").exists()


def test_without_rerun_the_remedy_is_named(episode, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingExtra, match=r"labctl\[rerun\]"):
        save_episode(tmp_path / "e.rrd", episode)


def test_importing_the_module_does_not_import_rerun():
    code = "import sys, labctl.ui.rerun_episode; sys.exit('rerun' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
