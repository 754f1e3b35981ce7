"""Adaptability by hand: stretches around switches, who met them, and medians with episodes that never moved on."""

from __future__ import annotations

import csv
import io
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.analysis.binary.rates import wilson
from labctl.analysis.episodes.adaptability import Watched, after_switches, by_arm
from labctl.analysis.report.sections.lab_sections import adaptability_table, files

S = 1_000_000_000
GO = 100 * S
HEARD, DEAF = {"red": False}, {"red": True}  # whether the assessor said that it was ignored


def watched(*moved_s: float, end_s: float = 60.0, asked_s: tuple[float, ...] = (), **given: Any) -> Watched:
    taken = {name: GO + round(at_s * S) for name, at_s in given.pop("taken", {"red": 20.0}).items()}
    moved = [GO + round(at_s * S) for at_s in moved_s]
    asked = np.array([GO + round(at_s * S) for at_s in asked_s], np.int64)
    arm = given.pop("arm", "a")
    return Watched("e", arm, "towels", GO, GO + round(end_s * S), moved, taken, asked, **given)


def test_items_are_before_or_after_the_switch_and_the_first_after_it_is_timed():
    (one,) = after_switches(watched(5.0, 20.0, 32.0, 50.0, asked_s=(0.0, 19.5, 21.25, 22.0)), ["red"])
    told = (one["moved_before"], one["before_s"], one["moved_after"], one["after_s"], one["first_s"], one["asked_s"])
    assert told == (2, 20.0, 2, 40.0, 12.0, 1.25), "what moved at the switch itself moved before it"
    assert (one["met"], one["switch_s"]) == (True, 20.0)


def test_a_stretch_ends_at_the_next_switch():
    both = watched(5.0, 25.0, 45.0, 50.0, taken={"red": 20.0, "blue": 40.0})
    red, blue = after_switches(both, ["red", "blue"])
    assert (red["moved_after"], red["after_s"], red["first_s"]) == (1, 20.0, 5.0)
    assert (blue["moved_before"], blue["before_s"], blue["moved_after"], blue["first_s"]) == (1, 20.0, 2, 5.0)


def test_an_episode_that_did_not_meet_a_switch_is_counted_and_in_no_measure():
    early = after_switches(watched(5.0, 10.0, end_s=10.0, taken={}), ["red"])
    assert (early[0]["met"], early[0]["moved_before"]) == (False, None)
    (entry,) = by_arm([*early, *after_switches(watched(30.0, ignored=HEARD), ["red"])], ["a", "b"], ["red"])
    assert (entry["episodes"], entry["met"], entry["succeeded"]) == (2, 1, 1)
    (none,) = by_arm(early, ["a"], ["red"])
    assert (none["met"], none["share"], none["ci"], none["first_s"]) == (0, None, None, None)


def test_the_share_is_of_episodes_with_wilsons_interval_and_the_median_is_kaplan_meiers():
    """First items after 5, 10 and 20 s, one episode cut after 8 s without any. By hand S(5) = 3/4, then two are left at
    risk at 10 s: S(10) = 3/4 * 1/2 = 3/8, the first at or below one half.
    """
    ran = [watched(*at, ignored=HEARD, end_s=end) for *at, end in ((25.0, 60.0), (30.0, 60.0), (40.0, 60.0), (28.0,))]
    (entry,) = by_arm([one for run in ran for one in after_switches(run, ["red"])], ["a"], ["red"])
    assert (entry["succeeded"], entry["met"], entry["share"]) == (3, 4, 0.75)
    assert entry["ci"] == [*wilson(3, 4)]
    assert entry["first_s"] == 10.0


def test_an_episode_that_lost_the_rest_never_has_a_first_item_and_is_not_censored():
    """Two of three never: the median is not reached; censored at 28 s instead, it would be the one first at 10 s."""
    lost = [watched(end_s=28.0, spent=True), watched(end_s=28.0, spent=True), watched(30.0)]
    cut = [watched(end_s=28.0), watched(end_s=28.0), watched(30.0)]
    found = []
    for ran in (lost, cut):
        (entry,) = by_arm([one for run in ran for one in after_switches(run, ["red"])], ["a"], ["red"])
        found.append(entry["first_s"])
    assert found == ["inf", 10.0]
    red, blue = after_switches(watched(spent=True, taken={"red": 20.0, "blue": 40.0}), ["red", "blue"])
    assert (red["first_s"], blue["first_s"]) == (None, "inf"), "the next switch cut the first stretch"


def test_without_any_item_after_it_the_median_is_not_reached():
    (entry,) = by_arm(after_switches(watched(5.0, ignored=HEARD), ["red"]), ["a"], ["red"])
    assert (entry["first_s"], entry["succeeded"]) == ("inf", 0)


def test_an_arm_that_is_deaf_to_a_switch_and_moves_items_all_the_same_does_not_succeed():
    deaf = [one for _ in range(4) for one in after_switches(watched(5.0, 30.0, 40.0, ignored=DEAF), ["red"])]
    follows = [one for _ in range(4) for one in after_switches(watched(30.0, arm="b", ignored=HEARD), ["red"])]
    a, b = by_arm([*deaf, *follows], ["a", "b"], ["red"])
    assert (a["moved"], a["succeeded"], a["share"]) == (4, 0, 0.0)
    assert (b["moved"], b["succeeded"], b["share"]) == (4, 4, 1.0)


def test_where_nobody_judged_what_was_moved_no_arm_is_said_to_follow_a_switch():
    entries = after_switches(watched(5.0, 30.0), ["red"])
    (entry,) = by_arm(entries, ["a"], ["red"])
    assert entries[0]["followed"] is None
    assert (entry["moved"], entry["succeeded"], entry["share"], entry["ci"]) == (1, None, None, None)
    switches = [{"name": "red", "at_s": 20.0, "instruction": "Now the red ones."}]
    made = adaptability_table({"switches": switches, "arms": [entry], "episodes": entries})
    assert made is not None and made.rows[0][3:6] == ("–", "–", "1 / 1")
    assert "nobody judged it, and no arm is called adaptable" in made.note


@given(
    moved=st.lists(st.floats(0.001, 60.0), max_size=8),
    at_s=st.lists(st.floats(0.5, 59.0), max_size=3, unique=True),
)
def test_stretches_of_all_switches_part_the_episode(moved: list[float], at_s: list[float]):
    taken = {f"s{number}": at for number, at in enumerate(sorted(at_s))}
    found = after_switches(watched(*moved, taken=taken), list(taken))
    if not found:
        return
    assert found[0]["moved_before"] + sum(one["moved_after"] for one in found) == len(moved)
    assert found[0]["before_s"] + sum(one["after_s"] for one in found) == pytest.approx(60.0)
    for one, following in itertools.pairwise(found):
        assert (one["moved_after"], one["after_s"]) == (following["moved_before"], following["before_s"])
    assert all((one["first_s"] is None) == (one["moved_after"] == 0) for one in found)


def test_the_table_says_what_was_switched_and_is_absent_without_a_switch():
    entries = [
        *after_switches(watched(5.0, 32.0, asked_s=(20.5,), ignored=HEARD), ["red"]),
        *after_switches(watched(arm="b", ignored=HEARD), ["red"]),
    ]
    switches = [{"name": "red", "at_s": 20.0, "instruction": "Now the red ones.", "ignored": "went on"}]
    found = {"switches": switches, "arms": by_arm(entries, ["a", "b"], ["red"]), "episodes": entries}
    made = adaptability_table(found)
    assert made is not None
    assert made.rows[0][:4] == ("a", "red", "1 / 1", "1 / 1")
    assert made.rows[0][5:] == ("1 / 1", "3.0", "1.5", "12.0", "0.50")
    assert made.rows[1][2:4] == ("1 / 1", "0 / 1") and made.rows[1][8] == "not reached"
    assert "the assessor did not tick “went on” (red)" in made.note
    assert "red, 20 s after go: “Now the red ones”. Met" in made.note
    rows = list(
        csv.DictReader(io.StringIO(files({"stress": {"adaptability": found}})["figures/adaptability.csv"].decode()))
    )
    assert [row["first_s"] for row in rows] == ["12.0", ""]
    assert adaptability_table(None) is None and adaptability_table({}) is None and files({}) == {}
