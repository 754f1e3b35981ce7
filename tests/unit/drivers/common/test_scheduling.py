"""What a library makes of the scheduling of its caller, and of its own threads, is undone."""

from __future__ import annotations

import os
import threading

import pytest

from labctl.realtime import kept

pytestmark = pytest.mark.privileged


def raise_this_thread() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))


def test_a_thread_that_a_library_raised_is_as_before_even_if_the_library_fails() -> None:
    with pytest.raises(RuntimeError), kept():
        raise_this_thread()
        raise RuntimeError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize(("begun", "left"), [(False, os.SCHED_FIFO), (True, os.SCHED_OTHER)])
def test_the_threads_that_a_library_began_are_put_back_where_that_is_asked(begun: bool, left: int) -> None:
    raised, end, found = threading.Event(), threading.Event(), []

    def its_thread() -> None:
        raise_this_thread()
        raised.set()
        end.wait()

    thread = threading.Thread(target=its_thread)
    with kept(begun=begun):
        thread.start()
        raised.wait()
    found.append(os.sched_getscheduler(thread.native_id or 0))
    end.set()
    thread.join()
    assert found == [left]


def test_who_was_raised_before_stays_raised() -> None:
    raise_this_thread()
    with kept(begun=True):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    found = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    assert found == (os.SCHED_FIFO, 50)
