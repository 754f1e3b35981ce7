"""The table of `tests/system/trials/test_stop_matrix.py` with processes of their own, for each robot: in mid-episode
something stops, stands still or comes late, and either the robot goes on and the episode counts, or the journal says
why not and the robot stands. Which of the two depends on the machine; a third outcome never does.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

import numpy as np
import pytest
from support.machine.processes import end_with_parent
from support.robots.emulators import NAMES, Emulator
from support.runs.campaigns import make_campaign, policy, with_tests
from support.runs.live_campaign import CLOCK, children, end_of, of_kind, wait_for
from support.runs.stopped_cell import STOPS

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Event, Kind
from labctl.drivers import BY_NAME
from labctl.runtime.attach import Attachment
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

# the folder of a robot's driver -> a cell with it
ROBOTS = {"sim": "sim_fr3", "franka": "emulated_fr3", "ur": "emulated_ur5e", "ros2": "emulated_ros2"}
COUNTS, SAYS = ("budget", "all_done"), ("lease_lapsed", "safety_stop", "robot_fault", "arm_lost", "controller_lost")
MOVES_RAD_S, STANDS_RAD_S = 0.05, 0.02
# a journal whose disk takes as long as a note says
WAITING_JOURNAL = """
import time
from labctl.store.journal import Journal
append = Journal.append
def slowly(self, kind, **told):
    body = told.get("body") or {}
    if str(kind) == "Note" and str(body.get("text", "")).startswith("the disk takes "):
        time.sleep(float(body["text"].split()[3]))  # as a wait for a disk: other threads go on
    return append(self, kind, **told)
Journal.append = slowly
from labctl.cli import main
main()
"""
Run = subprocess.Popen[bytes]
Fault = Callable[[Run, Path], None]


def stopped(seconds: float) -> Fault:
    def happens(run: Run, folder: Path) -> None:
        os.kill(run.pid, SIGSTOP)
        CLOCK.sleep_until(CLOCK.now_ns() + round(seconds * SECOND))
        os.kill(run.pid, SIGCONT)

    return happens


def stopped_while_frozen(*, key: bool) -> Fault:
    """In the fifth of 5 s in which the run process stands still somebody stops the robot; with the key the run finds
    the command when it goes on. Either way it asks a person about a stop, beside whatever it says of the lease.
    """

    def happens(run: Run, folder: Path) -> None:
        before = len(of_kind(folder, Kind.HOLD_RAISED))
        with closing(Attachment(folder)) as console:
            os.kill(run.pid, SIGSTOP)
            CLOCK.sleep_until(CLOCK.now_ns() + 4 * SECOND)
            assert console.stop_robot(), "the stop socket is the robot's process, which nothing stopped"
            if key:
                console.command("stop", who="ann", role="operator")
            CLOCK.sleep_until(CLOCK.now_ns() + SECOND)
            os.kill(run.pid, SIGCONT)
            wait_for(
                "the hold of the stop",
                lambda: any(e.body["code"] == "operator_stop" for e in of_kind(folder, Kind.HOLD_RAISED)[before:]),
            )

    return happens


def journal_waits(seconds: float) -> Fault:
    """fsync of 1 s; of 2 s, which is the bound; of 5 s: the run's loop is blocked while the thread that renews the
    lease is alive.
    """

    def happens(run: Run, folder: Path) -> None:
        before = len(of_kind(folder, Kind.NOTE))
        who = of_kind(folder, Kind.SESSION_OPENED)[-1].body["people"][0]["id"]
        with closing(Attachment(folder)) as console:
            console.command("note", who=who, role="operator", args={"text": f"the disk takes {seconds} s"})
            wait_for("the note", lambda: of_kind(folder, Kind.NOTE)[before:])

    return happens


def cpu_theft(run: Run, folder: Path) -> None:
    """Two seconds in which each process gets its turn when somebody else has had enough."""
    drawn, pids = random.Random(17), [run.pid, *children(run.pid).values()]
    for _ in range(30):
        pid = drawn.choice(pids)
        try:
            os.kill(pid, SIGSTOP)
            CLOCK.sleep_until(CLOCK.now_ns() + drawn.randrange(10, 120) * MILLISECOND)
            os.kill(pid, SIGCONT)
        except ProcessLookupError:
            continue


def stop_socket(run: Run, folder: Path) -> None:
    before = len(of_kind(folder, Kind.EPISODE_ENDED))
    with closing(Attachment(folder)) as console:
        assert console.stop_robot()
        wait_for("its end", lambda: len(of_kind(folder, Kind.EPISODE_ENDED)) > before)  # what is closed may not be sent


def stop_key(run: Run, folder: Path) -> None:
    before = len(of_kind(folder, Kind.HOLD_RAISED))
    with closing(Attachment(folder)) as console:
        assert console.stop_robot()
        console.command("stop", who="ann", role="operator")
        wait_for("the stop", lambda: of_kind(folder, Kind.HOLD_RAISED)[before:])


BLOCKED = "run's loop blocked 5 s"
FAULTS: dict[str, Fault] = {
    "run stopped 0.05 s": stopped(0.05),
    "run stopped 0.3 s": stopped(0.3),
    "run stopped 0.6 s": stopped(0.6),
    "run stopped 5 s": stopped(5.0),
    "stop key in such 5 s": stopped_while_frozen(key=True),
    "stop socket in such 5 s": stopped_while_frozen(key=False),
    "fsync of 1 s": journal_waits(1.0),
    "fsync of 2 s": journal_waits(2.0),
    BLOCKED: journal_waits(5.0),
    "cpu theft": cpu_theft,
    "stop socket": stop_socket,
    "stop key": stop_key,
}
STANDS_STILL = ("run stopped 5 s", "stop key in such 5 s", "stop socket in such 5 s")
# Unless the machine made it longer: a renewal comes each 0.1 s of a lease of 0.3 s, and a run's loop may stand for 2 s.
ALWAYS_COUNTS = {"run stopped 0.05 s": 200 * MILLISECOND, "fsync of 1 s": 2 * SECOND}
NEVER_COUNTS = (
    *STANDS_STILL,
    BLOCKED,
    "stop socket",
    "stop key",
)


ASKED = [pytest.mark.alone, pytest.mark.interop]  # three minutes each


def test_each_robot_has_its_row_and_each_fault_its_cell() -> None:
    robots = {module.split(".")[2] for module in BY_NAME.values() if module.endswith(".robot")}
    assert {*ROBOTS} == robots - {"pair"} | {"sim"}, "of two the stops are in test_emulated_pair.py"
    assert {*FAULTS} == {*STOPS}


def speeds(folder: Path, episode: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) in ns and the fastest joint's speed, rad/s, over 50 ms each."""
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    try:
        spec = next(one for one in store.streams(episode or "") if one.name == "arm/state")
        t_ns, values = store.read(episode or "", "arm/state")
    finally:
        store.close()
    q = values[:, [i for i, column in enumerate(spec.columns) if column.startswith("q.")]]
    step = max(round(0.05 * spec.rate_hz), 1)
    took_s = (t_ns[step:] - t_ns[:-step]) / SECOND
    return t_ns[step:], np.abs(q[step:] - q[:-step]).max(axis=1) / np.maximum(took_s, 1e-3)


@contextmanager
def running(folder: Path, log: Path) -> Iterator[Run]:
    words = [sys.executable, "-P", "-c", WAITING_JOURNAL, "run", str(folder), "--headless", "--real-time"]
    with log.open("ab") as out:
        run = subprocess.Popen(
            words, stdout=out, stderr=out, env=with_tests(), start_new_session=True, preexec_fn=end_with_parent
        )
    try:
        yield run
    finally:
        for pid in [run.pid, *children(run.pid).values()]:
            try:
                os.kill(pid, SIGCONT)
                os.kill(pid, SIGKILL)
            except ProcessLookupError:
                continue
        run.wait()


@pytest.mark.real_time
@pytest.mark.thorough
@pytest.mark.limit(900)
@pytest.mark.parametrize("robot", ["sim", *(pytest.param(name, marks=ASKED) for name in ("franka", "ur", "ros2"))])
def test_it_goes_on_or_the_journal_says_why_not(robot: str, tmp_path: Path) -> None:
    cell = ROBOTS[robot]
    emulator = Emulator(NAMES[cell]) if cell in NAMES else None
    try:
        folder = make_campaign(
            tmp_path,
            [policy("policy-a", skill="swift"), policy("policy-b", skill="swift")],
            base=cell,
            cell=emulator.placed(cell) if emulator else None,
            live=True,
            blocks=len(FAULTS),
            items=2,  # for the second of which there is no time: who goes on moves to the end
            budget=5.0,
        ).folder
        spans: list[tuple[int, int]] = []
        with running(folder, tmp_path / "run.log") as run:
            for number, (name, happens) in enumerate(FAULTS.items(), 1):
                went = wait_for(f"go {number} ({name})", lambda n=number: of_kind(folder, Kind.GO)[n - 1 :])
                assert isinstance(went, list)
                CLOCK.sleep_until(went[0].body["go_ns"] + 3 * SECOND // 2)
                from_ns = CLOCK.now_ns()
                happens(run, folder)
                spans.append((from_ns, CLOCK.now_ns()))
                wait_for(f"the end of {name}", lambda n=number: len(of_kind(folder, Kind.EPISODE_ENDED)) >= n)
            sealed = len(FAULTS)
            wait_for("the last recording", lambda: len(of_kind(folder, Kind.RECORDING_SEALED)) >= sealed)
            run.terminate()
            end_of(run)
        for (name, _), go, (from_ns, to_ns) in zip(FAULTS.items(), of_kind(folder, Kind.GO), spans, strict=False):
            print(f"{robot}, {name} ({(to_ns - from_ns) / SECOND:.2f} s): {judged(folder, name, go, from_ns, to_ns)}")
        check_voids(folder)
        assert verify_campaign(folder).problems == []
    finally:
        if emulator is not None:
            emulator.end()


def judged(folder: Path, name: str, go: Event, from_ns: int, to_ns: int) -> str:
    """Which of the two it was."""
    ended = next(event for event in of_kind(folder, Kind.EPISODE_ENDED) if event.episode == go.episode)
    reason, end_ns = str(ended.body["reason"]), int(ended.body["end_ns"])
    t_ns, fast = speeds(folder, go.episode)
    if name == BLOCKED:
        from_ns = next(event for event in of_kind(folder, Kind.NOTE) if event.seq > go.seq).at_ns
        renewed = fast[(t_ns > from_ns + 400 * MILLISECOND) & (t_ns < from_ns + 3 * SECOND // 2)]
        assert renewed.max() > MOVES_RAD_S, "a lease alone would have lapsed after 0.3 s"
        assert from_ns + 3 * SECOND // 2 < end_ns < from_ns + 4 * SECOND, "the cell lets a loop stand for 2 s"
    elif name in STANDS_STILL:
        assert fast[(t_ns > from_ns + SECOND) & (t_ns < to_ns)].max(initial=0.0) < STANDS_RAD_S, "0.3 s, and braking"
    if reason in COUNTS:
        assert name not in NEVER_COUNTS
        later = fast[(t_ns > to_ns) & (t_ns < end_ns)]
        assert end_ns - to_ns < SECOND or later.max(initial=0.0) > MOVES_RAD_S, f"{name}: stood, and {reason}"
        return f"went on, {reason}"
    assert reason in SAYS, name
    assert name not in ALWAYS_COUNTS or to_ns - from_ns > ALWAYS_COUNTS[name], f"{name}: {reason}"
    said = [e for kind in (Kind.HOLD_RAISED, Kind.CELL_FAULTED) for e in of_kind(folder, kind) if e.seq > go.seq]
    void = [event for event in of_kind(folder, Kind.EPISODE_VOIDED) if event.episode == go.episode]
    assert said or void, f"{name}: {reason}, and nobody is asked"
    assert fast[t_ns > end_ns + SECOND].max(initial=0.0) < STANDS_RAD_S, f"{name}: {reason}, and it moves"
    return reason


def check_voids(folder: Path) -> None:
    """A lapsed lease is a hold, and void by the protocol's rule."""
    lapsed = [e.episode for e in of_kind(folder, Kind.EPISODE_ENDED) if e.body["reason"] == "lease_lapsed"]
    void = [e.episode for e in of_kind(folder, Kind.EPISODE_VOIDED) if e.body["reason"] == "process_lost"]
    held = [e for e in of_kind(folder, Kind.HOLD_RAISED) if e.body["code"] == "lease_lapsed"]
    assert lapsed and {*lapsed} <= {*void} and len(held) >= len(lapsed)
