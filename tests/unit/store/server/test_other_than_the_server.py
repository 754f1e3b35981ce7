"""Nothing is sent to a server that has something else than the campaign's folder; no server is asked here."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labctl.core.events import GENESIS
from labctl.errors import BrokenRecord
from labctl.store.server.copying import _check_same, _Traces
from labctl.store.server.host_record import Counted, Entry, Kept, Stream, check_links, roots_in

pytestmark = pytest.mark.usefixtures("no_collector")

HOST: Any = SimpleNamespace(name="first", key="k", folder=Path("first"), roots=lambda: {"e-1": {}})


def kept(seq: int) -> Kept:
    return Kept(seq, 0, 1, 2, hashlib.sha256(bytes([seq])).hexdigest())


def test_another_entry_in_the_place_of_the_servers_last_is_refused() -> None:
    own = Entry(3, "Note", 0, "b", "w", "p07", None, None, "{}", "before", "mine")
    _check_same(HOST, [own], 3, "mine", "the server")
    with pytest.raises(BrokenRecord, match="another entry 3"):
        _check_same(HOST, [own], 3, "theirs", "the server")
    with pytest.raises(BrokenRecord, match="ends before"):
        _check_same(HOST, [], 3, "theirs", "the server")


def test_a_stream_of_which_the_server_has_more_chunks_is_named_and_not_sent() -> None:
    server: Any = SimpleNamespace(rows=lambda *_: [kept(0), kept(1)])
    part: Any = SimpleNamespace(kept=lambda *_: [kept(0)], chunks=lambda *_: pytest.fail("chunks were read to be sent"))
    traces = _Traces(HOST, server, ["e-1"], None)
    traces._send_stream(part, Counted("e-1", "arm/state", 1))
    (line,) = traces.broken
    assert "the server has other chunks of it" in line and traces.sent == 0


DEEP = "[" * 100_000


def test_what_is_no_json_or_nested_without_end_is_a_line_and_is_taken_to_tell_arms_apart() -> None:
    assert Stream("e-1", "arm/state", DEEP).arm_dependent
    with pytest.raises(BrokenRecord, match="seq 1: its body cannot be read"):
        check_links([Entry(1, "Note", 0, "b", "w", "p07", None, None, DEEP, GENESIS, "own")], 0, GENESIS, "journal.db")
    for body in ("{}", "{", "3", DEEP, '{"streams": {"arm/state": {}}}'):
        with pytest.raises(BrokenRecord, match="what was sealed of a recording cannot be read"):
            roots_in(body)
