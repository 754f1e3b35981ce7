"""kill -9 of a running campaign, anywhere: what was acknowledged stays, the chain holds, the next run goes on with the
same arm.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from support.machine.warm import Forked, warmed
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, start_run
from support.runs.live_campaign import CLOCK, children, end_of, last_seq, of_kind, running, wait_for
from support.sealed_recordings import assert_all_sealed

from labctl.cli import call
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Event, Kind
from labctl.core.recovery import reconcile
from labctl.core.trial import LIVE, fold, next_trial
from labctl.store.ledger import Ledger
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign
from labctl.store.video import frame_times, read_frames

LOOKS_NS = 2 * MILLISECOND  # between looks at the journal: who only looks leaves the core to the run
FIFTY = pytest.param(50, marks=[pytest.mark.thorough, pytest.mark.limit(1500)])


def kill_at(run: subprocess.Popen[bytes] | Forked, reached: Callable[[], bool]) -> bool:
    """Kill a run -9 once its journal has come that far; False when it ended by itself before."""
    while run.poll() is None:
        if reached():
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            return True
        CLOCK.sleep_until(CLOCK.now_ns() + LOOKS_NS)
    return False


def last_sample_ns(folder: Path, episode: str | None) -> int | None:
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    try:
        return store.last_sample_ns(episode or "")
    finally:
        store.close()


def check_recovered(folder: Path, before: list[Event], after: list[Event]) -> None:
    """What one kill and the next start may do to a journal."""
    assert after[: len(before)] == before, "an acknowledged event changed or is gone"
    state = fold(before)
    turn = next_trial(state)
    live = [trial for trial in state.trials.values() if trial.state in LIVE]
    assert len(live) <= 1
    new = after[len(before) :]
    if live:
        concluded = [event.kind for event in new if event.trial == live[0].id]
        assert concluded, "the open trial was concluded"
        assert turn is not None and live[0].id == turn.id, "the next run continues with the trial that was open"
    for event in new:
        if event.kind == Kind.EPISODE_ENDED and event.body["reason"] == "process_lost":
            signs = before[-1].at_ns, last_sample_ns(folder, event.episode) or 0
            assert event.body["end_ns"] <= max(signs), "downtime was counted as trial time"


@pytest.mark.parametrize("rounds", [10, FIFTY])
def test_kills_anywhere_lose_nothing_acknowledged(tmp_path: Path, rounds: int) -> None:
    """One campaign is killed again and again at random entries of its journal, each fifth time as soon as an episode
    runs, and then runs to its end. Ten runs are started as a person starts them, fifty are forked.
    """
    arms = [HUMAN, policy("policy-a", skill="swift"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, blocks=rounds // 2, budget=6.0, arming=1.0, max_voids=100, durable=True)
    folder, log = campaign.folder, tmp_path / "run.log"
    draw = random.Random(1)
    phases: Counter[str] = Counter()
    with ExitStack() as stack:
        warm = stack.enter_context(warmed()) if rounds >= 50 else None
        begun = partial(start_run, folder, live=False, log=log, warm=warm)
        killed = events_of(folder)
        for number in range(rounds):
            before = killed  # nobody writes between a kill and the next start
            kind, seq = (Kind.GO, len(before) + 1) if number % 5 == 2 else (None, len(before) + draw.randint(1, 14))
            reached = partial(lambda kind, seq: last_seq(folder, kind) >= seq, kind, seq)
            assert kill_at(begun(), reached), "the campaign was over before its last kill"
            killed = events_of(folder)
            check_recovered(folder, before, killed)
            state = fold(killed)
            trial = next_trial(state)
            phases[str(trial.state) if trial else "over"] += 1
        assert begun().wait() == 0
    done = events_of(folder)
    assert len(phases) >= (5 if rounds >= 50 else 3), f"the kills hit only {dict(phases)}"
    assert next_trial(fold(done)) is None
    assert reconcile(done, rule="void", last_sample_ns={}) == []
    verified = verify_campaign(folder)
    assert verified.problems == []
    assert "recovered: trial" in log.read_text(), "the run says what it concluded"
    check_arms(folder, done)
    check_gaps(folder, done)
    assert call(["close", str(folder), "--json"]) == 0
    assert_all_sealed(folder, events_of(folder))
    print(f"\n{rounds} kills, by the state they hit: {dict(phases)}; {verified.counts}")


def check_arms(folder: Path, events: list[Event]) -> None:
    """Every attempt of a trial was run by the arm that was drawn for it."""
    ledger = Ledger.open(folder)
    openings = {opening["sha256"]: opening["value"] for opening in ledger.open_all()["openings"]}
    revealed = [event for event in events if event.kind == Kind.ARM_REVEALED]
    attempts = Counter(event.trial for event in revealed)
    assert max(attempts.values()) > 1, "no trial was attempted twice"
    for event in revealed:
        assert openings[event.body["sealed"]] == ledger.reveal(event.trial)


def check_gaps(folder: Path, events: list[Event]) -> None:
    """Of an episode whose process was lost, at most the open second of a stream is missing, and that is said."""
    with_gaps = {event.episode for event in events if event.kind == Kind.GAP}
    lost = [e for e in events if e.kind == Kind.EPISODE_ENDED and e.body["reason"] == "process_lost"]
    assert lost, "no kill hit a running episode"
    for event in lost:
        happened = [e.at_ns for e in events if e.episode == event.episode and e.seq < event.seq]
        last = last_sample_ns(folder, event.episode)
        if last is not None:
            assert event.episode in with_gaps
            assert max(happened) - last <= 1.6 * SECOND, "more than the open second is missing"


# Which processes are killed, and of which cameras the video then ends early.
SHOULDER, WRIST = "over_shoulder", "wrist"
VICTIMS = {"recorder": (), "camera-wrist": (WRIST,), "everything": (SHOULDER, WRIST)}
LONGER = [pytest.param(name, marks=pytest.mark.thorough) for name in ("recorder", "camera-wrist")]


@pytest.mark.real_time
@pytest.mark.parametrize("victim", [*LONGER, "everything"])
def test_videos_play_to_within_a_second_of_a_kill_and_agree_with_their_index(tmp_path: Path, victim: str) -> None:
    """kill -9 in mid-episode of the recorder, a camera, or all processes at once."""
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, cameras=True, live=True, budget=20.0, process_lost="score")
    folder, log = campaign.folder, tmp_path / "run.log"
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert isinstance(went, list)
        pids = children(run.pid)
        CLOCK.sleep_until(went[0].body["go_ns"] + 3 * SECOND)
        kills_ns = CLOCK.now_ns()
        for pid in [run.pid, *pids.values()] if victim == "everything" else [pids[victim]]:
            os.kill(pid, signal.SIGKILL)
        if victim != "everything":
            wait_for("a sealed recording", lambda: of_kind(folder, Kind.RECORDING_SEALED))
            run.terminate()
            end_of(run)
    with running(folder, log) as run:  # whatever is left to be concluded
        wait_for("a sealed recording", lambda: of_kind(folder, Kind.RECORDING_SEALED))
        run.terminate()
        end_of(run)
    verified = verify_campaign(folder)
    assert verified.problems == []
    sealed = of_kind(folder, Kind.RECORDING_SEALED)[0]
    assert set(sealed.body["videos"]) == {SHOULDER, WRIST}
    (ended,) = [event for event in of_kind(folder, Kind.EPISODE_ENDED) if event.episode == sealed.episode]
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    for name, video in sealed.body["videos"].items():
        rows = store.read(sealed.episode or "", f"camera/{name}")[1]
        played = frame_times(folder / video["file"])
        assert len(list(read_frames(folder / video["file"]))) == len(played) == video["frames"] > 15
        assert set(rows[:, 3].tolist()) <= set(played.tolist()), "a row without its frame"
        last_ns = int(rows[0, 2] + 1000 * played[-1])
        until_ns = kills_ns if name in VICTIMS[victim] else ended.body["end_ns"]
        print(f"\n{victim} killed: the video of {name} ends {(until_ns - last_ns) / 1e9:.2f} s before")
        assert until_ns - last_ns < SECOND
        untimed = any("not in the index" in note and video["file"] in note for note in verified.notes)
        assert untimed == (len(rows) < len(played)), "verify says what has no time any more"
        assert name in VICTIMS[victim] or len(rows) == len(played)
    store.close()
