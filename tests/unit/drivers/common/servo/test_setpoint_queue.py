"""The queue between the loop that limits setpoints and the thread that gives them: in order, once, and never a jump."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.drivers.common.servo.setpoint_queue import SetpointQueue

DELAY_NS = 50
PERIOD_NS = 10


def filled(n: int = 6, tail: int = 4) -> tuple[SetpointQueue, np.ndarray, np.ndarray]:
    """A feed at rest at 0 with n setpoints from 10 ns on, each a step of 1 further, and a stop behind them."""
    feed = SetpointQueue(1, DELAY_NS)
    feed.reset(np.zeros(2))
    rows = np.column_stack([np.arange(1.0, n + 1), np.zeros(n)])
    steps = np.linspace(0.8, 0.0, tail)
    stop = np.column_stack([n + np.cumsum(steps), np.zeros(tail)])
    feed.put(np.arange(1, n + 1) * PERIOD_NS, rows, rows, stop)
    return feed, rows, stop


def test_a_setpoint_is_given_the_delay_after_its_own_time_in_order_and_answered_once():
    feed, rows, _ = filled()
    assert feed.take(59) is None and len(feed.answered().t_ns) == 0
    given_rows = [feed.take(60 + i * PERIOD_NS) for i in range(6)]
    assert np.array_equal(given_rows, rows)
    answered = feed.answered()
    assert answered.t_ns.tolist() == [10, 20, 30, 40, 50, 60]
    assert (answered.sent == rows).all() and np.allclose(answered.delay_s, 50e-9)
    assert len(feed.answered().t_ns) == 0


def test_when_the_loop_is_late_the_stop_is_given_and_recorded_as_nobodys_wish():
    feed, _, stop = filled()
    for i in range(6):
        feed.take(60 + i * PERIOD_NS)
    feed.answered()
    assert not feed.parted
    taken = [feed.take(120 + i * PERIOD_NS) for i in range(5)]
    assert np.array_equal(taken[:4], stop) and taken[4] is None
    assert feed.parted
    answered = feed.answered()
    assert np.isnan(answered.requested).all() and (answered.sent == stop).all()


@given(st.integers(0, 4), st.integers(1, 6))
def test_taking_over_from_a_stop_under_way_makes_no_jump(taken: int, more: int):
    feed, _, _ = filled()
    path = [feed.take(60 + i * PERIOD_NS)[0] for i in range(6)]
    path += [feed.take(120 + i * PERIOD_NS)[0] for i in range(taken)]
    at, move = feed.take_over()
    ahead = at + move * 0.5 * np.arange(1, more + 1)[:, None]
    feed.put(np.arange(1, more + 1) * PERIOD_NS + 500, ahead, ahead, np.empty((0, 2)))
    while (row := feed.take(10_000)) is not None:
        path.append(row[0])
    steps = np.diff(path)
    assert (np.abs(steps) <= 1.0 + 1e-12).all() and path[-1] == ahead[-1, 0]
    assert not feed.parted


@given(st.integers(1, 4), st.integers(0, 3), st.integers(1, 6))
def test_times_ascend_though_a_stop_was_given_before_setpoints_that_came_late(taken: int, cut: int, more: int):
    """A stop's setpoints had the time at which they were given; readers search in times that ascend."""
    feed, _, _ = filled()
    given_ns = [60 + i * PERIOD_NS for i in range(6 + taken)]
    for at_ns in given_ns:
        feed.take(at_ns)
    answered = [feed.answered()]  # in the trace before what came late
    feed.take_over()
    late = np.tile([7.0, 0.0], (more, 1))
    feed.put(np.arange(7, 7 + more) * PERIOD_NS, late, late, late[:0])  # of the time that the loop missed
    for _ in range(cut):
        feed.take(given_ns[-1] + PERIOD_NS)
    feed.discard()
    answered.append(feed.answered())
    times = np.concatenate([part.t_ns for part in answered])
    requested = np.concatenate([part.requested for part in answered])
    assert (np.diff(times) > 0).all()
    assert np.isfinite(requested[:, 0]).sum() == 6 + more, "each that was asked for is answered once"
    of_stop = np.isnan(answered[0].requested[:, 0])
    assert (answered[0].t_ns + 1e9 * answered[0].delay_s)[of_stop] == pytest.approx(given_ns[6:])


def test_of_a_stop_that_is_cut_short_nothing_is_answered_that_was_not_given():
    """Such rows had the time 0: the age of a setpoint in an export was that of the clock."""
    feed, _, _ = filled()
    for i in range(7):
        feed.take(60 + i * PERIOD_NS)
    feed.take_over()
    feed.answered()
    feed.discard()
    assert not len(feed.answered().t_ns)


@given(st.integers(1, 3), st.integers(0, 4))
def test_setpoints_worked_out_before_the_stop_began_are_not_given_after_it(played: int, later: int):
    """While the loop limits a tick's setpoints the queue may run dry: they go on from where the robot no longer is."""
    feed, rows, _ = filled()
    path = [feed.take(60 + i * PERIOD_NS)[0] for i in range(6)]
    late = rows + 6  # go on from the last that was queued
    path += [feed.take(120 + i * PERIOD_NS)[0] for i in range(played)]
    assert not feed.put(np.arange(1, 7) * PERIOD_NS + 500, late, late, late[:0]) and feed.parted
    at, move = feed.take_over()
    path += [row[0] for i in range(later) if (row := feed.take(200 + i * PERIOD_NS)) is not None]
    if feed.parted:  # held up once more, for longer than what was left of the stop to play meanwhile
        at, move = feed.take_over()
    ahead = at + move * 0.5 * np.arange(1, 4)[:, None]
    assert feed.put(np.arange(1, 4) * PERIOD_NS + 500, ahead, ahead, ahead[:0])
    while (row := feed.take(10_000)) is not None:
        path.append(row[0])
    steps = np.diff([0.0, *path])
    assert (np.abs(np.diff(steps)) <= 0.5 + 1e-12).all() and path[-1] == ahead[-1, 0]


def test_what_is_left_out_is_answered_as_held_and_never_given():
    feed, rows, _ = filled(n=2)
    asked = np.full((3, 2), 9.0)
    feed.leave_out(np.array([30, 40, 50]), asked)
    given_rows = [feed.take(1000) for _ in range(3)]
    assert np.array_equal(given_rows[:2], rows) and given_rows[2][0] != 9.0
    answered = feed.answered()
    assert (answered.requested[2:5] == 9.0).all() and (answered.sent[2:5, 0] <= rows[-1, 0]).all()


def test_a_stop_discards_the_queue_and_answers_all_of_it_where_the_arm_is_held():
    feed, rows, _ = filled()
    feed.take(60)
    feed.discard()
    assert feed.take(10_000) is None
    answered = feed.answered()
    assert len(answered.t_ns) == 6 and (answered.sent == rows[0]).all()


def test_without_a_delay_the_newest_that_is_due_is_given_and_each_is_answered_once():
    queue = SetpointQueue(1, 0)
    queue.reset(np.zeros(2))
    rows = np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    queue.put(np.array([10, 20, 30]), rows, rows, np.empty((0, 2)))
    assert queue.take(5) is None
    given = queue.take(25)
    assert given is not None and given.tolist() == [0.2, 0.0]
    answered = queue.answered()
    assert answered.t_ns.tolist() == [10, 20]
    assert answered.sent.tolist() == [[0.2, 0.0], [0.2, 0.0]], "what was passed over was not sent"
    given = queue.take(30)
    assert given is not None and given.tolist() == [0.3, 0.0]
    assert queue.take(40) is None and queue.answered().t_ns.tolist() == [30]
