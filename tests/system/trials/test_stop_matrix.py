"""Issue 17.1 to 3 as one table: where a trial stands, and what stands still or is stopped then. Either the trial goes
on, and a robot that was driven still moves, or the journal says why it does not; there is no third outcome, and nothing
moves after an acknowledgement alone.

A state of the trial's table, or a fault, that is added without its cells fails here. The same with processes of their
own, for each robot: `tests/system/live/test_stop_matrix_live.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.stopped_cell import STOPS, StoppedCell, trial_state

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Event, Kind
from labctl.core.trial import State
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings

# -- where a trial stands: the columns


def planned(cell: StoppedCell) -> None:
    cell.begin_session()


def on_the_way_home(cell: StoppedCell) -> None:
    cell.begin_session()
    assert cell.command("stage", role="setter")["ok"]
    cell.wait(SECOND // 5)
    assert not cell.shown()["staged"]


def home(cell: StoppedCell) -> None:
    cell.begin()


def armed(cell: StoppedCell) -> None:
    cell.begin()
    episode = cell.commit()
    cell.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
    cell.hear(Message("run", "ready", {"episode": episode}, sender="controller"))


def about_to_start(cell: StoppedCell) -> None:
    armed(cell)
    assert cell.command("start")["ok"]


def started(cell: StoppedCell) -> None:
    cell.begin()
    cell.start()


def running(cell: StoppedCell) -> None:
    cell.begin()
    cell.drive(cell.start())
    cell.wait(SECOND // 2)


def scoring(cell: StoppedCell) -> None:
    running(cell)
    assert cell.command("end")["ok"]
    sealed(cell)


def sealed(cell: StoppedCell) -> None:
    episode, cell.driven = cell.events(Kind.EPISODE_STARTED)[-1].episode, None
    cell.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
    cell.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))


STATES: dict[Callable[[StoppedCell], None], State] = {
    planned: State.PLANNED,
    on_the_way_home: State.STAGING,
    home: State.STAGING,
    armed: State.ARMED,
    about_to_start: State.ARMED,
    started: State.RUNNING,
    running: State.RUNNING,
    scoring: State.SCORING,
}
NO_COLUMN = {
    State.COMMITTED: "left within the turn in which it is entered",
    State.SCORED: "the next trial is planned",
    State.NOT_RUN: "nothing is ordered of it",
}

# -- what happens: the rows


def stop_key(cell: StoppedCell) -> None:
    cell.stop_past_run()
    assert cell.command("stop")["ok"]


def stop_socket(cell: StoppedCell) -> None:
    cell.stop_past_run()


def run_process_stopped(seconds: float) -> Callable[[StoppedCell], None]:
    """SIGSTOP and SIGCONT: neither its loop nor the thread that renews the lease."""
    return lambda cell: cell.without("run renewer", round(seconds * SECOND))


def stopped_while_frozen(*, key: bool) -> Callable[[StoppedCell], None]:
    """The run process stands still for 5 s, and in the fifth of them somebody stops the robot: past it, and with the
    key as a command as well, which it finds among its mail when it goes on.
    """

    def happens(cell: StoppedCell) -> None:
        cell.without("run renewer", 4 * SECOND)
        cell.stop_past_run()
        if key:
            body = {"id": "frozen", "verb": "stop", "role": "operator", "who": "ann", "args": {}, "version": None}
            cell.to_run.append(Message("run", "command", body, sender="console"))
        cell.without("run renewer", SECOND)

    return happens


def fsync(seconds: float) -> Callable[[StoppedCell], None]:
    """The journal waits for its disk; the renewer goes on."""
    return lambda cell: cell.without("run", round(seconds * SECOND))


def cpu_theft(cell: StoppedCell) -> None:
    """For three seconds each process gets its turn when it pleases somebody else."""
    drawn = random.Random(17)
    for _ in range(20):
        gone = [name for name in ("run", "renewer", "arm", "driver") if drawn.random() < 0.5]
        cell.without(" ".join(gone), 150 * MILLISECOND)


FAULTS: dict[str, Callable[[StoppedCell], None]] = {
    "stop key": stop_key,
    "stop socket": stop_socket,
    "run stopped 0.05 s": run_process_stopped(0.05),
    "run stopped 0.3 s": run_process_stopped(0.3),
    "run stopped 0.6 s": run_process_stopped(0.6),
    "run stopped 5 s": run_process_stopped(5.0),
    "stop key in such 5 s": stopped_while_frozen(key=True),
    "stop socket in such 5 s": stopped_while_frozen(key=False),
    "fsync of 1 s": fsync(1.0),
    "fsync of 2 s": fsync(2.0),
    "run's loop blocked 5 s": fsync(5.0),
    "cpu theft": cpu_theft,
}

# -- what has to come of it: the hold that the journal has, "" where it goes on. 2 s is what the shipped cells let the
# run's loop stand still (run_silent_s), so that a journal of 2 s is over it by what it took to notice.
GOES_ON = ""
BY_HAND = {state.__name__: "operator_stop" for state in STATES}
NOTHING = {state.__name__: GOES_ON for state in STATES}
LAPSES = {**NOTHING, "on_the_way_home": "way_home", "started": "lease_lapsed", "running": "lease_lapsed"}
# what moved had stopped by then; a person's stop is a hold of its own all the same, behind the one of the lapse
BOTH = {name: f"{lapse} operator_stop".strip() for name, lapse in LAPSES.items()}
CELLS: dict[str, dict[str, str]] = {
    "stop key": BY_HAND,
    "stop socket": BY_HAND,
    "run stopped 0.05 s": NOTHING,
    "run stopped 0.3 s": LAPSES,
    "run stopped 0.6 s": LAPSES,
    "run stopped 5 s": LAPSES,
    "stop key in such 5 s": BOTH,
    "stop socket in such 5 s": BOTH,
    "fsync of 1 s": NOTHING,
    "fsync of 2 s": LAPSES,
    "run's loop blocked 5 s": LAPSES,
    "cpu theft": NOTHING,
}
MOVES = ("on_the_way_home", "started", "running")
# what a longer one of its kind shows as well, where nothing moves
REPEATS = ("run stopped 0.05 s", "run stopped 0.3 s", "run stopped 0.6 s", "fsync of 1 s")
ENDS = {"operator_stop": "safety_stop", "lease_lapsed": "lease_lapsed"}  # of an episode, by the hold
COUNTS = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}


def cases() -> Iterator[object]:
    for state in STATES:
        for fault in FAULTS:
            often = [pytest.mark.thorough] if state.__name__ not in MOVES and fault in REPEATS else []
            yield pytest.param(state, fault, marks=often, id=f"{state.__name__}, {fault}")


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[StoppedCell]:
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    folder = make_campaign(tmp_path, arms, items=2, budget=60.0, process_lost="void").folder
    with Campaign.open(folder, writer=True) as campaign:
        made = StoppedCell(campaign)
        yield made
        made.close()


def of(events: Sequence[Event], kind: Kind, key: str) -> list[object]:
    return [event.body[key] for event in events if event.kind == kind]


@pytest.mark.parametrize(("state", "fault"), [*cases()])
def test_it_goes_on_or_the_journal_says_why_not(
    cell: StoppedCell, state: Callable[[StoppedCell], None], fault: str
) -> None:
    state(cell)
    before, holds = len(cell.events()), CELLS[fault][state.__name__].split()
    FAULTS[fault](cell)
    cell.wait(SECOND // 10)
    if state is started and trial_state(cell) == State.RUNNING:
        cell.drive(str(cell.events(Kind.EPISODE_STARTED)[-1].episode))
    cell.wait(SECOND)
    new = cell.events()[before:]
    assert of(new, Kind.HOLD_RAISED, "code") == holds
    if holds:
        barred(cell, state.__name__, holds, new)
    else:
        goes_on(cell, state.__name__, new)


def barred(cell: StoppedCell, state: str, holds: Sequence[str], new: Sequence[Event]) -> None:
    """It stands, the journal has what that cost, and nothing but a new order moves it after a person's word on each of
    the holds, of which the first is what ended or gave up what went on.
    """
    hold = holds[0]
    assert not cell.moved(cell.now_ns - SECOND // 2, cell.now_ns)
    ended = [ENDS[hold]] if state in ("started", "running") else []
    assert of(new, Kind.EPISODE_ENDED, "reason") == ended
    assert of(new, Kind.EPISODE_VOIDED, "reason") == (["safety_stop"] if state in ("armed", "about_to_start") else [])
    assert of(new, Kind.TRIAL_RELEASED, "reason") == ([hold] if state in ("on_the_way_home", "home") else [])
    for code in holds:
        assert not cell.command("stage", role="setter")["ok"]
        said = {"cause": "danger", "why": "a look at it"} if code == "operator_stop" else {}
        assert cell.command("acknowledge", code=code, **said)["ok"]
    from_ns = cell.now_ns
    cell.wait(3 * SECOND)
    assert not cell.moved(from_ns, cell.now_ns), "an acknowledgement permits, it does not order"
    if ended:
        sealed(cell)
        voids = [event.body["reason"] for event in cell.events(Kind.EPISODE_VOIDED)]
        by_hand = [] if state == "running" else ["safety_stop"]  # before go nothing had begun
        assert voids == (by_hand if hold == "operator_stop" else ["process_lost"]), "by the protocol's rule"
    if trial_state(cell) == State.PLANNED:
        cell.stage()


def goes_on(cell: StoppedCell, state: str, new: Sequence[Event]) -> None:
    """Nothing was lost: the robot moves where somebody moves it, and the episode counts."""
    assert not of(new, Kind.EPISODE_ENDED, "reason") and not of(new, Kind.EPISODE_VOIDED, "reason")
    if state == "on_the_way_home":
        cell.wait(15 * SECOND)
        assert cell.shown()["staged"]
    elif state in ("started", "running"):
        assert cell.moved(cell.now_ns - SECOND // 2, cell.now_ns)
        assert cell.command("end")["ok"]
        sealed(cell)
    if trial_state(cell) == State.SCORING:
        assert cell.command("score", role="assessor", **COUNTS)["ok"] and cell.events(Kind.OUTCOME_RECORDED)


def test_each_state_and_each_fault_has_its_cell() -> None:
    """Printed with -s: which cells there are."""
    assert {*STATES.values()} | {*NO_COLUMN} == {*State} and not {*STATES.values()} & {*NO_COLUMN}
    assert {*CELLS} == {*FAULTS} == {*STOPS}, "a fault without a row, or a row without a fault"
    names = [state.__name__ for state in STATES]
    assert all({*row} == {*names} for row in CELLS.values())
    print(f"{'':24}{''.join(f'{name:27}' for name in names)}")
    for fault, row in CELLS.items():
        print(f"{fault:24}{''.join(f'{row[name] or chr(43):27}' for name in names)}")
