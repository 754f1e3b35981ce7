"""A camera read by a thread: frames keep their order, what is lost shows, and nothing is left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import Frame
from labctl.drivers.common.frame_reader import FEWEST_REPEATS, QUEUE, FrameReader, Repeats
from labctl.errors import DeviceLost, DeviceRefused

pytestmark = pytest.mark.real_time

CLOCK = MonotonicClock()
LONG_S = 60.0


def picture(value: int) -> np.ndarray:
    return np.full((8, 8, 3), value, np.uint8)


class Scripted:
    """A source that gives what a test puts into `coming`: a frame, None, or an exception to raise."""

    def __init__(self) -> None:
        self.coming: Queue[Frame | Exception | None] = Queue()
        self.open_error: Exception | None = None
        self.opened = self.closed = 0
        self.threads: set[str] = set()

    def open(self) -> None:
        self.opened += 1
        self.threads.add(threading.current_thread().name)
        if self.open_error is not None:
            raise self.open_error

    def read(self) -> Frame | None:
        self.threads.add(threading.current_thread().name)
        found = self.coming.get()
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        self.threads.add(threading.current_thread().name)
        self.closed += 1

    def give(self, *numbers: int) -> None:
        for number in numbers:
            self.coming.put(Frame(picture(number % 251), CLOCK.now_ns(), float(number), number))


@pytest.fixture
def source() -> Scripted:
    return Scripted()


@pytest.fixture
def reader(source: Scripted) -> Iterator[FrameReader]:
    made = FrameReader("cam", source, silent_s=0.0, open_s=LONG_S, frozen_s=0.0)
    yield made
    source.coming.put(DeviceLost("the test is over"))
    made.end()
    assert not [thread for thread in threading.enumerate() if thread.name == "camera-cam"]


def test_frames_come_in_order_and_stay_the_callers(source: Scripted, reader: FrameReader) -> None:
    source.give(0, 1, 2)
    reader.start()
    assert [reader.take(LONG_S).number for _ in range(3)] == [0, 1, 2]
    assert reader.take(0.0) is None


def test_all_that_touches_the_camera_happens_in_one_thread(source: Scripted, reader: FrameReader) -> None:
    source.give(0)
    reader.start()
    source.coming.put(DeviceLost("gone"))
    reader.end()
    assert source.threads == {"camera-cam"} and (source.opened, source.closed) == (1, 1)


def test_a_caller_who_is_late_loses_the_oldest_and_the_numbers_say_so(source: Scripted, reader: FrameReader) -> None:
    source.give(*range(20))
    reader.start()
    source.coming.put(DeviceLost("gone"))
    until_lost(reader)
    assert [reader.take(0.0).number for _ in range(QUEUE)] == list(range(20 - QUEUE, 20))


def until_lost(reader: FrameReader) -> None:
    over_ns = CLOCK.now_ns() + 60 * SECOND
    while reader.running:
        assert CLOCK.now_ns() < over_ns
        CLOCK.sleep_until(CLOCK.now_ns() + MILLISECOND)


def test_a_loss_is_told_after_the_frames_before_it_and_again_each_time(source: Scripted, reader: FrameReader) -> None:
    source.give(0, 1)
    source.coming.put(DeviceLost("the cable is out"))
    reader.start()
    until_lost(reader)
    assert [reader.take(0.0).number, reader.take(0.0).number] == [0, 1]
    for _ in range(2):
        with pytest.raises(DeviceLost, match=r"^cam: the cable is out$"):
            reader.take(0.0)


def test_after_a_loss_it_can_be_started_again(source: Scripted, reader: FrameReader) -> None:
    source.give(0)
    source.coming.put(DeviceLost("gone"))
    reader.start()
    until_lost(reader)
    source.give(7)
    reader.start()
    assert reader.running and reader.take(LONG_S).number == 7
    assert (source.opened, source.closed) == (2, 1)


def test_starting_twice_opens_once(source: Scripted, reader: FrameReader) -> None:
    source.give(0)
    reader.start()
    reader.start()
    assert source.opened == 1


@pytest.mark.parametrize("error", [DeviceRefused("it is 5 x 5"), DeviceLost("nobody there")])
def test_what_opening_raises_reaches_the_caller(source: Scripted, reader: FrameReader, error: Exception) -> None:
    source.open_error = error
    with pytest.raises(type(error), match=f"^cam: {error}$"):
        reader.start()
    assert not reader.running and source.closed == 1


def test_a_camera_that_opens_but_gives_nothing_is_lost(source: Scripted, reader: FrameReader) -> None:
    source.coming.put(None)
    with pytest.raises(DeviceLost, match="no picture for"):
        reader.start()


def test_a_bug_in_a_driver_is_not_swallowed(source: Scripted, reader: FrameReader) -> None:
    source.give(0)
    source.coming.put(ZeroDivisionError("a bug"))
    reader.start()
    until_lost(reader)
    reader.take(0.0)
    with pytest.raises(ZeroDivisionError):
        reader.take(0.0)


def test_a_driver_that_hangs_is_named_and_not_opened_twice(source: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labctl.drivers.common.frame_reader.JOIN_S", 0.05)
    reader = FrameReader("cam", source, silent_s=1.0, open_s=0.05, frozen_s=0.0)
    with pytest.raises(DeviceLost, match="gave no picture within"):
        reader.start()
    over_ns = CLOCK.now_ns() + 60 * SECOND
    while not source.opened:
        assert CLOCK.now_ns() < over_ns
        CLOCK.sleep_until(CLOCK.now_ns() + MILLISECOND)
    with pytest.raises(DeviceLost, match="hangs in an earlier call"):
        reader.start()
    assert source.opened == 1
    source.coming.put(None)
    monkeypatch.setattr("labctl.drivers.common.frame_reader.JOIN_S", LONG_S)
    reader.end()


def test_the_reader_itself_notices_a_frozen_camera(source: Scripted) -> None:
    reader = FrameReader("cam", source, silent_s=1.0, open_s=LONG_S, frozen_s=0.5)
    for i in range(FEWEST_REPEATS + 2):
        source.coming.put(Frame(picture(9), i * SECOND, float(i), i))
    reader.start()
    until_lost(reader)
    with pytest.raises(DeviceLost, match="same picture over and over"):
        for _ in range(QUEUE + 1):
            reader.take(0.0)
    reader.end()


@given(
    changes=st.lists(st.booleans(), min_size=1, max_size=60),
    period_ms=st.integers(5, 200),
    limit_s=st.floats(0.1, 3.0),
)
def test_a_camera_is_frozen_when_and_only_when_the_same_bytes_came_for_the_limit(
    changes: list[bool], period_ms: int, limit_s: float
) -> None:
    repeats, value, since, expected, found = Repeats(limit_s), 0, 0, None, None
    for i, changed in enumerate([True, *changes]):
        if changed:
            value, since = value + 1, i
        elif expected is None and i - since >= FEWEST_REPEATS and (i - since) * period_ms >= round(limit_s * 1000, 6):
            expected = i
        try:
            repeats.look(picture(value), i * period_ms * MILLISECOND)
        except DeviceLost:
            found = i
            break
    assert found == expected


def test_a_limit_of_zero_never_calls_a_camera_frozen() -> None:
    repeats = Repeats(0.0)
    for i in range(100):
        repeats.look(picture(1), i * SECOND)


def test_a_first_picture_that_comes_as_the_wait_for_it_ends_leaves_no_camera_that_runs_and_is_lost() -> None:
    """It was connected with that picture, and lost behind it for having given none."""
    source = Scripted()
    reader = FrameReader("c", source, silent_s=LONG_S, open_s=0.0, frozen_s=0.0)

    class Late(threading.Condition):
        """The picture comes as soon as the wait lets go of the lock."""

        def __exit__(self, *error: Any) -> None:
            super().__exit__(*error)
            if threading.current_thread() is waiting:
                reader._frames.append(Frame(picture(1), CLOCK.now_ns(), 1.0, 1))
                source.coming.put(DeviceLost("over"))

    waiting, reader._changed = threading.current_thread(), Late()
    with pytest.raises(DeviceLost, match="gave no picture within 0 s"):
        reader.start()
    assert not reader.running
    reader.end()
