"""The recorder acknowledges what is committed, takes a chunk once, and closes when all ended or it waited enough."""

import sqlite3
from dataclasses import asdict

import numpy as np
import pytest

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.nodes.recorder import PATIENCE_NS, QUIET_NS, RecorderNode
from labctl.store import database_backend
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore
from labctl.streams import StreamSpec

SPEC = StreamSpec("arm/state", ("q1",), "rad", 10.0)


class Bench:
    """A recorder visited at its due times and with mail; what it says is kept."""

    def __init__(self, store: TraceStore) -> None:
        self.store, self.node = store, RecorderNode(store)
        self.now_ns, self.due_ns = 10 * SECOND, None
        self.said: list[Message] = []

    def send(self, *messages: Message) -> list[Message]:
        step = self.node.step(self.now_ns, list(messages))
        self.due_ns = step.due_ns
        self.said += step.out
        return step.out

    def wait(self, ns: int) -> None:
        end_ns = self.now_ns + ns
        while self.due_ns is not None and self.due_ns <= end_ns:
            self.now_ns = max(self.now_ns, self.due_ns)
            self.send()
        self.now_ns = end_ns

    def closed(self) -> list[dict]:
        return [dict(message.body) for message in self.said if message.kind == "closed"]


@pytest.fixture
def bench(tmp_path):
    store = TraceStore.create(sqlite_url(tmp_path / "traces.db"), "c", durable=False)
    made = Bench(store)
    yield made
    store.close()


def open_(*producers: str) -> Message:
    return Message("recorder", "open", {"episode": "e1", "producers": list(producers or ("arm",))})


def declare() -> Message:
    body = {"episode": "e1", "specs": [{**asdict(SPEC), "columns": list(SPEC.columns)}]}
    return Message("recorder", "declare", body, sender="arm")


def chunk(seq: int) -> Message:
    t_ns = np.arange(3, dtype=np.int64) + 10 * seq
    body = {"episode": "e1", "stream": SPEC.name, "seq": seq, "n": 3}
    return Message("recorder", "chunk", body, {"t_ns": t_ns, "values": np.full((3, 1), float(seq))}, sender="arm")


def end(name: str, *gaps: dict) -> Message:
    return Message("recorder", "end", {"episode": "e1", "sent": {}, "gaps": list(gaps)}, sender=name)


CLOSE = Message("recorder", "close", {"episode": "e1"})


def test_a_chunk_is_acknowledged_when_another_reader_finds_it_on_disk(bench, tmp_path):
    bench.send(open_(), declare())
    (ack,) = bench.send(chunk(0))
    assert (ack.to, ack.kind, ack.body) == ("arm", "ack", {"episode": "e1", "stream": "arm/state", "seq": 0})
    reader = TraceStore.open(sqlite_url(tmp_path / "traces.db"), "c", readonly=True)
    try:
        assert len(reader.read("e1", SPEC.name)[0]) == 3
    finally:
        reader.close()


def test_a_chunk_that_cannot_be_committed_is_not_acknowledged(bench, monkeypatch):
    def refuse(episode, chunks):
        raise OSError("no space left")

    bench.send(open_(), declare())
    monkeypatch.setattr(bench.store, "write", refuse)
    with pytest.raises(OSError):
        bench.send(chunk(0))
    assert [message.kind for message in bench.said] == ["opened"]


def test_a_chunk_sent_again_is_stored_once_and_acknowledged_again(bench):
    bench.send(open_(), declare())
    assert [message.kind for message in bench.send(chunk(0), chunk(1), chunk(0))] == ["ack"] * 3
    bench.send(chunk(0))
    assert bench.store.read("e1", SPEC.name)[0].tolist() == [0, 1, 2, 10, 11, 12]


def test_a_recording_closes_when_every_producer_has_ended(bench):
    bench.send(open_("arm", "camera:wrist"), declare(), chunk(0))
    bench.send(end("arm"))
    bench.send(CLOSE)
    assert bench.closed() == []
    bench.send(end("camera:wrist"))
    (closed,) = bench.closed()
    assert closed["streams"]["arm/state"]["n"] == 3
    assert (closed["silent"], closed["gaps"]) == ([], [])


def test_ends_alone_do_not_close_a_recording(bench):
    bench.send(open_(), declare(), end("arm"))
    bench.wait(10 * SECOND)
    assert bench.closed() == []


def test_a_lost_producer_is_not_waited_for(bench):
    bench.send(open_("arm", "controller"), declare(), end("arm"), CLOSE)
    bench.send(Message("recorder", "lost", {"name": "controller"}))
    assert len(bench.closed()) == 1


def test_a_silent_producer_is_waited_for_with_patience_and_named(bench):
    bench.send(open_("arm", "controller"), declare(), end("arm"))
    bench.send(CLOSE)
    bench.wait(PATIENCE_NS - 1)
    assert bench.closed() == []
    bench.wait(1)
    assert [closed["silent"] for closed in bench.closed()] == [["controller"]]


def test_patience_runs_out_though_others_still_deliver(bench):
    bench.send(open_("arm", "controller"), declare())
    bench.send(CLOSE)
    bench.now_ns += SECOND // 10
    bench.send(chunk(0), end("arm"))
    bench.wait(PATIENCE_NS)
    assert [closed["silent"] for closed in bench.closed()] == [["controller"]]


def test_gaps_of_producers_and_of_the_store_are_told(bench):
    given_up = {"episode": "e1", "stream": "arm/state", "seq": 9, "lost": 3, "why": "given up"}
    bench.send(open_(), declare(), chunk(0), chunk(2), end("arm", given_up), CLOSE)
    (closed,) = bench.closed()
    assert given_up in closed["gaps"]
    assert len(closed["gaps"]) == 2, "and the missing chunk 1"


def test_the_recorder_ends_when_mail_has_stopped(bench):
    bench.send(Message("recorder", "shutdown"))
    bench.now_ns += QUIET_NS // 2
    bench.send(open_())
    bench.wait(QUIET_NS - 1)
    assert not bench.node.finished
    bench.wait(1)
    assert bench.node.finished and bench.due_ns is None


def test_it_seals_only_when_every_chunk_a_producer_sent_is_here(bench):
    """An "end" may overtake chunks that are sent again to a restarted recorder."""
    ended = Message(
        "recorder", "end", {"episode": "e1", "sent": {SPEC.name: {"chunks": 2, "n": 6}}, "gaps": []}, sender="arm"
    )
    bench.send(open_(), declare(), chunk(0), ended, CLOSE)
    assert bench.closed() == []
    bench.send(chunk(1))
    (closed,) = bench.closed()
    assert closed["streams"][SPEC.name]["chunks"] == 2


def test_a_chunk_after_the_seal_is_not_stored_and_run_is_told(bench):
    bench.send(open_(), declare(), chunk(0), end("arm"), CLOSE)
    sealed = bench.closed()[0]["streams"]
    assert [message.kind for message in bench.send(chunk(1))] == ["ack", "late"]
    assert bench.store.check("e1", sealed) == []


@pytest.mark.parametrize("told", [False, True])
def test_a_chunk_after_the_seal_says_whether_its_stream_tells_arms_apart(bench, told):
    """Of such a stream no entry may say that it is there; a stream that nobody declared may be one."""
    declared = Message("recorder", "declare", {"episode": "e1", "specs": [asdict(SPEC)]}, sender="arm")
    declared.body["specs"][0] |= {"columns": list(SPEC.columns), "arm_dependent": told}
    bench.send(open_(), declared, chunk(0), end("arm"), CLOSE)
    unknown = chunk(1)
    unknown.body["stream"] = "nobody's"
    sent = [m.body for m in bench.send(chunk(1), unknown) if m.kind == "late"]
    assert [bool(body.get("private")) for body in sent] == [told, True]


def test_a_chunk_of_an_episode_not_opened_here_stays_with_its_producer(bench):
    assert bench.send(declare(), chunk(0)) == []
    bench.send(open_())
    assert [message.kind for message in bench.send(chunk(0))] == ["ack"]


def test_what_is_told_as_closed_has_reached_the_disk(tmp_path, monkeypatch):
    store = TraceStore.create(sqlite_url(tmp_path / "traces.db"), "c", durable=True)
    bench = Bench(store)
    synced: list[tuple[str, int]] = []
    sync = database_backend.sync_file
    monkeypatch.setattr(
        database_backend, "sync_file", lambda path: (sync(path), synced.append((path.name, len(bench.said))))
    )
    bench.send(open_("arm"), declare(), chunk(0))
    bench.send(CLOSE, end("arm"))
    said = [message.kind for message in bench.said]
    assert synced == [("traces.db-wal", said.index("closed"))]
    plain = sqlite3.connect(f"{(tmp_path / 'traces.db').as_uri()}?immutable=1", uri=True)  # which leaves the log aside
    assert plain.execute("select count(*) from chunk").fetchall() == [(1,)]
    plain.close()
    store.close()
