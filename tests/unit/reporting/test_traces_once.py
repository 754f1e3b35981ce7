"""A report reads each stream of an episode once, and then keeps none of its samples: a campaign of any length fits."""

from __future__ import annotations

import weakref
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.nodes.policy_stream import POLICY
from labctl.reporting.from_traces import Early, _kept
from labctl.store.read_once import ReadOnce
from labctl.streams import StreamSpec

STREAMS = {
    "arm/state": StreamSpec("arm/state", ("q.a", "dq.a"), "rad, rad/s", 100.0),
    "arm/action": StreamSpec("arm/action", ("requested.a", "sent.a"), "rad", 100.0),
    "arm/lease": StreamSpec("arm/lease", ("since_s", "left_s"), "s", 10.0),
    "policy": POLICY,
    "sensor/wrist": StreamSpec("sensor/wrist", ("force",), "N", 100.0),
}


class Store:
    """Episodes of four seconds in which each action asks for 0.1 rad and gets them."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.given: list[weakref.ref[np.ndarray]] = []

    def streams(self, episode: str) -> list[StreamSpec]:
        return list(STREAMS.values())

    def read(self, episode: str, stream: str) -> tuple[np.ndarray, np.ndarray]:
        self.asked[episode, stream] += 1
        n = 4 if stream == "policy" else 400
        t_ns = SECOND + np.arange(n, dtype=np.int64) * (4 * SECOND // n)
        values = np.repeat(np.linspace(0.0, 4.0, n)[:, None], len(STREAMS[stream].columns), axis=1)
        if stream == "policy":
            values = np.full((n, len(POLICY.columns)), -1, np.int64)
            for name, column in {"capture_ns": t_ns, "request_ns": t_ns, "first_ns": t_ns, "executed": 8}.items():
                values[:, POLICY.columns.index(name)] = column
            values[:, POLICY.columns.index("dt_ns")] = SECOND // 8
        self.given += [weakref.ref(t_ns), weakref.ref(values)]
        return t_ns, values


@pytest.fixture
def record() -> Any:
    """Two scored episodes."""
    went = {name: SimpleNamespace(id=name, go_ns=SECOND, end_ns=5 * SECOND, taken_over=False) for name in ("e1", "e2")}
    return SimpleNamespace(episodes=went, arms={"t": "zebra"}, unblinding={})


def test_each_stream_of_an_episode_is_read_once(record: Any) -> None:
    store = Store()
    samples = ReadOnce(store)
    for episode in record.episodes:
        _kept(samples, record, TRIAL, episode, "zebra")
    assert store.asked == Counter({(episode, stream): 1 for episode in record.episodes for stream in STREAMS})


def test_what_is_kept_of_an_episode_holds_none_of_its_samples(record: Any) -> None:
    store = Store()
    kept = _kept(ReadOnce(store, most_bytes=0), record, TRIAL, "e1", "zebra")
    assert all(array() is None for array in store.given), "what is kept holds an array that was read"
    assert kept.stress is not None and kept.stress.measured["questions"] == 4 and kept.moved is not None
    assert kept.stress.traces.sent.size == 0 and len(kept.stress.traces.request_ns) == 4
    assert kept.renewals is not None and len(kept.renewals) == 400 and len(kept.curves) == 1


def test_what_cannot_be_kept_while_a_record_is_verified_is_read_later() -> None:
    """Nothing is said of a record that is not known to hold."""
    early = Early()
    early.seen([], "e1", Store())  # no events: nothing knows the episode
    assert early.of("e1") is None


TRIAL: Any = SimpleNamespace(id="t", condition="cube/left")
