"""Two cells and their seal host as processes: links cut, slow and lossy, either side killed. No acknowledged event is
lost, no trial is run twice, and nothing begins while the seal host is away.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from support.joint.joint_labs import Labs, make_labs
from support.joint.wires import SERVED, Wires, by_namespaces, by_relay, kill
from support.machine.warm import warmed
from support.runs.campaigns import events_of
from support.runs.live_campaign import CLOCK, end_of, of_kind, wait_for

from labctl.clock import MILLISECOND
from labctl.core.events import Event, Kind
from labctl.joint.checking import verify_joint
from labctl.joint.keys import read_invitation
from labctl.joint.state import JointKind
from labctl.store.journal import events_of as every_event_of

LONG = [pytest.mark.thorough, pytest.mark.limit(1500)]
ROUNDS = 40


def over(wires: Wires, folders: dict[str, Path]) -> None:
    """Close, freeze, unblind everything by command, and hold the whole record together."""
    for cell, folder in folders.items():
        for verb in (("close",), ("freeze", "--unreviewed")):
            wires.labctl(cell, verb[0], str(folder), *verb[1:])
        wires.labctl(cell, "joint", "tell", str(folder))
    name, lab = wires.labs.made.folder.name, str(wires.labs.host)
    wires.labctl("host", "joint", "unblind", name, "--lab", lab)
    for cell, folder in folders.items():
        wires.labctl(cell, "unblind", str(folder))
    said = wires.labctl("host", "joint", "verify", name, *map(str, folders.values()), "--lab", lab)
    assert "the record holds" in said
    _published_without_its_key(wires, "a", folders["a"])
    for folder in folders.values():
        events = events_of(folder)
        arm = {slot["trial"]: slot["arm"] for slot in events[-1].body["schedule"]}
        scored = [str(event.trial) for event in events if event.kind == Kind.OUTCOME_RECORDED]
        assert sorted(scored) == sorted(arm), "each trial was scored, once"
        assert len(set(Counter(arm[trial] for trial in scored).values())) == 1, "arms are balanced in each cell"


def _published_without_its_key(wires: Wires, cell: str, folder: Path) -> None:
    out, key = folder.with_name("published"), read_invitation(wires.labs.invitation(cell)).secret_key.encode()
    wires.labctl(cell, "publish", str(folder), "--out", str(out), "--licence", "CC-BY-4.0")
    assert key in b"".join(path.read_bytes() for path in (folder / "seal").iterdir() if path.is_file())
    assert not [path for path in out.rglob("*") if path.is_file() and key in path.read_bytes()]


@pytest.mark.thorough
@pytest.mark.limit(1500)
def test_whatever_link_and_processes_suffer_each_trial_is_run_once(tmp_path: Path) -> None:
    labs, chance = make_labs(tmp_path, blocks=8), random.Random(ROUNDS)
    with warmed(*SERVED) as warm, by_relay(labs, warm) as wires:
        host = wires.serve()
        folders = {cell: wires.join(cell) for cell in "ab"}
        runs = {cell: wires.run(cell, folder, live=False) for cell, folder in folders.items()}
        known: dict[Path, list[Event]] = {}
        try:
            for _ in range(ROUNDS):
                CLOCK.sleep_until(CLOCK.now_ns() + chance.randrange(3000) * MILLISECOND)
                act, cell = chance.choice(["host", "cell", "cut", "slow", "lossy", "join"]), chance.choice("ab")
                if act == "host":
                    kill(host)
                    _kept(known, labs.made.folder, every_event_of)
                    host = wires.serve()
                elif act == "cell":
                    kill(runs[cell])
                    _kept(known, folders[cell], every_event_of)
                else:
                    _suffer(wires, act, cell, chance)
                for name, run in runs.items():
                    if run.poll() is not None:
                        runs[name] = wires.run(name, folders[name], live=False)
            for cell in "ab":
                _calm(wires, cell)
                while _left(folders[cell]):
                    runs[cell].wait()
                    runs[cell] = wires.run(cell, folders[cell], live=False)
                    runs[cell].wait()
            _kept(known, labs.made.folder, every_event_of)
            over(wires, folders)
        finally:
            for process in (host, *runs.values()):
                kill(process)


def _suffer(wires: Wires, act: str, cell: str, chance: random.Random) -> None:
    lines = {
        "cut": "cut",
        "join": "join",
        "slow": f"delay {chance.random():.2f}",
        "lossy": f"lose {chance.random():.2f}",
    }
    wires.relays[cell].say(lines[act])


def _calm(wires: Wires, cell: str) -> None:
    for line in ("join", "delay 0", "lose 0"):
        wires.relays[cell].say(line)


def _left(folder: Path) -> bool:
    return len(of_kind(folder, Kind.OUTCOME_RECORDED)) < len(events_of(folder)[0].body["schedule"])


def _kept(known: dict[Path, list[Event]], folder: Path, read: Callable[[Path], list[Event]]) -> None:
    """What was acknowledged before a kill is there after it, as it was."""
    events = read(folder)
    before = known.get(folder, [])
    assert events[: len(before)] == before, "an acknowledged event changed or is gone"
    known[folder] = events


@pytest.mark.real_time
@pytest.mark.parametrize(
    "wired",
    [
        pytest.param(by_relay, id="through a relay", marks=LONG),
        pytest.param(by_namespaces, id="in namespaces", marks=[pytest.mark.privileged, *LONG]),
    ],
)
def test_a_link_cut_in_mid_episode_ends_no_episode_and_lets_none_begin(
    tmp_path: Path, wired: Callable[[Labs], AbstractContextManager[Wires]]
) -> None:
    labs = make_labs(tmp_path, blocks=4, arming=12.0)
    with wired(labs) as wires:
        host = wires.serve()
        folders = {cell: wires.join(cell) for cell in "ab"}
        runs = {cell: wires.run(cell, folder, live=True) for cell, folder in folders.items()}
        try:
            wait_for("go of the first episode", lambda: of_kind(folders["a"], Kind.GO))
            wires.cut("a")
            wait_for("its score", lambda: of_kind(folders["a"], Kind.OUTCOME_RECORDED))
            told = wait_for("the hold", lambda: b"no new trial begins" in _log(labs, "a"))
            given = _given(labs, "a")
            at_b = len(of_kind(folders["b"], Kind.ARM_REVEALED))
            wait_for("a trial of the other cell", lambda: len(of_kind(folders["b"], Kind.ARM_REVEALED)) > at_b)
            assert told and _given(labs, "a") == given == len(of_kind(folders["a"], Kind.ARM_REVEALED)) == 1
            assert not of_kind(folders["a"], Kind.EPISODE_VOIDED), "nothing is void for a link that was cut"
            wires.mend("a")
            wait_for("the seal host again", lambda: b"the seal host answers again" in _log(labs, "a"))
            for cell, run in runs.items():
                assert end_of(run) == 0, _log(labs, cell).decode()
            for event in (event for event in events_of(folders["a"]) if event.kind == Kind.ARM_REVEALED):
                clock = event.body["joint"]
                assert abs(clock["offset_s"]) <= clock["bound_s"], "one machine's clock, within its bound"
            over(wires, folders)
            assert verify_joint(labs.made.folder, list(folders.values())).problems == []
        finally:
            for process in (host, *runs.values()):
                kill(process)


def _given(labs: Labs, cell: str) -> int:
    events = every_event_of(labs.made.folder)
    return len({event.trial for event in events if event.kind == JointKind.GIVEN and event.body["cell"] == cell})


def _log(labs: Labs, cell: str) -> bytes:
    return (labs.cells[cell] / "run.log").read_bytes()
