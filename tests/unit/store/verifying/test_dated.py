"""Claims about timestamps: what they say of a record is what they date, and how long after it was written."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from socket import create_server

import pytest

from labctl.clock import MonotonicClock
from labctl.core.events import GENESIS, Event, Kind, event_hash
from labctl.errors import BrokenRecord, Unreachable
from labctl.store.verifying import timestamps
from labctl.store.verifying.timestamps import dated, keep


def chain(walls: list[str]) -> list[Event]:
    """An outcome at each wall time."""
    events: list[Event] = []
    for seq, wall in enumerate(walls, 1):
        prev = events[-1].hash if events else GENESIS
        event = Event(seq, Kind.OUTCOME_RECORDED, seq, "b", wall, "run", prev=prev)
        events.append(replace(event, hash=event_hash(event)))
    return events


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign folder of a lab that names an authority; an answer says its time itself."""
    (tmp_path / "root.pem").write_bytes(b"")
    (tmp_path / "lab.toml").write_text('[timestamps]\nauthority = "http://here/"\ncertificates = "root.pem"\n')
    monkeypatch.setattr(timestamps, "stamped_at", lambda answer, *_: answer.decode())
    (tmp_path / "campaigns" / "c").mkdir(parents=True)
    return tmp_path / "campaigns" / "c"


WALLS = [f"2026-03-0{day}T10:00:00+00:00" for day in (1, 2, 3, 4)]


def test_the_longest_time_between_writing_and_stamping_is_said_and_where(folder: Path) -> None:
    keep(folder, 1, b"2026-03-01T10:00:05+00:00")
    keep(folder, 3, b"2026-03-08T10:00:00+00:00")
    (said,) = dated(folder, chain(WALLS)).facts
    assert "entries 1 to 3 of 4 existed at 2026-03-08T10:00:00+00:00" in said
    assert "at most 6 days after they say they were written (entry 2)" in said, "the first stamp that covers it"


def test_a_stamp_soon_after_makes_the_time_short(folder: Path) -> None:
    for seq, wall in enumerate(WALLS, 1):
        keep(folder, seq, wall.replace(":00+", ":07+").encode())
    (said,) = dated(folder, chain(WALLS)).facts
    assert "entries 1 to 4 of 4" in said and "at most 7 s after" in said and "that it was written" not in said


def test_an_entry_that_says_it_was_written_after_its_stamp_is_named(folder: Path) -> None:
    keep(folder, 4, b"2026-03-04T07:00:00+00:00")
    (said,) = dated(folder, chain(WALLS)).facts
    assert "entry 4 says that it was written 3 h after it was stamped" in said


def test_an_entry_without_a_time_is_no_traceback(folder: Path) -> None:
    keep(folder, 1, b"2026-03-01T10:00:05+00:00")
    with pytest.raises(BrokenRecord, match="entry 1 has no time"):
        dated(folder, chain(["yesterday"]))


def test_an_authority_that_does_not_speak_http_is_one_line() -> None:
    with create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        authority = timestamps.Authority(f"http://127.0.0.1:{server.getsockname()[1]}/", b"", 60.0)
        with pytest.raises(Unreachable, match="no timestamp: http://127"):
            timestamps._ask(authority, b"", MonotonicClock())
        thread.join()
