"""Which streams of labels there are, how each is named, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.errors import StateError
from labctl.reporting.label_streams import label_facts, tallied

ALL = {"scored": 4, "operator": 4, "detector": 4, "reviewed": 4, "device": 4}


def test_a_tally_is_the_times_of_the_counts_that_stand():
    # one at 10, a second at 20, that one taken back at 25, counted again at 30
    assert tallied([(1, 10), (2, 20), (1, 25), (2, 30)]) == [10, 30]
    assert tallied([]) == []


@given(st.lists(st.sampled_from([1, -1]), max_size=30))
def test_a_tally_always_has_as_many_times_as_it_says_items(steps):
    counts, total = [], 0
    for at, step in enumerate(steps):
        total = max(0, total + step)
        counts.append((total, at))
    found = tallied(counts)
    assert len(found) == total and found == sorted(found)


def test_a_stream_that_nobody_recorded_is_refused_in_one_line():
    with pytest.raises(StateError, match=r"--labels reviewed: no episode was reviewed; there is detector, device$"):
        label_facts("reviewed", {**ALL, "reviewed": 0, "operator": 0})
    with pytest.raises(StateError, match="there is none at all"):
        label_facts("operator", dict.fromkeys(ALL, 0))


@pytest.mark.parametrize(
    ("labels", "found", "stream", "said"),
    [
        ("detector", ALL, "detector", "the detector's"),
        ("detector", {**ALL, "detector": 3}, "detector", "1 of 4 episodes have none"),
        ("reviewed", {**ALL, "reviewed": 1}, "reviewed", "3 of 4 episodes were not reviewed"),
        ("operator", {**ALL, "operator": 3}, "operator", "of 1 of 4 episodes none was counted"),
        ("best", ALL, "reviewed", "review for 4 of 4"),
        ("best", {**ALL, "reviewed": 1}, "reviewed, else device", "else what devices reported"),
        ("best", {**ALL, "device": 0, "reviewed": 1}, "reviewed, else detector", "else the detector's"),
        ("best", {**ALL, "device": 0, "reviewed": 0}, "detector", "the detector's"),
    ],
)
def test_a_stream_is_named(labels, found, stream, said):
    told = label_facts(labels, found)
    assert told["stream"] == stream and said in told["text"]
