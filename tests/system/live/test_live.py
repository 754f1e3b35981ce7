"""The cell as separate processes in real time: a process killed or hung costs one episode; a dead run process stops
the arm.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import CLOCK, children, of_kind, running, wait_for

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

pytestmark = pytest.mark.real_time

VICTIMS = {
    "arm": "arm_lost",
    "controller": "controller_lost",
    "recorder": "recorder_lost",
    "camera-wrist": "camera_lost",
}


@pytest.mark.thorough
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_lost_process_costs_one_episode(tmp_path: Path, how: signal.Signals) -> None:
    """Each kind of process is lost in an episode of its own: the reason is right, the rule voids it, the trial is run
    again. A camera's loss ends an episode where the protocol says so.
    """
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(
        tmp_path, arms, cameras=True, live=True, budget=10.0, arming=5.0, max_voids=9, camera_lost="end"
    )
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        for number, victim in enumerate(VICTIMS, 1):
            wait_for(f"go {number}", lambda n=number: len(of_kind(folder, Kind.GO)) >= n)
            pid = wait_for(f"the {victim} process", lambda v=victim: children(run.pid).get(v))
            assert isinstance(pid, int)
            os.kill(pid, how)
            wait_for(f"void {number}", lambda n=number: len(of_kind(folder, Kind.EPISODE_VOIDED)) >= n)
        wait_for("an outcome", lambda: of_kind(folder, Kind.OUTCOME_RECORDED))
        run.terminate()
        run.wait(timeout=60)
    ended = [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)]
    assert ended[: len(VICTIMS)] == list(VICTIMS.values()), log.read_text()
    voided = [(event.body["reason"], event.body["after_go"]) for event in of_kind(folder, Kind.EPISODE_VOIDED)]
    assert voided[: len(VICTIMS)] == [(reason, True) for reason in VICTIMS.values()]
    assert len({event.trial for event in of_kind(folder, Kind.GO)[: len(VICTIMS) + 1]}) == 1, "a void keeps its trial"
    acknowledged = [event.body["code"] for event in of_kind(folder, Kind.HOLD_CLEARED)]
    assert acknowledged == ["arm_lost"], "a person looks after a lost arm, and only then"
    assert verify_campaign(folder).problems == []
    assert steady(folder, of_kind(folder, Kind.GO)[2].episode), "a recorder's death loses no chunk: producers keep them"


@pytest.mark.thorough
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_lost_camera_is_a_gap_and_costs_no_episode(tmp_path: Path, how: signal.Signals) -> None:
    """The process of a camera is lost in mid-episode: the episode goes on and is scored, its video up to then is
    sealed, the gap says to when; the next episode has the whole video again, from a new process.
    """
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, cameras=True, live=True, items=2, budget=4.0, arming=5.0)
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert isinstance(went, list)
        pid = wait_for("the camera's process", lambda: children(run.pid).get("camera-wrist"))
        assert isinstance(pid, int)
        CLOCK.sleep_until(went[0].body["go_ns"] + 2 * SECOND)
        kills_ns = CLOCK.now_ns()
        os.kill(pid, how)
        killed_ns = CLOCK.now_ns()
        assert run.wait(timeout=240) == 0, log.read_text()
    assert of_kind(folder, Kind.EPISODE_VOIDED) == [] and len(of_kind(folder, Kind.OUTCOME_RECORDED)) == 2
    first, second = of_kind(folder, Kind.RECORDING_SEALED)
    (ended,) = [e for e in of_kind(folder, Kind.EPISODE_ENDED) if e.episode == first.episode]
    assert ended.body["reason"] != "camera_lost"
    gaps = [e.body for e in of_kind(folder, Kind.GAP) if e.episode == first.episode]
    (gap,) = [one for one in gaps if "its process was lost" in one["why"]]  # a busy machine costs either some frames
    assert gap["stream"] == "camera/wrist"
    assert kills_ns - 1.6 * SECOND < gap["from_ns"] <= killed_ns and gap["to_ns"] == ended.body["end_ns"]
    assert first.body["gaps"] == len(gaps) and first.body["videos"]["wrist"]["frames"] > 20
    lost = [e.body for e in of_kind(folder, Kind.GAP) if e.episode == second.episode]
    assert not [one for one in lost if one["stream"] == "camera/wrist" and "process" in one["why"]], "it is back"
    frames = {name: video["frames"] for name, video in second.body["videos"].items()}
    for name in frames:  # what a busy machine took, and the record says so
        frames[name] += sum(one["lost"] or 0 for one in lost if one["stream"] == f"camera/{name}")
    assert abs(frames["wrist"] - frames["over_shoulder"]) <= 5, "half a second at 10 Hz: each begins and ends by itself"
    assert "the episode goes on, the gap is marked" in log.read_text()
    assert verify_campaign(folder).problems == []


def steady(folder: Path, episode: str | None) -> bool:
    """Whether the arm's 100 Hz state was recorded without a hole."""
    t_ns, _ = recorded(folder, episode)
    return bool(np.allclose(np.diff(t_ns) / 1e6, 10.0, atol=0.01))


def recorded(folder: Path, episode: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Times and joint angles of an episode."""
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    try:
        t_ns, values = store.read(episode or "", "arm/state")
    finally:
        store.close()
    return t_ns, values[:, :7]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGSTOP, id="hung", marks=pytest.mark.thorough),
    ],
)
def test_a_dead_run_process_never_leaves_a_policy_driving(tmp_path: Path, how: signal.Signals) -> None:
    """The lease lapses: within 0.3 s of lease, one tick and the braking, together 1 s, the joints stand still."""
    campaign = make_campaign(
        tmp_path, [policy("policy-a", skill="swift"), HUMAN], live=True, items=40, budget=20.0, arming=5.0
    )
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert isinstance(went, list)
        episode = went[0].episode
        CLOCK.sleep_until(went[0].body["go_ns"] + 3 * SECOND)
        os.kill(run.pid, how)
        stopped_ns = CLOCK.now_ns()
        CLOCK.sleep_until(stopped_ns + 4 * SECOND)
        if how == signal.SIGSTOP:
            os.kill(run.pid, signal.SIGKILL)
        wait_for("the processes' end", lambda: not any((folder / "locks").iterdir()) or not alive(folder))
    t_ns, q = recorded(folder, episode)
    before = (t_ns > stopped_ns - 2 * SECOND) & (t_ns < stopped_ns)
    assert np.ptp(q[before], axis=0).max() > 0.01, "it was moving before"
    moving = t_ns[1:][np.abs(np.diff(q, axis=0)).max(axis=1) > 0.0]
    print(f"\nlast motion {(moving[-1] - stopped_ns) / 1e6:.0f} ms after the run process was {how.name}")
    assert t_ns[-1] > moving[-1], "the record ends with an arm at rest"
    assert moving[-1] - stopped_ns < SECOND


def alive(folder: Path) -> list[Path]:
    """Lock files that a process of the run still holds: it writes its pid there and removes it at its end."""
    held = []
    for path in (folder / "locks").glob("*.lock"):
        pid = path.read_text().partition(" ")[0]
        if pid and Path(f"/proc/{pid}").exists():
            held.append(path)
    return held


@pytest.mark.thorough
def test_everything_killed_at_once_loses_at_most_the_open_second(tmp_path: Path) -> None:
    """kill -9 of run and all its processes in an episode: a gap says what is missing, the next run goes on."""
    campaign = make_campaign(
        tmp_path, [policy("policy-a", skill="slow"), HUMAN], cameras=True, live=True, budget=20.0, arming=5.0
    )
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert isinstance(went, list)
        CLOCK.sleep_until(went[0].body["go_ns"] + 4 * SECOND)
        kills_ns = CLOCK.now_ns()
        for pid in [run.pid, *children(run.pid).values()]:
            os.kill(pid, signal.SIGKILL)
        killed_ns = CLOCK.now_ns()
    t_ns, _ = recorded(folder, went[0].episode)
    assert kills_ns - t_ns[-1] <= 1.5 * SECOND, "more than the open second of the arm is missing"
    with running(folder, log) as run:
        wait_for("an outcome", lambda: of_kind(folder, Kind.OUTCOME_RECORDED))
        run.terminate()
        run.wait(timeout=60)
    ended = of_kind(folder, Kind.EPISODE_ENDED)[0]
    assert ended.body["reason"] == "process_lost" and ended.body["end_ns"] <= killed_ns
    gaps = {event.body["stream"] for event in of_kind(folder, Kind.GAP) if event.episode == went[0].episode}
    assert {"arm/state", "camera/wrist", "camera/over_shoulder"} <= gaps
    sealed = next(e for e in of_kind(folder, Kind.RECORDING_SEALED) if e.episode == went[0].episode)
    assert all(video["frames"] > 10 for video in sealed.body["videos"].values()) and len(sealed.body["videos"]) == 2
    assert verify_campaign(folder).problems == []


@pytest.mark.thorough
def test_an_interrupted_run_seals_and_continues(tmp_path: Path) -> None:
    """SIGTERM in an episode: it ends as a shutdown, is sealed, and the next run scores it and goes on."""
    campaign = make_campaign(tmp_path, [policy("policy-a", skill="slow"), HUMAN], live=True, budget=12.0, arming=5.0)
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        run.terminate()
        run.wait(timeout=60)
    assert [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)] == ["shutdown"]
    assert len(of_kind(folder, Kind.RECORDING_SEALED)) == 1
    with running(folder, log) as run:
        assert run.wait(timeout=240) == 0, log.read_text()
    assert len(of_kind(folder, Kind.OUTCOME_RECORDED)) == 2
    assert verify_campaign(folder).problems == []
