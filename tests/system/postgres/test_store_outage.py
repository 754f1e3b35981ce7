"""The lab's server is killed, restarted, cut off or silent in mid-episode: the run does not notice, no
acknowledged entry is lost, no trial is run twice, and the copy is whole again once the server answers.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.machine.postgres import Postgres, Relay, needs_server
from support.machine.processes import end_with_parent
from support.machine.warm import Warm, warmed
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, start_run
from support.runs.live_campaign import CLOCK, end_of, last_seq, of_kind, running, wait_for

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Event, Kind
from labctl.core.trial import fold, next_trial
from labctl.errors import StorageError
from labctl.runtime.hosting.store_copy import StoreCopy
from labctl.store.server.comparing import compare
from labctl.store.server.connecting import Server
from labctl.store.server.copying import copy_campaign
from labctl.store.server.following import MAIN
from labctl.store.server.host_record import HostRecord
from labctl.store.verifying.verify import verify_campaign

pytestmark = [pytest.mark.thorough, *needs_server]
PATIENCE_S = 60.0
QUIET = {Kind.HOLD_RAISED, Kind.CELL_FAULTED, Kind.EPISODE_VOIDED, Kind.START_WITHHELD}

VICTIMS = ("server", "copy", "server and copy", "run alone")


def name_server(folder: Path, url: str) -> None:
    (folder.parent.parent / "lab.toml").write_text(f'[store]\nurl = "{url}"\ntimeout_s = 2\n')


def there(server: Postgres, folder: Path) -> list[tuple[int, str]]:
    """Position and hash of the entries that the server has of a campaign."""
    asked = server.sql(
        f"SELECT seq || ' ' || hash FROM labctl.event WHERE campaign LIKE '{folder.name}@%' ORDER BY seq"
    )
    return [(int(line.split()[0]), line.split()[1]) for line in asked.splitlines()]


def check_copy(server: Postgres, folder: Path) -> None:
    """Whole, after a copy, and as it is on the host."""
    copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    asked = Server(server.url("cell1"), PATIENCE_S)
    found = compare(HostRecord(folder), asked)
    asked.close()
    assert found.whole, (str(found), found.problems)


def check_trials(events: list[Event]) -> None:
    """Every trial scored once, no arm shown for a trial that was scored already."""
    scored = Counter(event.trial for event in events if event.kind == Kind.OUTCOME_RECORDED)
    assert set(scored.values()) == {1} and len(scored) == len(fold(events).trials)
    done: set[str | None] = set()
    for event in events:
        assert not (event.kind == Kind.ARM_REVEALED and event.trial in done), f"trial {event.trial} was run twice"
        if event.kind == Kind.OUTCOME_RECORDED:
            done.add(event.trial)


@pytest.mark.real_time
@pytest.mark.limit(600)
def test_a_server_that_goes_away_in_mid_episode_is_not_noticed_by_the_run(server: Postgres, tmp_path: Path) -> None:
    """At the go of each of four episodes something else happens to it; each time it is back when the episode is over,
    but for the last, where it stays silent until the run has ended.
    """
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, name="outage", live=True, blocks=2, budget=5.0, durable=True)
    folder, log, relay = campaign.folder, tmp_path / "run.log", Relay(server.port)
    name_server(folder, server.url("cell1", port=relay.port))

    def ended(number: int) -> Callable[[], bool]:
        return lambda: len(of_kind(folder, Kind.RECORDING_SEALED)) >= number

    def went(number: int) -> None:
        wait_for(f"go {number}", lambda: len(of_kind(folder, Kind.GO)) >= number)
        CLOCK.sleep_until(CLOCK.now_ns() + SECOND)

    with running(folder, log) as run:
        went(1)
        wait_for("a copy", lambda: there(server, folder))
        acknowledged = there(server, folder)
        server.kill()
        wait_for("the end of episode 1", ended(1))
        server.start()
        assert there(server, folder)[: len(acknowledged)] == acknowledged, "an acknowledged entry is gone"
        went(2)
        server.stop("fast")
        wait_for("the end of episode 2", ended(2))
        server.start()
        went(3)
        relay.cut()
        wait_for("the end of episode 3", ended(3))
        relay.open()
        went(4)
        wait_for("what came after the cut", lambda: there(server, folder)[-1][0] > len(acknowledged) + 10)
        relay.silent = True
        wait_for("the end of the run", lambda: run.poll() is not None)
        assert run.returncode == 0
    relay.cut()
    events = events_of(folder)
    print(Counter(str(event.body["reason"]) for event in events if event.kind == Kind.EPISODE_ENDED))
    noticed = [event for event in events if event.kind in QUIET and event.body.get("reason") != "not_ready"]
    assert not noticed, "the run held, voided or withheld something, and no busy machine had a controller late"
    check_trials(events)
    assert "the lab's server has not all of it" in log.read_text(), "the run says at its end what is missing there"
    said = (folder / "logs/store.log").read_text()
    assert "it is tried again" in said and "Traceback" not in said
    assert verify_campaign(folder).problems == []
    check_copy(server, folder)


@pytest.mark.real_time
@pytest.mark.limit(300)
def test_a_silent_server_delays_no_stop(server: Postgres, tmp_path: Path) -> None:
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    campaign = make_campaign(tmp_path, arms, name="stopped", live=True, budget=20.0)
    folder, log, relay = campaign.folder, tmp_path / "run.log", Relay(server.port)
    name_server(folder, server.url("cell1", port=relay.port))
    with running(folder, log) as run:
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        wait_for("a copy", lambda: there(server, folder))
        relay.silent = True
        CLOCK.sleep_until(CLOCK.now_ns() + 2 * SECOND)
        asked_ns = CLOCK.now_ns()
        run.send_signal(signal.SIGTERM)
        (ended,) = wait_for("the end of the episode", lambda: of_kind(folder, Kind.EPISODE_ENDED))  # type: ignore[misc]
        assert ended.at_ns - asked_ns < SECOND, "the stop waited"
        wait_for("the end of the run", lambda: run.poll() is not None)
    relay.cut()
    check_copy(server, folder)


def test_a_run_ends_with_a_line_where_the_server_never_answered(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, name="never").folder
    (tmp_path / "lab.toml").write_text(
        '[store]\nurl = "postgresql+psycopg://cell1@127.0.0.1:9/labctl"\ntimeout_s = 1\n'
    )
    copied = StoreCopy(folder)
    assert copied.close() == "the lab's server has not all of it: see logs/store.log; later: labctl database copy never"
    assert "does not answer" in (folder / "logs/store.log").read_text()
    assert (folder / "logs/store.log").stat().st_mode & 0o777 == 0o600
    (tmp_path / "lab.toml").write_text("")
    assert StoreCopy(folder).close() == "", "without [store] nothing is started and nothing said"


@pytest.fixture
def warm() -> Iterator[Warm]:
    with warmed() as made:
        yield made


@contextmanager
def following(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process that copies, as a run starts it."""
    words = [sys.executable, "-P", "-c", MAIN, str(folder)]
    with (folder / "store.out").open("ab") as out:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, stderr=out, preexec_fn=end_with_parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.limit(900)
@pytest.mark.parametrize("rounds", [10])
def test_run_copy_and_server_are_killed_anywhere_and_nothing_acknowledged_is_lost(
    server: Postgres, tmp_path: Path, warm: Warm, rounds: int
) -> None:
    """The crash matrix of the journal, with a server: in each round the run is killed -9 at a random entry, and with it
    the server, the process that copies, both, or neither; then all go on.
    """
    arms = [HUMAN, policy("policy-a", skill="swift"), policy("policy-b", skill="slow")]
    campaign = make_campaign(
        tmp_path, arms, name="matrix", blocks=rounds // 2 + 2, budget=6.0, arming=1.0, max_voids=100, durable=True
    )
    folder, log, draw = campaign.folder, tmp_path / "run.log", random.Random(23)
    name_server(folder, server.url("cell1"))
    hit: Counter[str] = Counter()
    grown = 0
    for number in range(rounds):
        victims = VICTIMS[number % 4]
        before = events_of(folder)
        reached = len(before) + draw.randint(1, 14)
        with following(folder) as copying:
            run = start_run(folder, live=False, log=log, warm=warm)
            while run.poll() is None and last_seq(folder) < reached:
                CLOCK.sleep_until(CLOCK.now_ns() + 2 * MILLISECOND)
            acknowledged = there(server, folder)
            if run.poll() is not None:  # a quick machine was through before it could be killed again
                assert number >= len(set(VICTIMS)), "each was killed once at least"
                break
            if "copy" in victims:
                copying.kill()
            if "server" in victims:
                server.kill()
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            killed = events_of(folder)
            assert killed[: len(before)] == before, "an acknowledged event changed or is gone"
            if "server" in victims:
                with pytest.raises(StorageError):
                    copy_campaign(folder, server.url("cell1"), 2.0)
                server.start()
        on_server = there(server, folder)
        assert on_server[: len(acknowledged)] == acknowledged, "an entry that the server had acknowledged is gone"
        assert on_server == [(event.seq, event.hash) for event in killed[: len(on_server)]]
        grown += len(acknowledged) > len(before)
        trial = next_trial(fold(killed))
        hit[f"{victims}, {trial.state if trial else 'over'}"] += 1
    with following(folder) as copying:
        assert start_run(folder, live=False, log=log, warm=warm).wait() == 0
        assert copying.stdin is not None
        copying.stdin.close()
        assert end_of(copying) == 0, "it ends once all of it is there"
    done = events_of(folder)
    check_trials(done)
    assert there(server, folder) == [(event.seq, event.hash) for event in done]
    assert verify_campaign(folder).problems == []
    check_copy(server, folder)
    print(f"\n{rounds} rounds, in {grown} of them with new entries there before the kill; what was killed: {dict(hit)}")
