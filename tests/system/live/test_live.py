"""The cell as separate processes in real time: a process killed or hung costs one episode; a dead run process stops
the arm.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from support.robots import arm_states
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import CLOCK, children, end_of, of_kind, running, wait_for

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.store.verifying.verify import verify_campaign

pytestmark = pytest.mark.real_time

VICTIMS = {
    "arm": "arm_lost",
    "controller": "controller_lost",
    "recorder": "recorder_lost",
    "camera-wrist": "camera_lost",
}
LOST = [(how, victim) for how in (signal.SIGKILL, signal.SIGSTOP) for victim in VICTIMS]


def voids(folder: Path) -> list[str]:
    """Why episodes that had begun are void; a controller that a busy machine had not ready in time costs none."""
    return [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_VOIDED) if event.body["after_go"]]


def ends(folder: Path) -> list[str]:
    """Why episodes ended, in their order."""
    return [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)]


@pytest.mark.thorough
@pytest.mark.limit(600)
def test_a_lost_process_costs_one_episode(tmp_path: Path) -> None:
    """Each kind of process is killed, and hangs, in an episode of its own: the reason is right, the rule voids it, the
    trial is run again. A camera's loss ends an episode where the protocol says so.
    """
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, cameras=True, live=True, budget=10.0, camera_lost="end")
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        for number, (how, victim) in enumerate(LOST, 1):
            wait_for(f"go {number}", lambda n=number: len(of_kind(folder, Kind.GO)) >= n)
            pid = wait_for(f"the {victim} process", lambda v=victim: children(run.pid).get(v))
            assert isinstance(pid, int)
            os.kill(pid, how)
            wait_for(f"void {number}", lambda n=number: len(voids(folder)) >= n)
        wait_for("one more go", lambda: len(of_kind(folder, Kind.GO)) > len(LOST))
        run.terminate()
        assert end_of(run) == 0
    reasons = [VICTIMS[victim] for _, victim in LOST]
    assert ends(folder)[: len(LOST)] == reasons, log.read_text()
    assert voids(folder)[: len(LOST)] == reasons
    assert len({event.trial for event in of_kind(folder, Kind.GO)}) == 1, "a void keeps its trial"
    acknowledged = [event.body["code"] for event in of_kind(folder, Kind.HOLD_CLEARED)]
    assert acknowledged == ["arm_lost", "arm_lost"], "a person looks after a lost arm, and only then"
    assert verify_campaign(folder).problems == []
    without_recorder = [event.episode for event in of_kind(folder, Kind.EPISODE_ENDED)[: len(LOST)]][2::4]
    assert all(steady(folder, episode) for episode in without_recorder), (
        "a recorder's death loses no chunk: producers keep them"
    )


@pytest.mark.thorough
def test_a_lost_camera_is_a_gap_and_costs_no_episode(tmp_path: Path) -> None:
    """The process of a camera is killed in mid-episode, and hangs in the next one: both go on and are scored, their
    videos up to then are sealed, the gaps say to when; the third has the whole video again, from a new process.
    """
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, cameras=True, live=True, blocks=2, budget=7.0, arming=5.0)
    folder, log = campaign.folder, tmp_path / "run.log"
    lost: list[tuple[int, int]] = []  # between which times
    with running(folder, log) as run:
        for number, how in enumerate((signal.SIGKILL, signal.SIGSTOP), 1):
            went = wait_for(f"go {number}", lambda n=number: of_kind(folder, Kind.GO)[n - 1 :])
            assert isinstance(went, list)
            pid = wait_for("the camera's process", lambda: children(run.pid).get("camera-wrist"))
            assert isinstance(pid, int)
            CLOCK.sleep_until(went[0].body["go_ns"] + 2 * SECOND)
            before_ns = CLOCK.now_ns()
            os.kill(pid, how)
            lost.append((before_ns, CLOCK.now_ns()))
            wait_for(f"outcome {number}", lambda n=number: len(of_kind(folder, Kind.OUTCOME_RECORDED)) >= n)
        wait_for("a third outcome", lambda: len(of_kind(folder, Kind.OUTCOME_RECORDED)) >= 3)
        run.terminate()
        assert end_of(run) == 0, log.read_text()
    assert voids(folder) == [] and "camera_lost" not in ends(folder)
    *both, third = of_kind(folder, Kind.RECORDING_SEALED)[:3]
    for sealed, (before_ns, after_ns) in zip(both, lost, strict=True):
        (ended,) = [e for e in of_kind(folder, Kind.EPISODE_ENDED) if e.episode == sealed.episode]
        gaps = [e.body for e in of_kind(folder, Kind.GAP) if e.episode == sealed.episode]
        (gap,) = [one for one in gaps if "its process was lost" in one["why"]]  # a busy machine costs some frames more
        assert gap["stream"] == "camera/wrist"
        assert before_ns - 1.6 * SECOND < gap["from_ns"] <= after_ns and gap["to_ns"] == ended.body["end_ns"]
        assert sealed.body["gaps"] == len(gaps) and sealed.body["videos"]["wrist"]["frames"] > 20
    missing = [e.body for e in of_kind(folder, Kind.GAP) if e.episode == third.episode]
    assert not [one for one in missing if one["stream"] == "camera/wrist" and "process" in one["why"]], "it is back"
    go_ns = next(e.body["go_ns"] for e in of_kind(folder, Kind.GO) if e.episode == third.episode)
    end_ns = next(e.body["end_ns"] for e in of_kind(folder, Kind.EPISODE_ENDED) if e.episode == third.episode)
    frames = {}  # from go to end: before, each begins when its process is told
    for name in third.body["videos"]:
        t_ns, _ = arm_states.recorded(folder, third.episode, f"camera/{name}")
        frames[name] = int(((t_ns >= go_ns) & (t_ns < end_ns)).sum())
        late = [one for one in missing if one["stream"] == f"camera/{name}" and one["from_ns"] >= go_ns]
        frames[name] += sum(one["lost"] or 0 for one in late)  # what a busy machine took, and the record says so
    assert min(frames.values()) > 60 and abs(frames["wrist"] - frames["over_shoulder"]) <= 2, f"7 s at 10 Hz: {frames}"
    assert log.read_text().count("the episode goes on, the gap is marked") == 2
    assert verify_campaign(folder).problems == []


def steady(folder: Path, episode: str | None) -> bool:
    """Whether the arm's 100 Hz state was recorded without a hole."""
    t_ns, _ = recorded(folder, episode)
    return bool(np.allclose(np.diff(t_ns) / 1e6, 10.0, atol=0.01))


def recorded(folder: Path, episode: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Times and joint angles of an episode."""
    t_ns, state = arm_states.recorded(folder, episode, "arm/state")
    return t_ns, np.column_stack([values for name, values in state.items() if name.startswith("q.")])


def test_a_dead_run_process_never_leaves_a_policy_driving(tmp_path: Path) -> None:
    """The lease lapses: within 0.3 s of lease, one tick and the braking, together 1 s, the joints stand still. One that
    hangs: test_stop_matrix_live.py.
    """
    campaign = make_campaign(tmp_path, [policy("policy-a", skill="swift"), HUMAN], live=True, items=40, budget=20.0)
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert isinstance(went, list)
        episode = went[0].episode
        CLOCK.sleep_until(went[0].body["go_ns"] + 3 * SECOND)
        os.kill(run.pid, signal.SIGKILL)
        stopped_ns = CLOCK.now_ns()
        wait_for("the processes' end", lambda: not any((folder / "locks").iterdir()) or not alive(folder))
    t_ns, q = recorded(folder, episode)
    before = (t_ns > stopped_ns - 2 * SECOND) & (t_ns < stopped_ns)
    assert np.ptp(q[before], axis=0).max() > 0.01, "it was moving before"
    moving = t_ns[1:][np.abs(np.diff(q, axis=0)).max(axis=1) > 0.0]
    print(f"\nlast motion {(moving[-1] - stopped_ns) / 1e6:.0f} ms after the run process was killed")
    assert t_ns[-1] > moving[-1], "the record ends with an arm at rest"
    assert moving[-1] - stopped_ns < SECOND


def alive(folder: Path) -> list[Path]:
    """Lock files that a process of the run still holds: it writes its pid there and removes it at its end."""
    held = []
    for path in (folder / "locks").glob("*.lock"):
        try:
            pid = path.read_text().partition(" ")[0]
        except FileNotFoundError:  # it was removed since it was listed
            continue
        if pid and Path(f"/proc/{pid}").exists():
            held.append(path)
    return held


@pytest.mark.thorough
@pytest.mark.limit(600)
def test_a_run_that_is_interrupted_or_killed_with_all_its_processes_goes_on_with_the_next(tmp_path: Path) -> None:
    """SIGTERM in an episode: it ends as a shutdown and is sealed, and the next run scores it. kill -9 of run and all
    its processes in the next episode: at most the open second is missing, a gap says what, and the third run goes on.
    """
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, cameras=True, live=True, budget=20.0)
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        run.terminate()
        end_of(run)
    assert ends(folder) == ["shutdown"] and len(of_kind(folder, Kind.RECORDING_SEALED)) == 1
    with running(folder, log) as run:
        went = wait_for("another go", lambda: of_kind(folder, Kind.GO)[1:])
        assert isinstance(went, list)
        assert len(of_kind(folder, Kind.OUTCOME_RECORDED)) == 1, "what was interrupted is scored first"
        CLOCK.sleep_until(went[0].body["go_ns"] + 4 * SECOND)
        kills_ns = CLOCK.now_ns()
        for pid in [run.pid, *children(run.pid).values()]:
            os.kill(pid, signal.SIGKILL)
        killed_ns = CLOCK.now_ns()
    t_ns, _ = recorded(folder, went[0].episode)
    assert kills_ns - t_ns[-1] <= 1.5 * SECOND, "more than the open second of the arm is missing"
    with running(folder, log) as run:
        wait_for("a third go", lambda: of_kind(folder, Kind.GO)[2:])
        run.terminate()
        end_of(run)
    ended = of_kind(folder, Kind.EPISODE_ENDED)[1]
    assert ended.body["reason"] == "process_lost" and ended.body["end_ns"] <= killed_ns
    gaps = {event.body["stream"] for event in of_kind(folder, Kind.GAP) if event.episode == went[0].episode}
    assert {"arm/state", "camera/wrist", "camera/over_shoulder"} <= gaps
    sealed = next(e for e in of_kind(folder, Kind.RECORDING_SEALED) if e.episode == went[0].episode)
    assert all(video["frames"] > 10 for video in sealed.body["videos"].values()) and len(sealed.body["videos"]) == 2
    assert verify_campaign(folder).problems == []
