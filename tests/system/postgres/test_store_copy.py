"""A campaign and its copy on a real PostgreSQL server: the same rows, nothing that tells arms apart, nothing that
anybody may change.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.json_documents import judged
from support.machine.postgres import PASSWORD, Postgres, Relay, needs_server
from support.runs.campaigns import events_of, make_campaign, unblind
from support.runs.recordings import Recordings, copied
from support.runs.server_copies import PATIENCE_S, compared, own, sent

from labctl.cli import call
from labctl.clock import SECOND, MonotonicClock
from labctl.core.events import Kind
from labctl.errors import BrokenRecord, StateError, StorageError
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import close_campaign
from labctl.store.database_backend import insert_rows, sqlite_url
from labctl.store.server.connecting import Server
from labctl.store.server.copying import copy, copy_campaign
from labctl.store.server.fetching import fetch, listed
from labctl.store.server.host_record import HostRecord
from labctl.store.verifying.verified import in_passing
from labctl.store.verifying.verify import verify_campaign

pytestmark = [pytest.mark.thorough, *needs_server]
CLOCK = MonotonicClock()


def rows(path: Path, *tables: str) -> dict[str, list[Sequence[object]]]:
    with closing(sqlite3.connect(path)) as db:
        return {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in tables}


def test_every_row_that_may_leave_is_copied_once_and_nothing_that_tells_arms_apart(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    folder = own(recordings, tmp_path, "blind-copy")
    first = sent(folder, server)
    assert first.whole and first.blind and first.chunks > 50 and first.witnessed
    again = copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    assert again.sent == 0 and again.entries == first.entries == len(events_of(folder))
    on_server = server.sql("SELECT DISTINCT name FROM labctl.stream WHERE campaign LIKE 'blind-copy@%'").split()
    in_seal = [name for (_, _, name, _) in rows(folder / "seal/traces.db", "stream")["stream"]]
    assert in_seal and not set(on_server) & set(in_seal)
    dump = server.program(
        *("pg_dump", "--inserts", "-h", "127.0.0.1", "-p", str(server.port), "-U", "labctl_admin", "-d", "labctl")
    )
    assert "zebra" not in dump and "sim_policy" not in dump, "the server holds a name of an arm"
    for stream in set(in_seal):
        assert f"'{stream}'" not in dump
    unblind(folder)
    after = sent(folder, server)
    assert after.whole and not after.blind and after.chunks > first.chunks
    on_server = server.sql("SELECT DISTINCT name FROM labctl.stream WHERE campaign LIKE 'blind-copy@%'").split()
    assert set(in_seal) <= set(on_server), "after unblinding the copy is whole"


def test_streams_that_lie_unsealed_in_an_old_campaign_do_not_leave_either(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    """Until 2026-11-23 one database held all of them."""
    folder = own(recordings, tmp_path, "one-database")
    sealed = rows(folder / "seal/traces.db", "stream", "chunk")
    with closing(sqlite3.connect(folder / "traces.db")) as db, db:
        for table, found in sealed.items():
            db.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(found[0]))})", found)
    (folder / "seal/traces.db").unlink()
    assert sent(folder, server).whole
    on_server = server.sql("SELECT DISTINCT name FROM labctl.stream WHERE campaign LIKE 'one-database@%'").split()
    assert on_server and not {str(row[2]) for row in sealed["stream"]} & set(on_server)


def test_the_server_itself_refuses_a_stream_that_tells_arms_apart(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    folder = own(recordings, tmp_path, "faulty-writer")
    sent(folder, server)
    key, writer = HostRecord(folder).key, Server(server.url("cell1"), PATIENCE_S)
    with pytest.raises(StorageError, match="before unblinding"), writer.transaction():
        writer.put(
            "INSERT INTO labctl.stream (campaign, episode, name, spec) VALUES (%s, %s, %s, %s)",
            [(key, "e-1", "policy/latency", json.dumps({"name": "policy/latency", "arm_dependent": True}))],
        )
    writer.close()


def test_a_campaign_goes_to_the_server_and_back_with_every_digest_the_same(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    folder = own(recordings, tmp_path, "there-and-back")
    unblind(folder)
    sent(folder, server)
    before = {name: rows(folder / name, "stream", "chunk") for name in ("traces.db", "seal/traces.db")}
    before["journal.db"] = rows(folder / "journal.db", "event", "command")
    heads = verify_campaign(folder).head
    cell = Server(server.url("cell1"), PATIENCE_S)
    fetched = fetch(cell, "there-and-back", tmp_path / "back")
    cell.close()
    assert fetched.head == heads.replace(" ", ":")
    assert {p.name for p in (tmp_path / "back").iterdir()} == {"journal.db", "traces.db", "seal"}
    for name, had in before.items():
        assert rows(tmp_path / "back" / name, *had) == had, f"{name} came back otherwise"
        for path in folder.glob(f"{name}*"):
            path.unlink()  # the host lost it
        shutil.copy(tmp_path / "back" / name, folder / name)
    assert verify_campaign(folder).problems == [] and verify_campaign(folder).head == heads


def test_cells_copy_at_once_and_two_campaigns_of_one_name_stay_apart(server: Postgres, tmp_path: Path) -> None:
    """Two labs, a campaign of the same name in each, and two processes for each of them."""
    folders = []
    for lab, entropy in (("lab-1", b"1" * 32), ("lab-2", b"2" * 32)):
        folder = make_campaign(tmp_path / lab, name="namesake", blocks=3, entropy=entropy).folder
        run_campaign(folder, lambda line: None, manual=True)
        folders.append(folder)
    logins = ("cell1", "cell2")
    with ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(copy_campaign, folder, server.url(login), PATIENCE_S)
            for _ in range(2)
            for folder, login in zip(folders, logins, strict=True)
        ]
        counts = [one.result() for one in done]
    for folder, login in zip(folders, logins, strict=True):
        assert compared(folder, server, login).whole
    assert sum(one.sent_entries for one in counts) == sum(len(events_of(folder)) for folder in folders)
    asked = Server(server.url("viewer"), PATIENCE_S)
    assert [one.writer for one in listed(asked) if one.name == "namesake"] in (["cell1", "cell2"], ["cell2", "cell1"])
    asked.close()


def test_two_hosts_that_go_on_with_one_campaign_are_told_apart(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    """A folder that was copied and goes on in both places: the second to come is refused, nothing of it is there."""
    folder = own(recordings, tmp_path, "forked")
    sent(folder, server)
    other = copied(folder, tmp_path / "other/campaigns/forked")
    close_campaign(folder, who="one")
    close_campaign(other, who="two")
    assert sent(folder, server).whole
    with pytest.raises(BrokenRecord, match="another entry"):
        copy_campaign(other, server.url("cell1"), PATIENCE_S)
    differs = compared(other, server)
    assert not differs.whole and any("differs in" in problem for problem in differs.problems)
    assert compared(folder, server).whole


def test_a_journal_that_was_cut_or_made_anew_is_named_by_its_copy(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    folder = own(recordings, tmp_path, "cut-short")
    sent(folder, server)
    with closing(sqlite3.connect(folder / "journal.db")) as db, db:
        db.execute("DROP TRIGGER event_no_delete")
        db.execute("DELETE FROM event WHERE seq > 30")
    with pytest.raises(BrokenRecord, match="ends before it"):
        copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    assert any("is there and not here" in problem for problem in compared(folder, server).problems)


def test_an_entry_that_does_not_hold_is_not_sent(server: Postgres, recordings: Recordings, tmp_path: Path) -> None:
    folder = own(recordings, tmp_path, "edited-first")
    with closing(sqlite3.connect(folder / "journal.db")) as db, db:
        db.execute("DROP TRIGGER event_no_update")
        db.execute("UPDATE event SET who = 'somebody else' WHERE seq = 12")
    with pytest.raises(BrokenRecord, match="seq 12"):
        copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    assert server.sql("SELECT count(*) FROM labctl.event WHERE campaign LIKE 'edited-first@%'") == "0"


def test_the_verbs_say_it_all_and_no_password_is_anywhere(
    server: Postgres, recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own(recordings, tmp_path, "by-verb")
    lab = folder.parent.parent
    (lab / "lab.toml").write_text(f'[store]\nurl = "{server.url("cell1")}"\n')
    at = ("--lab", str(lab))
    assert call(["database", "check", "by-verb", *at]) == 1  # nothing is there yet
    assert call(["database", "copy", *at]) == 0
    assert call(["database", "check", *at]) == 0
    assert call(["database", "list", *at]) == 0
    assert call(["close", "by-verb", *at, "--who", "p01"]) == 0  # which copies by itself
    capsys.readouterr()
    for words in (
        ["init", "--url", server.url()],
        ["copy", *at],
        ["list", *at],
        ["fetch", "by-verb", "--out", str(tmp_path / "back"), *at],
        ["check", *at],
    ):
        assert call(["database", *words, "--json"]) == 0
        document = judged(capsys.readouterr().out)
        assert document["does"] == words[0]
    assert document["campaigns"][0]["entries"] == len(events_of(folder)) and document["campaigns"][0]["whole"]
    assert call(["database", "fetch", "by-verb", "--out", str(tmp_path / "back"), *at]) == 2
    assert call(["database", "init", "--url", server.url()]) == 0  # once more: changes nothing
    assert call(["database", "check", *at]) == 0
    files = [path.read_bytes() for path in lab.rglob("*") if path.is_file()]
    shown = capsys.readouterr()
    assert not any(PASSWORD.encode() in text for text in (*files, shown.out.encode(), shown.err.encode()))


def test_a_server_that_is_away_is_one_line_and_no_verb_fails_for_it(
    server: Postgres, recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own(recordings, tmp_path, "nobody-there")
    lab = folder.parent.parent
    (lab / "lab.toml").write_text('[store]\nurl = "postgresql+psycopg://cell1@127.0.0.1:9/labctl"\ntimeout_s = 2\n')
    assert call(["database", "copy", "--lab", str(lab)]) == 69
    assert call(["close", "nobody-there", "--lab", str(lab), "--who", "p01"]) == 0
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 2 and all("the server does not answer" in line for line in said)
    assert "later: labctl database copy nobody-there" in said[1]


def test_a_wrong_password_a_missing_database_and_one_not_set_up_are_each_one_line(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url, said in (
        (server.url("nobody"), "password"),
        (server.url("cell1", database="none-such"), "no such role or database"),
        (server.url("cell1", database="postgres"), "labctl database init"),
    ):
        with pytest.raises((StorageError, StateError), match=said):
            Server(url, PATIENCE_S)
    monkeypatch.setenv("PGPASSWORD", "wrong-8841")
    with pytest.raises(StorageError) as refused:
        Server(server.url("cell1"), PATIENCE_S)
    assert "password" in str(refused.value) and "wrong-8841" not in str(refused.value)


def test_what_the_library_says_names_no_host_so_that_a_bug_s_report_can_hide_it() -> None:
    """A report replaces what looks like an address, as the URL does; the name of a host by itself does not."""
    with pytest.raises(StorageError, match="does not answer") as away:
        Server("postgresql+psycopg://cell1@localhost:9/labctl", 2.0)
    assert str(away.value).startswith("postgresql+psycopg://cell1@localhost:9/labctl: ")
    assert str(away.value).count("localhost") == 1 and "\n" not in str(away.value)


def test_a_copy_continues_where_it_was_broken_off(server: Postgres, recordings: Recordings, tmp_path: Path) -> None:
    """Chunks are sent a transaction at a time: what was committed before the break is not sent again."""
    folder = own(recordings, tmp_path, "in-two-goes")
    host, writer = HostRecord(folder), Server(server.url("cell1"), PATIENCE_S)
    done = copy(host, writer, everything=False)
    assert done.sent_entries == len(events_of(folder)) and done.sent_chunks > 0
    assert copy(host, writer, everything=False).sent == 0
    writer.close()
    assert sent(folder, server).whole


def test_a_recording_is_sent_once_it_is_sealed_and_only_as_it_was(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    """After a power cut an open recording may end earlier than it did; what the server has never does."""
    folder = own(recordings, tmp_path, "sealed-first")
    insert_rows(
        sqlite_url(folder / "traces.db"),
        "stream",
        ("campaign", "episode", "name", "spec"),
        [("sealed-first", "e-open", "arm/state", "{}")],
    )
    with closing(sqlite3.connect(folder / "traces.db")) as db, db:
        stream = "stream = 'arm/obs'" if db.execute("SELECT 1 FROM chunk WHERE stream = 'arm/obs'").fetchone() else "1"
        chunk = f"SELECT campaign, episode, stream, seq FROM chunk WHERE {stream} ORDER BY episode, seq"
        first = db.execute(chunk).fetchone()
        db.execute(
            "INSERT INTO chunk SELECT campaign, 'e-open', 'arm/state', 0, t0_ns, t1_ns, n, sha256, payload "
            "FROM chunk WHERE campaign = ? AND episode = ? AND stream = ? AND seq = ?",
            first,
        )
        db.execute("DELETE FROM chunk WHERE campaign = ? AND episode = ? AND stream = ? AND seq = ?", first)
    done = copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    assert [first[1] in line and "not the ones that were sealed" in line for line in done.broken] == [True]
    one = "SELECT count(*) FROM labctl.chunk WHERE campaign LIKE 'sealed-first@%' AND episode = '{}'"
    assert server.sql(one.format("e-open")) == "0"
    assert server.sql(one.format(first[1]) + f" AND stream = '{first[2]}'") == "0"
    assert done.sent_entries == len(events_of(folder)) and done.sent_chunks > 50, "the rest is there"


def test_a_server_that_stops_answering_is_left_in_time_with_one_line(
    server: Postgres, capfd: pytest.CaptureFixture[str]
) -> None:
    relay = Relay(server.port)
    asked = Server(server.url("cell1", port=relay.port), 2.0)
    relay.silent = True
    before = CLOCK.now_ns()
    with pytest.raises(StorageError, match="no answer within 2 s"), asked.transaction():
        asked.ask("SELECT 1")
    assert CLOCK.now_ns() - before < 10 * SECOND
    asked.close()
    relay.cut()
    assert capfd.readouterr().err == ""


def test_the_server_s_views_say_what_the_journal_says(server: Postgres, recordings: Recordings, tmp_path: Path) -> None:
    folder = own(recordings, tmp_path, "read-models")
    events = events_of(folder)
    sent(folder, server)
    asked = Server(server.url("viewer"), PATIENCE_S, reading=True)
    (one,) = [found for found in listed(asked) if found.name == "read-models"]
    with in_passing(folder) as campaign:
        state = campaign.state
        assert (one.phase, one.trials, one.scored) == (str(state.phase), len(state.trials), len(state.trials))
        assert (one.entries, one.head, one.cell) == (state.last_seq, state.head, "test-cell")
        episodes = campaign.record().episodes
    unblind(folder)
    assert [found.phase for found in listed(asked) if found.name == "read-models"] == ["open"]
    sent(folder, server)
    assert [found.phase for found in listed(asked) if found.name == "read-models"] == ["unblinded"]
    rows_of = (
        "SELECT episode, trial, reason, operations, sealed, voided, scored FROM labctl.episodes "
        "WHERE campaign = %s ORDER BY episode"
    )
    there = asked.rows(rows_of, lambda *row: row, one.campaign)
    asked.close()
    ended = {event.episode: event for event in events if event.kind == Kind.EPISODE_ENDED}
    moved = Counter(event.episode for event in events if event.kind == Kind.OPERATION_RECORDED)
    assert len(there) == len(ended) == len(episodes)
    for episode, trial, reason, operations, *flags in there:
        assert (trial, reason) == (ended[episode].trial, ended[episode].body["reason"])
        assert operations == moved[episode] and flags == [True, False, True]
