"""Journal commit latency: median and 99th percentile, with synchronous FULL (the lab) and OFF (simulation)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labctl.clock import MILLISECOND, MonotonicClock
from labctl.core.events import Kind
from labctl.store.database_backend import sqlite_url
from labctl.store.journal import Journal

BODY = {"op_index": 3, "result": "success", "t_ns": 123_456_789_012, "cause": None}


@pytest.mark.benchmark
@pytest.mark.parametrize("durable", [True, False], ids=["FULL", "OFF"])
def test_commit_latency(tmp_path: Path, durable: bool) -> None:
    clock = MonotonicClock()
    journal = Journal.create(sqlite_url(tmp_path / "journal.db"), "bench", durable=durable)
    spent = []
    for _ in range(1000):
        start = clock.now_ns()
        journal.append(Kind.OPERATION_RECORDED, anchor=clock.anchor(), who="run", trial="t-1", episode="e-1", body=BODY)
        spent.append(clock.now_ns() - start)
    assert journal.head()[0] == 1000
    journal.close()
    median, p99 = np.percentile(spent, [50, 99]) / MILLISECOND
    mode = "FULL" if durable else "OFF"
    print(f"\njournal commit, synchronous={mode}: median {median:.3f} ms, p99 {p99:.3f} ms over {len(spent)} events")
