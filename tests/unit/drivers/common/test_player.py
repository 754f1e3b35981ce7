"""Recorded frames come when they are due, by the caller's clock, in order, once, and their end is told."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Frame
from labctl.drivers.common.player import MOST, QUEUE, Player
from labctl.errors import DeviceLost

START_NS = 5 * SECOND
SHORTEST_MS = 5


def player(times_ms: list[float], *, paced: bool = True) -> Player:
    frames = [Frame(np.zeros((2, 2, 3), np.uint8), 0, at, i) for i, at in enumerate(times_ms)]
    coming = iter([*frames, None])
    return Player(lambda: next(coming), paced=paced, start_ns=START_NS)


@given(
    gaps_ms=st.lists(st.integers(SHORTEST_MS, 100), min_size=1, max_size=50),
    first_ms=st.integers(0, 10_000),
    poll_ms=st.integers(1, SHORTEST_MS * QUEUE),
)
@example(gaps_ms=[SHORTEST_MS] * 5, first_ms=0, poll_ms=SHORTEST_MS * QUEUE)
def test_asked_often_enough_it_gives_every_frame_at_its_own_time(
    gaps_ms: list[int], first_ms: int, poll_ms: int
) -> None:
    """Often enough: no more frames come due between two questions than are kept."""
    times = [float(at) for at in accumulate(gaps_ms, initial=first_ms)]
    film, got, now_ns = player(times), [], START_NS
    while len(got) < len(times):
        frame = film.take(now_ns)
        if frame is None:
            now_ns += poll_ms * MILLISECOND
            continue
        assert frame.host_ns <= now_ns < frame.host_ns + poll_ms * MILLISECOND + 100 * QUEUE * MILLISECOND
        got.append(frame)
    assert [frame.number for frame in got] == list(range(len(times)))
    assert [frame.host_ns - START_NS for frame in got] == [round((at - times[0]) * 1e6) for at in times]
    with pytest.raises(DeviceLost, match="it has been played to its end"):
        film.take(now_ns)


def test_nothing_comes_before_its_time() -> None:
    film = player([0.0, 100.0])
    assert film.take(START_NS).number == 0
    assert film.take(START_NS + 100 * MILLISECOND - 1) is None
    assert film.take(START_NS + 100 * MILLISECOND).number == 1


def test_asked_later_than_that_it_leaves_out_the_oldest() -> None:
    film = player([float(at) for at in range(0, 30, SHORTEST_MS)])
    assert film.take(START_NS).number == 0
    assert film.take(START_NS + (QUEUE + 1) * SHORTEST_MS * MILLISECOND).number == 2, "number 1 was one too many"


def test_what_was_not_asked_for_in_time_is_a_gap_in_the_numbers() -> None:
    film = player([33.0 * i for i in range(60)])
    assert film.take(START_NS + SECOND).number == 30 - QUEUE + 1


def test_a_long_pause_is_caught_up_with_in_bounded_steps() -> None:
    film = player([10.0 * i for i in range(1000)])
    assert film.take(START_NS + 9 * SECOND).number == MOST - QUEUE
    numbers = []
    while (frame := film.take(START_NS + 9 * SECOND)) is not None:
        numbers.append(frame.number)
    assert numbers == sorted(set(numbers)) and numbers[-1] == 900
    assert len(numbers) <= 900 // MOST + QUEUE


@pytest.mark.parametrize("length", [0, 1, 5])
def test_without_pace_each_call_gives_the_next_with_the_time_of_the_call(length: int) -> None:
    film = player([33.0 * i for i in range(length)], paced=False)
    for i in range(length):
        frame = film.take(START_NS + i)
        assert (frame.number, frame.host_ns) == (i, START_NS + i)
    for _ in range(2):
        with pytest.raises(DeviceLost):
            film.take(START_NS + length)
