"""Claims about the journal: append-only, chained, committed before it returns, readable beside a writer."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains import chain

from labctl.clock import ManualClock
from labctl.core.events import GENESIS, Event, Kind, event_hash
from labctl.errors import BrokenRecord, StateError, StorageError
from labctl.store.database_backend import sqlite_url
from labctl.store.journal import DuplicateCommand, Journal, chain_problems

CLOCK = ManualClock()
REST = "kind, at_ns, boot, wall, who, trial, episode, '{}', prev, hash"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path / "journal.db")


@pytest.fixture
def journal(url: str):
    made = Journal.create(url, "c", durable=False)
    yield made
    made.close()


def add(journal: Journal, text: str = "x", **more) -> Event:
    return journal.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="run", body={"text": text}, **more)


def test_an_appended_event_is_read_back_equal_and_chained(journal):
    first, second = add(journal, trial="t-1"), add(journal, episode="e-1")
    assert journal.events() == [first, second]
    assert (first.prev, second.prev) == (GENESIS, first.hash)
    assert journal.head() == (2, second.hash)
    assert journal.events(after=1) == [second]
    assert chain_problems(journal.events()) == []


def test_the_first_entries_alone_can_be_read(journal):
    first, _, _ = (add(journal) for _ in range(3))
    assert journal.events(most=1) == [first]


def test_entries_that_were_read_before_are_the_same_ones_and_a_changed_one_is_as_it_is_now(journal, url):
    add(journal)
    add(journal)
    before = journal.events()
    later = add(journal)
    again = journal.events(known=before)
    assert all(one is two for one, two in zip(again, before, strict=False)) and again[2] == later
    forged = [before[0], replace(before[1], body={"text": "another"})]
    assert journal.events(known=forged)[1] == before[1], "what is in the journal counts, not what was read"


def test_texts_that_entries_share_are_in_memory_once(journal):
    add(journal, trial="t-1")
    add(journal, trial="t-1")
    one, two = journal.events()
    assert one.who is two.who and one.trial is two.trial and one.kind is two.kind and two.prev is one.hash


def test_a_committed_event_is_seen_by_another_connection_at_once(journal, url):
    event = add(journal)
    reader = Journal.open(url, "c", readonly=True)
    assert reader.events() == [event]
    later = add(journal)
    assert reader.head() == (2, later.hash)
    reader.close()


def test_a_body_hashes_the_same_after_a_round_trip_through_the_database(journal):
    body = {"pair": (1, 2), "kind": Kind.GO, "10": 1.5e-9, "9": "ü", "deep": {"b": None, "a": [True]}}
    event = journal.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="run", body=body)
    assert event.body["pair"] == [1, 2]
    assert chain_problems(journal.events()) == []


def test_a_body_with_nan_is_refused_and_nothing_is_written(journal):
    with pytest.raises(ValueError, match="JSON"):
        journal.append(Kind.GAP, anchor=CLOCK.anchor(), who="run", body={"x": float("nan")})
    assert journal.events() == []


def test_a_repeated_command_id_is_refused_and_adds_no_event(journal):
    add(journal, command_id="k1")
    with pytest.raises(DuplicateCommand, match="entry 1"):
        add(journal, command_id="k1")
    assert issubclass(DuplicateCommand, StateError)
    assert add(journal, command_id="k2").seq == 2


def test_reopening_continues_the_chain(journal, url):
    add(journal)
    journal.close()
    again = Journal.open(url, "c")
    assert add(again).seq == 2
    assert chain_problems(again.events()) == []
    again.close()


def test_two_campaigns_share_a_database_without_touching_each_other(journal, url):
    add(journal)
    other = Journal.create(url, "d", durable=False)
    assert add(other).seq == 1
    other.close()
    assert len(journal.events()) == 1


def test_creating_over_an_existing_campaign_is_refused(journal, url):
    add(journal)
    with pytest.raises(StorageError, match="already"):
        Journal.create(url, "c")


def test_a_second_writer_is_refused_with_the_remedy(journal, url):
    add(journal)
    other = Journal.open(url, "c", durable=False)
    theirs = add(other)
    with pytest.raises(StorageError, match="another process writes"):
        add(journal)
    assert other.events()[-1] == theirs
    other.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET body = '{}' WHERE seq = 1",
        "DELETE FROM event WHERE seq = 1",
        f"INSERT OR REPLACE INTO event SELECT campaign, seq, {REST} FROM event",
        f"INSERT INTO event SELECT campaign, 9, {REST} FROM event",
        "UPDATE command SET seq = 2",
        "DELETE FROM command",
        "INSERT OR REPLACE INTO command VALUES ('c', 'k1', 7)",
    ],
)
def test_triggers_refuse_every_change_of_what_is_written(journal, url, statement):
    add(journal, command_id="k1")
    raw = sqlite3.connect(url.removeprefix("sqlite:///"))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)
    raw.close()
    assert chain_problems(journal.events()) == []


def test_a_reader_creates_no_file_and_cannot_write(journal, url, tmp_path):
    add(journal)
    journal.close()
    before = sorted(p.name for p in tmp_path.iterdir())
    reader = Journal.open(url, "c", readonly=True)
    assert len(reader.events()) == 1
    with pytest.raises(StorageError, match="reading"):
        add(reader)
    reader.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == before == ["journal.db"]


@pytest.mark.parametrize("readonly", [True, False])
def test_a_missing_journal_is_one_line_and_is_not_created(url, tmp_path, readonly):
    with pytest.raises(StorageError, match="no such database"):
        Journal.open(url, "c", readonly=readonly)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"not a database, not at all" * 100, b""])
def test_a_damaged_or_empty_file_is_one_line(url, tmp_path, content):
    (tmp_path / "journal.db").write_bytes(content)
    with pytest.raises(StorageError) as caught:
        Journal.open(url, "c", readonly=True)
    assert "\n" not in str(caught.value)


def test_a_locked_database_is_one_line_and_nothing_is_half_written(journal, url, monkeypatch):
    add(journal)
    journal.close()
    monkeypatch.setattr("labctl.store.database_backend.BUSY_S", 0.01)
    writer = Journal.open(url, "c", durable=False)
    raw = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="another process holds the database"):
        add(writer)
    raw.execute("ROLLBACK")
    raw.close()
    assert add(writer).seq == 2
    writer.close()


def test_a_full_disk_is_one_line_and_the_journal_goes_on_when_there_is_space(journal):
    add(journal)
    raw = journal._database._writer.connection.driver_connection
    pages = raw.execute("PRAGMA page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StorageError, match="disk is full"):
        add(journal, text="x" * 100_000)
    raw.execute("PRAGMA max_page_count=1000000")
    assert add(journal).seq == 2
    assert chain_problems(journal.events()) == []


def test_a_body_that_is_no_longer_json_is_named(journal, url):
    add(journal)
    raw = sqlite3.connect(url.removeprefix("sqlite:///"))
    raw.execute("DROP TRIGGER event_no_update")
    raw.execute("UPDATE event SET body = '{'")
    raw.commit()
    raw.close()
    with pytest.raises(BrokenRecord, match="seq 1"):
        journal.events()


@pytest.mark.parametrize("edit", ["prev = x'00'", "at_ns = 'soon'", "trial = x'00'", "body = '[]'"])
def test_an_entry_whose_column_is_not_of_its_type_is_named(journal: Journal, url: str, edit: str) -> None:
    """SQLite takes any value in any column; a stranger's file had an entry without the hash before it."""
    add(journal)
    raw = sqlite3.connect(url.removeprefix("sqlite:///"))
    raw.execute("DROP TRIGGER event_no_update")
    raw.execute(f"UPDATE event SET {edit}")
    raw.commit()
    raw.close()
    with pytest.raises(BrokenRecord, match=r"edited entry: .* seq 1"):
        journal.events()


@given(n=st.integers(1, 12), data=st.data())
def test_any_edit_of_any_entry_is_named_at_its_place(n, data):
    events = chain(n)
    at = data.draw(st.integers(0, n - 1))
    edits = data.draw(
        st.sampled_from(
            [{"body": {"text": "other"}}, {"kind": "Gap"}, {"at_ns": -1}, {"wall": "v"}, {"who": "z"}, {"trial": "t"}]
        )
    )
    events[at] = replace(events[at], **edits)
    (problem,) = chain_problems(events)
    assert problem.what == "edited entry"
    assert f"seq {at + 1} " in problem.where


@given(n=st.integers(2, 12), data=st.data())
def test_any_deleted_entry_but_the_last_is_named(n, data):
    events = chain(n)
    gone = data.draw(st.integers(1, n - 1))
    del events[gone - 1]
    (problem,) = chain_problems(events)
    assert problem.what == "missing entry"
    assert f"entry {gone} " in problem.detail


def test_an_entry_rehashed_alone_breaks_the_next_link():
    events = chain(4)
    edited = replace(events[1], body={"text": "other"})
    events[1] = replace(edited, hash=event_hash(edited))
    (problem,) = chain_problems(events)
    assert (problem.what, problem.where) == ("broken link", "journal seq 3 (Deviation)")


def test_a_body_that_is_nested_too_deep_to_be_hashed_is_named() -> None:
    body: dict[str, object] = {}
    for _ in range(100_000):
        body = {"a": body}
    event = Event(1, "Note", 1, "b", "w", "run", body=body, prev=GENESIS, hash="0" * 64)
    assert [problem.what for problem in chain_problems([event])] == ["edited entry"]
