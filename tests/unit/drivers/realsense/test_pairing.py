"""Pictures find their depth by time alone, however the two streams interleave."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from labctl.drivers.realsense.pairing import LOOKAHEAD, Pairing

PERIOD = 33.3
TOLERANCE = PERIOD / 2


def paired(pictures: list[int], depths: list[int], offsets: dict[int, float], seed: int, skew: int) -> list:
    """Give both streams, interleaved at random but never more than `skew` apart; what comes out, in order."""
    pairing: Pairing[int] = Pairing(TOLERANCE)
    chance, found = random.Random(seed), []
    left, right = list(pictures), list(depths)
    while left or right:
        ahead = (left[0] if left else 1 << 30) - (right[0] if right else 1 << 30)
        if left and (not right or ahead < -skew or (ahead <= skew and chance.random() < 0.5)):
            number = left.pop(0)
            pairing.picture(number * PERIOD, number)
        else:
            number = right.pop(0)
            pairing.depth(number * PERIOD + offsets[number], number)
        while (pair := pairing.ready()) is not None:
            found.append(pair)
    while (pair := pairing.ready(ended=True)) is not None:
        found.append(pair)
    return found


@given(
    pictures=st.sets(st.integers(0, 60)).map(sorted),
    depths=st.sets(st.integers(0, 60)).map(sorted),
    seed=st.integers(0, 10_000),
    skew=st.integers(0, LOOKAHEAD // 2),
    offset=st.floats(-0.45, 0.45),
)
def test_each_picture_gets_the_depth_of_its_time_or_none(
    pictures: list[int], depths: list[int], seed: int, skew: int, offset: float
) -> None:
    found = paired(pictures, depths, dict.fromkeys(depths, offset * PERIOD), seed, skew)
    assert found == [(number, number if number in depths else None) for number in pictures]


@given(numbers=st.integers(1, 200))
def test_pictures_without_any_depth_are_held_back_only_so_long(numbers: int) -> None:
    pairing: Pairing[int] = Pairing(TOLERANCE)
    out = []
    for number in range(numbers):
        pairing.picture(number * PERIOD, number)
        while (pair := pairing.ready()) is not None:
            out.append(pair)
    assert out == [(number, None) for number in range(max(0, numbers - LOOKAHEAD))]


def test_depth_that_belongs_to_no_picture_is_counted() -> None:
    pairing: Pairing[int] = Pairing(TOLERANCE)
    for number in (1, 2, 3, 5):
        pairing.depth(number * PERIOD, number)
    for number in (3, 5):
        pairing.picture(number * PERIOD, number)
    assert [pairing.ready(), pairing.ready()] == [(3, 3), (5, 5)]
    assert pairing.alone == 2
