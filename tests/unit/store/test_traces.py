"""Claims about trace chunks and their store."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tracemalloc
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labctl.errors import BrokenRecord, StorageError
from labctl.store.chunks import Chunk, decode_chunk, encode_chunk, together
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore
from labctl.streams import StreamSpec

ROBOT = StreamSpec("robot", ("x", "y", "z"), "m", 100.0)
INDEX = StreamSpec("camera/wrist", ("frame",), "1", 10.0, dtype="<i8")


ANSWERS = StreamSpec("policy", ("asked", "answered"), "ns", 10.0, arm_dependent=True)


def chunk(seq: int, n: int = 5, name: str = "robot", columns: int = 3) -> Chunk:
    t_ns = np.arange(n, dtype=np.int64) * 10 + seq * 1000
    return Chunk(name, seq, t_ns, np.arange(n * columns, dtype=float).reshape(n, columns) + seq)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path / "traces.db")


@pytest.fixture
def store(url: str):
    made = TraceStore.create(url, "c", durable=False)
    made.declare("e-1", [ROBOT, INDEX])
    yield made
    made.close()


def edit(url: str, statement: str, values: tuple = ()) -> None:
    raw = sqlite3.connect(url.removeprefix("sqlite:///"))
    assert raw.execute(statement, values).rowcount == 1
    raw.commit()
    raw.close()


def test_whoever_reads_traces_does_not_wait_for_the_database_library(store, url):
    """Its import was a twentieth of a report, and its way to each answer another (issue 18.28)."""
    store.write("e-1", [chunk(0), chunk(1)])
    reads = (
        "import sys; from labctl.store.traces import TraceStore; "
        f"store = TraceStore.open({url!r}, 'c', readonly=True); "
        "print(len(store.read('e-1', 'robot')[0]), store.last_sample_ns('e-1'), store.last_sample_ns('e-2'), "
        "len(store.check('e-1', store.seal('e-1'))), {'sqlalchemy', 'sqlmodel'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", reads], capture_output=True, text=True, check=True)
    assert done.stdout == "10 1040 None 0 set()\n"


@given(data=st.data(), dtype=st.sampled_from(["<f8", "<f4", "<i8", "<i4", "<u2", "|u1"]))
def test_a_chunk_survives_its_encoding_bit_for_bit(data, dtype):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=7))
    values = data.draw(hnp.arrays(np.dtype(dtype), shape))
    t_ns = data.draw(hnp.arrays(np.int64, shape[0]))
    spec = StreamSpec("s", tuple(f"c{i}" for i in range(shape[1])), "1", 1.0, dtype=dtype)
    got_t, got = decode_chunk(encode_chunk(spec, t_ns, values))
    assert got_t.tobytes() == t_ns.tobytes()
    assert got.dtype == values.dtype and got.tobytes("C") == values.tobytes("C")


def test_a_payload_is_readable_with_numpy_and_zlib_alone():
    c = chunk(3)
    header, body = encode_chunk(ROBOT, c.t_ns, c.values).split(b"\n", 1)
    h, raw = json.loads(header), zlib.decompress(body)
    n, k, dt = h["n"], h["k"], np.dtype(h["dtype"])
    t_ns = np.frombuffer(raw[: 8 * n], np.uint8).reshape(8, n).T.copy().view("<i8").ravel()
    values = np.frombuffer(raw[8 * n :], np.uint8).reshape(dt.itemsize, n * k).T.copy().view(dt).reshape(k, n).T
    assert np.array_equal(t_ns, c.t_ns) and np.array_equal(values, c.values)


@pytest.mark.parametrize("damage", [lambda p: p[:-9], lambda p: b"no header", lambda p: p.replace(b'"n":5', b'"n":6')])
def test_damaged_bytes_are_refused_not_guessed(damage):
    c = chunk(0)
    with pytest.raises(BrokenRecord, match="cannot be decoded"):
        decode_chunk(damage(encode_chunk(ROBOT, c.t_ns, c.values)))


def test_values_that_do_not_fit_the_declaration_are_refused():
    with pytest.raises(ValueError, match="3 declared columns"):
        encode_chunk(ROBOT, np.arange(4), np.zeros((4, 2)))


def test_written_chunks_are_read_back_as_one_array_in_order(store):
    store.write("e-1", [chunk(1), chunk(0)])
    store.write("e-1", [chunk(2)])
    t_ns, values = store.read("e-1", "robot")
    assert np.array_equal(t_ns, np.concatenate([chunk(i).t_ns for i in range(3)]))
    assert np.array_equal(values, np.concatenate([chunk(i).values for i in range(3)]))
    assert store.last_sample_ns("e-1") == 2040
    assert store.episodes() == ["e-1"]


def test_a_declared_stream_without_samples_reads_empty_and_is_sealed_as_empty(store):
    t_ns, values = store.read("e-1", "camera/wrist")
    assert t_ns.shape == (0,) and values.shape == (0, 1) and values.dtype == np.dtype("<i8")
    assert store.seal("e-1")["camera/wrist"]["chunks"] == 0
    assert store.last_sample_ns("e-1") is None


def test_a_chunk_sent_twice_is_kept_once_and_never_replaced(store):
    store.write("e-1", [chunk(0)])
    again = chunk(0)
    again.values = again.values + 1
    store.write("e-1", [again, chunk(1)])
    assert np.array_equal(store.read("e-1", "robot")[1][:5], chunk(0).values)
    assert store.seal("e-1")["robot"]["chunks"] == 2


def test_the_seal_counts_and_its_root_covers_every_chunk_in_order(store, url):
    store.write("e-1", [chunk(0), chunk(1)])
    before = store.seal("e-1")
    robot = before["robot"]
    assert (robot["n"], robot["chunks"], robot["t0_ns"], robot["t1_ns"]) == (10, 2, 0, 1040)
    reader = TraceStore.open(url, "c", readonly=True)
    assert reader.seal("e-1") == before
    reader.close()
    store.write("e-1", [chunk(2)])
    assert store.seal("e-1")["robot"]["root"] != robot["root"]


def test_a_missing_chunk_is_reported_as_a_gap_with_its_times(store):
    store.write("e-1", [chunk(1), chunk(4)])
    holes = [(g["stream"], g["seq"], g["from_ns"], g["to_ns"]) for g in store.gaps("e-1")]
    assert holes == [("robot", 0, None, 1000), ("robot", 2, 1040, 4000), ("robot", 3, 1040, 4000)]


def test_an_undeclared_stream_is_refused(store):
    with pytest.raises(ValueError, match="no declared stream"):
        store.write("e-1", [chunk(0, name="other")])


def test_a_reopened_store_still_knows_its_declarations(store, url):
    store.close()
    again = TraceStore.open(url, "c", durable=False)
    again.write("e-1", [chunk(0)])
    assert again.streams("e-1") == [INDEX, ROBOT]
    again.close()


def test_a_reader_cannot_write_and_a_missing_store_is_one_line(store, url, tmp_path):
    reader = TraceStore.open(url, "c", readonly=True)
    with pytest.raises(StorageError, match="reading"):
        reader.write("e-1", [chunk(0)])
    reader.close()
    with pytest.raises(StorageError, match="no such database"):
        TraceStore.open(sqlite_url(tmp_path / "none.db"), "c")


def test_untouched_traces_match_their_seal(store):
    store.write("e-1", [chunk(0), chunk(1)])
    assert store.check("e-1", store.seal("e-1")) == []


def test_what_is_checked_need_not_be_read_again_unless_it_was_changed(store, url):
    store.write("e-1", [chunk(0), chunk(1)])
    sealed = store.seal("e-1")
    read = {"robot": [], "camera/top": []}
    assert store.check("e-1", sealed, read) == []
    for checked, again in zip(together(ROBOT, read["robot"]), store.read("e-1", "robot"), strict=True):
        np.testing.assert_array_equal(checked, again)
    assert read["camera/top"] == []
    edit(url, "UPDATE chunk SET sha256 = 'x' WHERE seq = 1")
    read = {"robot": []}
    assert [p.what for p in store.check("e-1", sealed, read)] == ["changed trace chunk"]
    assert read == {}


def test_each_change_of_the_traces_is_named(store, url):
    store.write("e-1", [chunk(0), chunk(1), chunk(2)])
    sealed = store.seal("e-1")
    edit(url, "UPDATE chunk SET t0_ns = 7 WHERE seq = 2")
    (problem,) = store.check("e-1", sealed)
    assert (problem.what, problem.where[-7:]) == ("changed trace index", "chunk 2")
    edit(url, "UPDATE chunk SET t0_ns = 2000 WHERE seq = 2")

    payload = bytearray(encode_chunk(ROBOT, chunk(1).t_ns, chunk(1).values))
    payload[-5] ^= 1
    edit(url, "UPDATE chunk SET payload = ? WHERE seq = 1", (bytes(payload),))
    (problem,) = store.check("e-1", sealed)
    assert (problem.what, problem.where[-7:]) == ("changed trace chunk", "chunk 1")
    with pytest.raises(BrokenRecord, match="chunk 1"):
        store.read("e-1", "robot")
    edit(url, "DELETE FROM chunk WHERE seq = 1")
    assert [p.what for p in store.check("e-1", sealed)] == ["missing or added trace chunk"]


@pytest.mark.parametrize("value", ["payload = 'text'", "t1_ns = 'late'", "sha256 = x'00'"])
def test_a_chunk_whose_column_is_not_of_its_type_is_named(store: TraceStore, url: str, value: str) -> None:
    """SQLite takes any value in any column."""
    store.write("e-1", [chunk(0)])
    sealed = store.seal("e-1")
    edit(url, f"UPDATE chunk SET {value}")
    for look in (lambda: store.check("e-1", sealed), lambda: store.read("e-1", "robot")):
        with pytest.raises(BrokenRecord, match="changed trace index: stream robot chunk 0"):
            look()


def test_a_declaration_whose_text_is_none_is_named(store: TraceStore, url: str) -> None:
    edit(url, "UPDATE stream SET spec = x'00' WHERE name = 'robot'")
    with pytest.raises(BrokenRecord, match="changed stream declaration: robot"):
        store.streams("e-1")


def test_a_chunk_replaced_together_with_its_digest_is_still_named(store, url):
    store.write("e-1", [chunk(0)])
    sealed = store.seal("e-1")
    edit(url, "DELETE FROM chunk WHERE seq = 0")
    other = chunk(0)
    other.values = other.values * 2
    store.write("e-1", [other])
    assert [p.what for p in store.check("e-1", sealed)] == ["changed trace chunk"]


def test_a_chunk_unpacks_to_no_more_than_it_announces_and_announces_no_more_than_there_can_be():
    zeros = zlib.compress(bytes(1 << 26), 9)
    tracemalloc.start()
    try:
        with pytest.raises(BrokenRecord, match="does not fit its header"):
            decode_chunk(b'{"v":1,"n":5,"k":3,"dtype":"<f8"}\n' + zeros)
        for n in (1 << 40, -1):
            with pytest.raises(BrokenRecord, match="its header announces"):
                decode_chunk(f'{{"v":1,"n":{n},"k":3,"dtype":"<f8"}}\n'.encode() + zeros)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def recorded(url: str, *, apart: bool) -> TraceStore:
    made = TraceStore.create(url, "c", durable=False, apart=apart)
    made.declare("e-1", [ROBOT, ANSWERS, INDEX])
    made.write("e-1", [chunk(0), chunk(0, name="policy", columns=2), chunk(1), chunk(2, name="policy", columns=2)])
    return made


def names_in(url: str) -> set[str]:
    raw = sqlite3.connect(url.removeprefix("sqlite:///"))
    found = raw.execute("SELECT name FROM stream UNION SELECT stream FROM chunk").fetchall()
    raw.close()
    return {name for (name,) in found}


def test_what_tells_arms_apart_lies_in_the_seal_and_reads_as_if_it_did_not(url, tmp_path):
    """Issue 17.15: whoever might read the robot's trace could read when a policy answered, and a person never does."""
    (tmp_path / "seal").mkdir(mode=0o700)
    made = recorded(url, apart=True)
    made.write("e-1", [chunk(2, name="policy", columns=2)])  # once more: it stays as it is
    made.close()
    apart = f"sqlite:///{tmp_path / 'seal/traces.db'}"
    assert (names_in(url), names_in(apart)) == ({"robot", "camera/wrist"}, {"policy"})
    one = tmp_path / "one"
    one.mkdir()
    together = recorded(f"sqlite:///{one / 'traces.db'}", apart=False)
    reader = TraceStore.open(url, "c", readonly=True)
    for ask in (
        lambda store: store.seal("e-1"),
        lambda store: store.gaps("e-1"),
        lambda store: [spec.name for spec in store.streams("e-1")],
        lambda store: store.episodes(),
        lambda store: store.last_sample_ns("e-1"),
        lambda store: store.last_sample_ns("e-2"),
        lambda store: [each.tolist() for each in store.read("e-1", "policy")],
        lambda store: store.check("e-1", together.seal("e-1")),
    ):
        assert ask(reader) == ask(together)
    assert json.dumps(reader.seal("e-1")) == json.dumps(together.seal("e-1")), "in the same order too"
    reader.close()
    together.close()


def test_a_store_of_before_goes_on_as_it_was_made(url, tmp_path):
    recorded(url, apart=False).close()
    (tmp_path / "seal").mkdir()
    later = TraceStore.open(url, "c", durable=False)
    later.declare("e-2", [ANSWERS])
    later.write("e-2", [Chunk("policy", 0, np.arange(5), np.zeros((5, 2)))])
    later.close()
    assert "policy" in names_in(url) and not list((tmp_path / "seal").iterdir())


def test_a_stream_of_both_databases_is_refused(url, tmp_path):
    (tmp_path / "seal").mkdir()
    recorded(url, apart=True).close()
    spec = json.dumps({**asdict(ANSWERS), "unit": "s"}, sort_keys=True)
    edit(url, "INSERT INTO stream VALUES ('c', 'e-1', 'policy', ?)", (spec,))
    reader = TraceStore.open(url, "c", readonly=True)
    with pytest.raises(BrokenRecord, match="in seal/ too"):
        reader.streams("e-1")
    reader.close()
