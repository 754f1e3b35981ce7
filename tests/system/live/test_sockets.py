"""What the processes of a live run say to each other stays with their owner: nothing listens on a network."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import children, running, wait_for
from support.screens.rerun_files import listening

NODES = {"arm", "recorder", "camera-wrist", "camera-over_shoulder"}


def kind_of(path: Path) -> int | None:
    """What a file is (`stat.S_IFMT`); None for one whose process has ended and taken it away meanwhile."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None


@pytest.mark.real_time
def test_a_runs_sockets_are_files_in_a_folder_of_their_owner_alone(tmp_path: Path) -> None:
    arms = [HUMAN, policy("policy-a", skill="swift")]
    folder = make_campaign(tmp_path, arms, cameras=True, live=True, items=40, budget=20.0).folder
    contact = folder / "run.json"
    with running(folder, tmp_path / "run.log") as run:
        wait_for("the run", contact.is_file)
        wait_for("its processes", lambda: children(run.pid).keys() >= NODES)
        sockets = Path(json.loads(contact.read_text())["sockets"])
        wait_for("the arm's sockets", lambda: {"arm.in", "arm.stop", "arm.pub"} <= {p.name for p in sockets.iterdir()})
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert {kind for path in sockets.iterdir() if (kind := kind_of(path)) is not None} == {stat.S_IFSOCK}
        assert {pid: listening(pid) for pid in (run.pid, *children(run.pid).values()) if listening(pid)} == {}
