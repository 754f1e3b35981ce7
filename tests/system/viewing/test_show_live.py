"""A live view only listens: with one attached, stalled or killed, a run records what it records without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.robots.arm_states import recorded
from support.runs.campaigns import make_campaign, policy
from support.runs.live_campaign import end_of, of_kind, running, wait_for
from support.screens.rerun_files import family, listening

from labctl.cli import call
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.store.traces import TraceStore

LABCTL = Path(sys.executable).with_name("labctl")
SLOW = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]


def counts(folder: Path, episode: str) -> dict[str, tuple[int, int]]:
    """(samples there, samples missing) of every steady stream: between the first and the last, at its own rate."""
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    found = {}
    try:
        for spec in store.streams(episode):
            if spec.name == "arm/state" or spec.name.startswith("camera/"):
                t_ns, values = store.read(episode, spec.name)
                numbers = values[:, 0] if spec.name.startswith("camera/") else np.rint(t_ns * spec.rate_hz / SECOND)
                found[spec.name] = (len(t_ns), round(float(numbers[-1] - numbers[0])) + 1 - len(t_ns))
    finally:
        store.close()
    return found


@pytest.mark.real_time
@pytest.mark.thorough
def test_a_stalled_live_view_costs_a_recording_nothing(tmp_path: Path) -> None:
    """One episode without a view; one with a view attached, then stopped dead with its viewer while it records."""
    cell = {"width = 320": "width = 96", "height = 240": "height = 72"}
    campaign = make_campaign(tmp_path, SLOW, cameras=True, live=True, blocks=3, budget=6.0, arming=5.0, cell=cell)
    folder = campaign.folder
    with running(folder, tmp_path / "run.log") as run:
        wait_for("the first outcome", lambda: of_kind(folder, Kind.OUTCOME_RECORDED))
        words = [LABCTL, "show", "--live", str(folder), "--web"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as view:
            assert view.stdout is not None
            try:
                assert view.stdout.readline().startswith("open http://127.0.0.1:")
                assert view.stdout.readline().startswith("live")
                (viewer,) = [pid for pid in family(view.pid) if pid != view.pid]
                assert all(port.startswith("0100007F:") for port in listening(viewer))
                wait_for("the second go", lambda: len(of_kind(folder, Kind.GO)) >= 2)
                for pid in (view.pid, viewer):
                    os.kill(pid, signal.SIGSTOP)
                wait_for("the second outcome", lambda: len(of_kind(folder, Kind.OUTCOME_RECORDED)) >= 2)
            finally:
                for pid in family(view.pid):
                    os.kill(pid, signal.SIGCONT)
                view.send_signal(signal.SIGINT)
            assert end_of(view) == 0
        run.terminate()
        assert end_of(run) == 0
    both = {event.episode for event in of_kind(folder, Kind.GO)[:2]}
    gaps = {event.body["why"] for event in of_kind(folder, Kind.GAP) if event.episode in both}
    assert gaps <= {"dropped by the device"}, "a busy machine"
    # A simulated camera skips frames where it does not get its turn: one, or on a machine asked for twice its cores a
    # tenth of them. Had a stalled view held the camera up, all frames of its seconds would be missing.
    spare = 1 if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) else 10
    alone, watched = (counts(folder, event.episode) for event in of_kind(folder, Kind.GO)[:2])
    print(f"\nalone {alone}\nwatched {watched}")
    assert set(alone) == set(watched) == {"arm/state", "camera/over_shoulder", "camera/wrist"}
    assert alone["arm/state"][1] == watched["arm/state"][1] == 0, "every sample of the arm, with and without"
    ended = {event.episode: event.body["end_ns"] for event in of_kind(folder, Kind.EPISODE_ENDED)}
    for go in of_kind(folder, Kind.GO)[:2]:  # how long each waits for its go is the machine's
        t_ns, _ = recorded(folder, go.episode, "arm/state")
        assert t_ns[0] < go.body["go_ns"] and t_ns[-1] > ended[go.episode] - SECOND // 10, "from the go to the end"
    for camera in ("camera/over_shoulder", "camera/wrist"):
        assert watched[camera][1] <= alone[camera][1] + spare


@pytest.mark.real_time
@pytest.mark.thorough
def test_a_live_view_ends_when_asked_and_the_run_goes_on(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path, SLOW, live=True, blocks=20, budget=3.0)
    folder = campaign.folder
    with running(folder, tmp_path / "run.log") as run:
        wait_for("a go", lambda: of_kind(folder, Kind.GO))
        words = [LABCTL, "show", "--live", str(folder), "--web"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
            assert view.stdout is not None and view.stderr is not None
            lines = [view.stdout.readline() for _ in range(2)]
            (viewer,) = [pid for pid in family(view.pid) if pid != view.pid]
            view.send_signal(signal.SIGINT)
            assert end_of(view) == 0
            assert "never the run" in lines[1] and view.stderr.read() == ""
        assert not Path(f"/proc/{viewer}").exists()
        scored = len(of_kind(folder, Kind.OUTCOME_RECORDED))
        wait_for("further outcomes", lambda: len(of_kind(folder, Kind.OUTCOME_RECORDED)) > scored + 1)
        run.terminate()
        assert end_of(run) == 0


def test_without_a_run_the_remedy_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_campaign(tmp_path)
    assert call(["show", "--live", "trial-run", "--web", "--lab", str(tmp_path)]) == 1
    assert "labctl run trial-run" in capsys.readouterr().err
    assert call(["show", "--live", "trial-run", "e-1", "--lab", str(tmp_path)]) == 2
    assert "--live CAMPAIGN follows a run" in capsys.readouterr().err
