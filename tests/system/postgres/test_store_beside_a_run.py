"""A copy that grows while it is compared or fetched is sound: what is asked of the server is all of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.machine.postgres import Postgres, needs_server
from support.runs.recordings import Recordings
from support.runs.server_copies import PATIENCE_S, own

from labctl.store.journal import chain_problems, events_of
from labctl.store.server import comparing, copying, fetching
from labctl.store.server.comparing import compare
from labctl.store.server.connecting import Server
from labctl.store.server.copying import copy_campaign
from labctl.store.server.fetching import fetch
from labctl.store.server.host_record import HostRecord

pytestmark = [pytest.mark.thorough, *needs_server]
FEW = 8


@pytest.fixture
def asked(server: Postgres) -> Iterator[Server]:
    found = Server(server.url("cell1"), PATIENCE_S, reading=True)
    yield found
    found.close()


def behind(folder: Path, server: Postgres, monkeypatch: pytest.MonkeyPatch) -> HostRecord:
    """The campaign, of which the server has its first entries now."""
    host, writing = HostRecord(folder), Server(server.url("cell1"), PATIENCE_S)
    with monkeypatch.context() as patch:
        patch.setattr(copying, "ENTRIES", FEW)
        assert len(copying._next_entries(host, writing)) == FEW + 1
    writing.close()
    return host


def meanwhile(asked: Server, question: str, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have this done before a question is asked for the first time; the list says whether it was."""
    done, rows = list[str](), asked.rows

    def first(text: str, make: Any, *values: Any) -> Any:
        if text == question and not done:
            done.append(text)
            work()
        return rows(text, make, *values)  # type: ignore[arg-type]

    monkeypatch.setattr(asked, "rows", first)
    return done


def test_a_copy_to_which_entries_and_commands_are_added_differs_in_nothing(
    server: Postgres, asked: Server, recordings: Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own(recordings, tmp_path, "compared-beside")
    host = behind(folder, server, monkeypatch)
    had = copying.head_of(asked, host.key)[0]
    grow = lambda: copy_campaign(folder, server.url("cell1"), PATIENCE_S)  # noqa: E731
    done = meanwhile(asked, comparing._COMMANDS, grow, monkeypatch)
    compared = compare(host, asked)
    assert done and compared.problems == []
    assert (compared.entries, compared.of_entries) == (had, host.entries()[-1].seq) and not compared.whole
    again = compare(host, asked)
    assert again.whole and again.entries == again.of_entries, "and asked once more it has them"


def test_a_copy_that_grows_is_fetched_as_it_was_when_it_was_asked_for(
    server: Postgres, asked: Server, recordings: Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own(recordings, tmp_path, "fetched-beside")
    host = behind(folder, server, monkeypatch)
    had = copying.head_of(asked, host.key)[0]
    grow = lambda: copy_campaign(folder, server.url("cell1"), PATIENCE_S)  # noqa: E731
    done = meanwhile(asked, fetching._COMMANDS, grow, monkeypatch)
    fetched = fetch(asked, host.key, tmp_path / "back")
    events = events_of(tmp_path / "back")
    assert done and fetched.entries == len(events) == had and not chain_problems(events)
    assert max(one.seq for one in HostRecord(tmp_path / "back").commands(0, 10**6)) <= had
    assert fetch(asked, host.key, tmp_path / "again").entries == host.entries()[-1].seq
