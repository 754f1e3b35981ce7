"""A report reads no stream of a campaign twice, and keeps no more of it than was allowed."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from labctl.errors import BrokenRecord
from labctl.store.read_once import ReadOnce
from labctl.streams import StreamSpec

SPEC = StreamSpec("policy", ("a",), "ns", 1.0, "<i8")


class Store:
    """Streams of a hundred samples of eight bytes, and who asked for them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def streams(self, episode: str) -> list[StreamSpec]:
        self.asked.append((episode, ""))
        return [SPEC]

    def read(self, episode: str, stream: str) -> tuple[np.ndarray, np.ndarray]:
        self.asked.append((episode, stream))
        if stream == "damaged":
            raise BrokenRecord("changed trace chunk")
        return np.arange(100), np.zeros((100, 1), np.int64)


def test_what_was_read_a_moment_ago_is_not_read_again() -> None:
    store = Store()
    once = ReadOnce(store)
    for _ in range(3):
        assert once.streams("e1") == [SPEC]
        assert once.read("e1", "policy")[1].shape == (100, 1)
    assert store.asked == [("e1", ""), ("e1", "policy")]


def test_what_was_read_longest_ago_goes_when_there_is_no_room() -> None:
    store = Store()
    once = ReadOnce(store, most_bytes=3 * 1600)
    for stream in ("a", "b", "c", "a", "d", "a", "b"):
        once.read("e1", stream)
    assert [stream for _, stream in store.asked] == ["a", "b", "c", "d", "b"]


def test_an_episode_is_let_go_when_the_next_is_read() -> None:
    store = Store()
    once = ReadOnce(store)
    times = weakref.ref(once.read("e1", "policy")[0])
    once.streams("e1")
    once.read("e2", "policy")
    assert times() is None
    once.read("e1", "policy")
    assert store.asked == [("e1", "policy"), ("e1", ""), ("e2", "policy"), ("e1", "policy")]


def test_a_stream_larger_than_the_room_is_given_out_all_the_same() -> None:
    once = ReadOnce(Store(), most_bytes=10)
    assert len(once.read("e1", "policy")[0]) == len(once.read("e1", "policy")[0]) == 100


def test_nobody_changes_what_others_read() -> None:
    times, _ = ReadOnce(Store()).read("e1", "policy")
    with pytest.raises(ValueError, match="read-only"):
        times[0] = 1


def test_a_damaged_stream_is_damaged_each_time() -> None:
    once = ReadOnce(Store())
    for _ in range(2):
        with pytest.raises(BrokenRecord, match="changed trace chunk"):
            once.read("e1", "damaged")
