"""Every frame that is missing is told once, with its cause, and nothing that is there is told as missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.nodes.frame_gaps import AGAIN, BACK, BEHIND, DROPPED, JOIN_NS, LONGEST_NS, NOT_COME, STILL, Due, FrameGaps

PERIOD = 33 * MILLISECOND
START = 1000 * SECOND


def fed(numbers, *, full=()) -> tuple[list[bool], list[dict]]:
    """Frames of the given counts one period apart; the encoder has no room for those at the places `full`."""
    holes, kept = FrameGaps("camera/wrist", START), []
    for place, number in enumerate(numbers):
        t_ns = START + (place + 1) * PERIOD
        keep = holes.keeps(number, t_ns)
        if keep and place in full:
            holes.given_up(t_ns)
        elif keep:
            holes.kept(t_ns)
        kept.append(keep and place not in full)
    return kept, holes.due(START + 10**12)


def test_a_steady_count_has_no_gap_whatever_it_begins_with():
    assert fed(range(700, 800)) == ([True] * 100, [])


def test_a_hole_in_the_count_is_frames_that_the_device_dropped():
    kept, gaps = fed([5, 6, 10, 11])
    assert all(kept)
    times = {"from_ns": START + 2 * PERIOD, "to_ns": START + 3 * PERIOD}
    assert gaps == [{"stream": "camera/wrist", **times, "lost": 3, "why": DROPPED, "holes": 1}]


def test_a_frame_that_comes_again_is_not_recorded_again():
    kept, (gap,) = fed([5, 6, 6, 7])
    assert kept == [True, True, False, True]
    assert (gap["why"], gap["lost"], gap["holes"]) == (AGAIN, 0, 1)


def test_a_count_that_goes_back_is_told_and_its_frames_are_kept():
    kept, (gap,) = fed([100, 101, 0, 1, 2])
    assert all(kept)
    assert (gap["why"], gap["lost"]) == (BACK, None), "nobody knows how many"


def test_frames_whose_time_does_not_advance_are_left_out():
    holes = FrameGaps("camera/wrist", START)
    for number, t_ns, keeps in ((1, START, True), (2, START, False), (3, START + 999, False), (4, START + 1000, True)):
        assert holes.keeps(number, t_ns) == keeps
        if keeps:
            holes.kept(t_ns)
    (gap,) = holes.due(START, force=True)
    assert (gap["why"], gap["lost"], gap["holes"]) == (STILL, 2, 2)


def test_what_the_encoder_had_no_room_for_is_a_gap_between_the_frames_around_it():
    kept, (gap,) = fed(range(10), full=(3, 4, 5))
    assert kept == [True] * 3 + [False] * 3 + [True] * 4
    assert (gap["why"], gap["lost"], gap["holes"]) == (BEHIND, 3, 1)
    assert (gap["from_ns"], gap["to_ns"]) == (START + 3 * PERIOD, START + 7 * PERIOD)


def test_a_loss_is_counted_by_the_rate_and_the_count_may_begin_anew():
    holes = FrameGaps("camera/wrist", START)
    holes.keeps(50, START + PERIOD)
    holes.kept(START + PERIOD)
    holes.lost(START + PERIOD + 2 * SECOND, 30.0, "the cable is out")
    assert holes.keeps(0, START + PERIOD + 2 * SECOND)
    (gap,) = holes.due(START, force=True)
    assert (gap["why"], gap["lost"]) == ("the cable is out", 59)
    assert (gap["from_ns"], gap["to_ns"]) == (START + PERIOD, START + PERIOD + 2 * SECOND)


def test_an_encoder_that_stays_behind_is_told_in_parts_that_do_not_overlap():
    holes = FrameGaps("camera/wrist", START)
    told, t_ns = [], START
    for number in range(900):
        t_ns += PERIOD
        assert holes.keeps(number, t_ns)
        holes.given_up(t_ns)
        told += holes.due(t_ns)
    told += holes.due(t_ns, force=True)
    assert len(told) == 3 and sum(gap["lost"] for gap in told) == 900
    assert all(before["to_ns"] == after["from_ns"] for before, after in pairwise(told))


def test_a_gap_is_not_told_while_it_may_still_grow():
    holes = FrameGaps("camera/wrist", START)
    for number, t_ns in ((0, START + PERIOD), (2, START + 2 * PERIOD)):
        holes.keeps(number, t_ns)
        holes.kept(t_ns)
    assert holes.due(START + 2 * PERIOD + JOIN_NS) == []
    assert len(holes.due(START + 2 * PERIOD + JOIN_NS + 1)) == 1


def test_holes_close_together_are_one_gap_and_one_cause_is_not_mixed_with_another():
    _, gaps = fed([0, 2, 4, 6, 7, 8, 9, 11], full=(5,))
    assert [(gap["why"], gap["lost"], gap["holes"]) for gap in gaps] == [(DROPPED, 4, 4), (BEHIND, 1, 1)]


def test_a_gap_is_told_once_it_is_over_and_one_that_goes_on_now_and_then():
    holes = FrameGaps("camera/wrist", START)
    told, t_ns = [], START
    for place in range(600):  # every other frame is missing, for 20 s
        t_ns += PERIOD
        assert holes.keeps(2 * place, t_ns)
        holes.kept(t_ns)
        told += holes.due(t_ns)
    assert len(told) == 1 and told[0]["to_ns"] - told[0]["from_ns"] <= LONGEST_NS + PERIOD
    told += holes.due(t_ns + JOIN_NS + 1)
    assert len(told) == 2 and told[0]["to_ns"] <= told[1]["from_ns"]
    assert sum(gap["lost"] for gap in told) == 599
    assert holes.due(t_ns + 2 * JOIN_NS, force=True) == []


@given(steps=st.lists(st.integers(1, 4), max_size=80), full=st.sets(st.integers(0, 80)))
def test_what_is_kept_and_what_is_missing_add_up_to_what_the_device_counted(steps, full):
    numbers = [sum(steps[: i + 1]) for i in range(len(steps))]
    kept, gaps = fed(numbers, full=full)
    counted = numbers[-1] - numbers[0] + 1 if numbers else 0
    assert sum(kept) + sum(gap["lost"] for gap in gaps) == counted


def uncounted(
    host_ms: Iterable[float], device_ms: Iterable[float] | None = None, numbers: Sequence[int] = ()
) -> list[dict]:
    """The gaps of a camera that counts no frames, which came at host_ms; by its own clock they are of device_ms."""
    holes, due = FrameGaps("camera/wrist", START), Due(30.0)
    host = list(host_ms)
    own = [math.nan] * len(host) if device_ms is None else list(device_ms)
    for place, (came_ms, of_ms) in enumerate(zip(host, own, strict=True)):
        t_ns = START + round(came_ms * MILLISECOND)
        missing = due.missing(t_ns, of_ms, "none" if device_ms is None else "v4l2")
        if holes.keeps(numbers[place] if numbers else place, t_ns, missing):
            holes.kept(t_ns)
    return holes.due(START + 10**12)


EVEN = [1000 / 30 * i for i in range(1, 91)]


def without(*places: int) -> list[float]:
    return [t for i, t in enumerate(EVEN) if i not in places]


def test_frames_that_a_camera_without_a_count_lost_are_missed_by_their_times():
    (gap,) = uncounted(without(30, 31, 50))
    assert (gap["why"], gap["lost"], gap["holes"]) == (NOT_COME, 3, 2)
    assert (gap["from_ns"], gap["to_ns"]) == tuple(START + round(EVEN[i] * MILLISECOND) for i in (29, 51))


@pytest.mark.parametrize("off", [0.0, 0.01, -0.01, 0.1, -0.1])
def test_a_rate_that_is_not_quite_the_cells_and_an_uneven_way_are_no_gap(off: float):
    times = [t * (1 + off) + (7, -6, 3, 0, -5)[i % 5] * (abs(off) < 0.1) for i, t in enumerate(EVEN)]
    assert uncounted(times) == []


def test_frames_that_were_held_up_and_came_in_a_burst_are_not_missing():
    held = [EVEN[40] - 1 + 0.01 * (i - 36) if 36 <= i < 40 else t for i, t in enumerate(EVEN)]
    assert uncounted(held) == []


def test_by_the_devices_clock_what_was_held_up_hides_no_frame_that_is_missing():
    own = without(37)
    came = [EVEN[45] - 1 + 0.01 * i if EVEN[35] < t < EVEN[45] else t for i, t in enumerate(own)]
    (gap,) = uncounted(came, own)
    assert (gap["why"], gap["lost"]) == (NOT_COME, 1)


def test_a_devices_clock_that_is_set_anew_loses_no_frame():
    assert uncounted(EVEN, [t + 3_600_000 * (i >= 40) - 7_200_000 * (i >= 60) for i, t in enumerate(EVEN)]) == []


def test_a_camera_that_slows_down_is_missed_frame_by_frame():
    slow = EVEN[:30] + EVEN[31::2]
    (gap,) = uncounted(slow)
    assert (gap["why"], gap["lost"], gap["holes"]) == (NOT_COME, 30, 30)


def test_what_its_driver_let_go_is_not_missed_twice():
    numbers = [i for i in range(90) if i not in (30, 31)]
    gaps = uncounted(without(30, 31, 32), numbers=[i if i < 30 else i - 1 for i in numbers if i != 32])
    assert [(gap["why"], gap["lost"]) for gap in gaps] == [(NOT_COME, 1), (DROPPED, 2)]
