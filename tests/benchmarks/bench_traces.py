"""What it costs to store one second of a 1 kHz stream of 60 columns: chunks against one committed row per sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlmodel import Field, Session, SQLModel, create_engine

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.store.chunks import Chunk, encode_chunk
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore
from labctl.streams import StreamSpec

CLOCK = MonotonicClock()


def motion(n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Smooth joint-like values with a little sensor noise: (n,) int64 ns at 1 kHz, (n, columns)."""
    rng = np.random.default_rng(0)
    t_ns = np.arange(n, dtype=np.int64) * MILLISECOND
    phase = t_ns[:, None] * 1e-9 * np.linspace(0.2, 3.0, columns)
    return t_ns, np.sin(phase) + rng.normal(scale=1e-4, size=(n, columns))


class SampleRow(SQLModel, table=True):
    """The layout that is not used: one row per sample."""

    __tablename__ = "bench_sample"  # pyright: ignore[reportAssignmentType]
    seq: int = Field(primary_key=True)
    t_ns: int
    payload: bytes


@pytest.mark.benchmark
def test_a_chunk_against_a_row_per_sample(tmp_path: Path) -> None:
    rows, columns = 1000, 60
    t_ns, values = motion(rows, columns)
    store = TraceStore.create(sqlite_url(tmp_path / "traces.db"), "bench")
    store.declare("e", [StreamSpec("robot", tuple(f"c{i}" for i in range(columns)), "1", 1000.0)])
    chunked = []
    for seq in range(20):
        start = CLOCK.now_ns()
        store.write("e", [Chunk("robot", seq, t_ns + seq * SECOND, values)])
        chunked.append(CLOCK.now_ns() - start)
    assert len(store.read("e", "robot")[0]) == 20 * rows
    store.close()

    engine = create_engine(sqlite_url(tmp_path / "rows.db"))
    SQLModel.metadata.create_all(engine, tables=[SampleRow.__table__])  # pyright: ignore[reportAttributeAccessIssue]
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
    start = CLOCK.now_ns()
    with Session(engine) as session:
        for i in range(rows):
            session.add(SampleRow(seq=i, t_ns=int(t_ns[i]), payload=values[i].tobytes()))
            session.commit()
    single = CLOCK.now_ns() - start
    engine.dispose()

    chunk_ms = float(np.median(chunked)) / MILLISECOND
    single_ms = single / MILLISECOND
    size = len(encode_chunk(StreamSpec("s", tuple(map(str, range(columns))), "1", 1.0), t_ns, values))
    print(
        f"\none second of 1 kHz x {columns}: chunk {chunk_ms:.1f} ms ({size / values.nbytes:.0%} of the raw size), "
        f"a row per commit {single_ms:.0f} ms; ratio {single_ms / chunk_ms:.0f}"
    )


@pytest.mark.benchmark
def test_encoding_of_a_small_chunk() -> None:
    t_ns, values = motion(100, 29)
    spec = StreamSpec("robot", tuple(f"c{i}" for i in range(29)), "1", 100.0)
    spent = []
    for _ in range(300):
        start = CLOCK.now_ns()
        payload = encode_chunk(spec, t_ns, values)
        spent.append(CLOCK.now_ns() - start)
    print(f"\nencode 100 x 29 float64: median {np.median(spent) / MILLISECOND:.3f} ms, {len(payload)} bytes")
    assert payload
