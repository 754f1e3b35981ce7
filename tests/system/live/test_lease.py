"""A run process that stands still, or whose loop does, in mid-episode: the robot goes on moving and the episode counts,
or the journal has why it did not. No third outcome.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.machine.processes import end_with_parent
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import CLOCK, of_kind, running, wait_for

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Event, Kind
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

pytestmark = [pytest.mark.real_time, pytest.mark.thorough]

STOPPED_S = (0.05, 0.3, 0.6, 5.0)
SLOW_JOURNAL = """
import sys, time
from labctl.store.journal import Journal
seconds, append = float(sys.argv.pop(1)), Journal.append
def slowly(self, kind, **told):
    if str(kind) == "OperationRecorded":
        time.sleep(seconds)  # gives the interpreter to other threads, as a wait for a disk does
    return append(self, kind, **told)
Journal.append = slowly
from labctl.cli import main
main()
"""


def motion(folder: Path, episode: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) in ns and the fastest joint's change since the sample before, rad (n,), of an episode's recording."""
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    try:
        t_ns, values = store.read(episode or "", "arm/state")
    finally:
        store.close()
    return t_ns[1:], np.abs(np.diff(values[:, :7], axis=0)).max(axis=1)


def end_of(folder: Path, go: Event) -> Event:
    return next(event for event in of_kind(folder, Kind.EPISODE_ENDED) if event.episode == go.episode)


def test_a_run_process_that_is_stopped_for_a_while_costs_nothing_or_says_what(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT, an episode each: 0.05 s is within the lease of 0.3 s, 0.6 and 5 s are not."""
    arms = [policy("policy-a", skill="swift"), policy("policy-b", skill="swift")]
    campaign = make_campaign(
        tmp_path,
        arms,
        live=True,
        blocks=2,
        items=4,
        budget=1.5,
        arming=5.0,
        max_voids=9,
        process_lost="void",
        faults=True,
    )
    folder, log = campaign.folder, tmp_path / "run.log"
    stops: list[tuple[int, int]] = []
    with running(folder, log) as run:
        for number, seconds in enumerate(STOPPED_S):
            went = wait_for(f"go {number + 1}", lambda n=number: of_kind(folder, Kind.GO)[n:])
            assert isinstance(went, list)
            CLOCK.sleep_until(went[0].body["go_ns"] + 2 * SECOND)
            os.kill(run.pid, signal.SIGSTOP)
            begun_ns = CLOCK.now_ns()
            CLOCK.sleep_until(begun_ns + round(seconds * SECOND))
            os.kill(run.pid, signal.SIGCONT)
            stops.append((begun_ns, CLOCK.now_ns()))
        wait_for("the last one's recording", lambda: len(of_kind(folder, Kind.RECORDING_SEALED)) >= len(STOPPED_S))
        run.terminate()
        run.wait(timeout=60)
    for (from_ns, to_ns), go in zip(stops, of_kind(folder, Kind.GO), strict=False):
        ended, lasted_s = end_of(folder, go), (to_ns - from_ns) / SECOND
        t_ns, moved = motion(folder, go.episode)
        afterwards = moved[(t_ns > to_ns) & (t_ns < to_ns + 2 * SECOND)]
        print(f"stopped for {lasted_s:.2f} s: {ended.body['reason']}")
        if ended.body["reason"] == "lease_lapsed":
            assert lasted_s > 0.2, "a renewal is sent each 0.1 s of a lease of 0.3 s"
            assert from_ns < ended.body["end_ns"] <= to_ns + SECOND
            assert moved[t_ns > ended.body["end_ns"] + SECOND // 2].max(initial=0.0) < 1e-4, "and it stands"
        else:
            assert ended.body["reason"] in ("budget", "all_done") and lasted_s < 0.6
            assert afterwards.max() > 1e-4, "it went on moving"
    lapsed = [e for e in of_kind(folder, Kind.EPISODE_ENDED) if e.body["reason"] == "lease_lapsed"]
    voided = [(e.episode, e.body["reason"]) for e in of_kind(folder, Kind.EPISODE_VOIDED)]
    assert [(e.episode, "process_lost") for e in lapsed] == voided, "by the protocol's rule"
    raised = [e.body["code"] for e in of_kind(folder, Kind.HOLD_RAISED)]
    assert raised == ["lease_lapsed"] * len(lapsed), log.read_text()
    assert verify_campaign(folder).problems == []


@pytest.mark.parametrize("seconds", [1.0, 4.0], ids=["within the bound", "beyond it"])
def test_a_journal_that_waits_for_its_disk_stops_no_robot_and_a_run_that_hangs_does(
    tmp_path: Path, seconds: float
) -> None:
    """The first entry of an operation takes so long; the cell lets the run's loop stand for 2 s."""
    campaign = make_campaign(
        tmp_path, [policy("policy-a", skill="swift"), HUMAN], live=True, items=4, budget=6.0, arming=5.0
    )
    folder, log = campaign.folder, tmp_path / "run.log"
    words = [sys.executable, "-P", "-c", SLOW_JOURNAL, str(seconds), "run", str(folder), "--headless", "--real-time"]
    with log.open("ab") as out:
        run = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True, preexec_fn=end_with_parent)
    try:
        wait_for("an end", lambda: of_kind(folder, Kind.EPISODE_ENDED) or run.poll() is not None)
        run.terminate()
        run.wait(timeout=60)
    finally:
        run.kill()
    first, go = of_kind(folder, Kind.OPERATION_RECORDED)[0], of_kind(folder, Kind.GO)[0]
    ended = end_of(folder, go)
    t_ns, moved = motion(folder, go.episode)
    blocked = moved[(t_ns > first.at_ns + 400 * MILLISECOND) & (t_ns < first.at_ns + round(seconds * SECOND))]
    late = moved[t_ns > first.at_ns + 3500 * MILLISECOND]
    assert blocked.max() > 1e-4, "a lease alone would have lapsed after 0.3 s"
    if seconds < 2.0:
        assert ended.body["reason"] in ("budget", "all_done", "shutdown"), log.read_text()
        assert not of_kind(folder, Kind.HOLD_RAISED)
    else:
        assert ended.body["reason"] == "lease_lapsed" and late.max(initial=0.0) < 1e-4, log.read_text()
        assert first.at_ns + 1.5 * SECOND < ended.body["end_ns"] < first.at_ns + 4 * SECOND
        assert [event.body["code"] for event in of_kind(folder, Kind.HOLD_RAISED)] == ["lease_lapsed"]
