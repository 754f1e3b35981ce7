"""Claims about silence: a robot that nobody listened to was not silent, one that was listened to was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.robots.interleaved import after_the_first_write

from labctl.clock import MILLISECOND, SECOND
from labctl.drivers.common.state_timeout import MOST_NS, Silence


def _age(looks_ns: list[int], heard_ns: int = 0) -> int:
    silence = Silence()
    return [silence.age_ns(heard_ns, at) for at in looks_ns][-1]


@given(st.lists(st.integers(1, MOST_NS), min_size=1))
def test_whoever_looks_often_enough_counts_every_nanosecond(steps: list[int]) -> None:
    looks = [sum(steps[: i + 1]) for i in range(len(steps))]
    assert _age(looks) == looks[-1]


def test_a_pause_of_this_process_is_not_silence_of_the_robot() -> None:
    assert _age([20 * MILLISECOND, 5 * SECOND]) == 20 * MILLISECOND + MOST_NS


def test_a_word_of_the_robot_begins_anew() -> None:
    silence = Silence()
    looks = range(0, SECOND, 20 * MILLISECOND)
    assert [silence.age_ns(0, at) for at in looks][-1] == 980 * MILLISECOND
    assert silence.age_ns(970 * MILLISECOND, 990 * MILLISECOND) == 20 * MILLISECOND


def test_two_who_look_at_once_count_the_time_between_once() -> None:
    silence = Silence()
    silence.age_ns(0, 20 * MILLISECOND)
    with after_the_first_write(silence, "_counted", lambda: silence.age_ns(0, 40 * MILLISECOND)):
        silence.age_ns(0, 40 * MILLISECOND)
    assert silence.age_ns(0, 40 * MILLISECOND) == 40 * MILLISECOND
