"""The reference person by person, by hand: rates, learning, fatigue, practice and its plateau."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.episodes.operators import people, plateau, practised, slope
from labctl.analysis.report.sections.operator_sections import section
from labctl.analysis.table import table_from_rows


def episode(name: str, operator: str, moved: int, end: float, *, session: str = "s1", arm: str = "human", void="0"):
    """One episode of `moved` equally quick successes in `end` seconds."""
    about = {"arm": arm, "object": "towels", "items_staged": 4, "end_s": end, "budget_s": 120}
    about |= {"operator": operator, "session": session, "void": void}
    return [{"episode": name, "kind": "success", "time_s": end / moved, **about} for _ in range(moved)]


def rows(*parts: list[dict]) -> list[dict]:
    return [row for part in parts for row in part]


# 4 items in 60, 48 and 40 s: 240, 300, 360 an hour
LEARNER = [episode(f"a{i}", "p1", 4, end) for i, end in enumerate((60, 48, 40))]


def test_each_operator_has_items_per_hour_of_all_the_time_they_drove():
    table = table_from_rows(rows(*LEARNER, episode("b", "p2", 2, 36.0), episode("c", "p1", 4, 10.0, arm="policy")))
    found = people(table, "human")
    assert found is not None
    one, two = found.operators
    assert (one.operator, one.episodes, one.moved, one.staged, one.share) == ("p1", 3, 12, 12, 1.0)
    assert one.rate == pytest.approx(3600 * 12 / 148)  # 12 items in 148 s, not the mean of three rates
    assert one.rate_ci is not None and one.rate_ci[0] < one.rate < one.rate_ci[1]
    assert two.rate == pytest.approx(200.0) and two.rate_ci is None, "one episode has no spread"


def test_learning_is_a_slope_within_people():
    found = people(table_from_rows(rows(*LEARNER, episode("b", "p2", 2, 36.0))), "human")
    assert found is not None
    # p1 gains 60 items an hour an episode, p2's one episode says nothing; 4 rows less 2 groups less the slope: df 1
    assert found.learning.value == pytest.approx(60.0)
    assert (found.learning.episodes, found.learning.df) == (4, 1)
    assert found.fatigue is None, "with one session each, learning and fatigue cannot be told apart"


def test_fatigue_is_a_slope_within_sessions():
    parts = [
        *(episode(f"m{i}", "p1", 4, end, session="mon") for i, end in enumerate((40, 48))),  # 360, 300
        *(episode(f"t{i}", "p1", 4, end, session="tue") for i, end in enumerate((30, 36))),  # 480, 400
    ]
    found = people(table_from_rows(rows(*parts)), "human")
    assert found is not None and found.fatigue is not None
    # each session falls: by 60 and by 80; over both evenings the person still gains
    assert found.fatigue.value == pytest.approx(-70.0)
    # places 0 1 2 3, rates 360 300 480 400: sum of (place - 1.5)(rate) = -540 - 150 + 240 + 600 = 150, over 5
    assert found.learning.value == pytest.approx(30.0)


def test_a_slope_has_the_interval_of_least_squares():
    x, y = [0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 2.0, 4.0]
    told = stats.linregress(x, y)
    found = slope(np.array(x), np.array(y), ["g"] * 4)
    reach = stats.t.ppf(0.975, 2) * told.stderr
    assert found.value == pytest.approx(told.slope)
    assert found.ci == pytest.approx((told.slope - reach, told.slope + reach))


def test_without_a_reference_or_operators_nothing_is_said():
    table = table_from_rows(rows(*LEARNER))
    assert people(table, None) is None and people(table, "policy") is None
    assert people(table_from_rows(rows(episode("a", "", 4, 60.0))), "human") is None


def test_void_episodes_are_not_the_reference():
    found = people(table_from_rows(rows(*LEARNER, episode("v", "p1", 1, 100.0, void="1"))), "human")
    assert found is not None and found.operators[0].episodes == 3


def test_a_plateau_is_a_window_whose_line_is_flat_enough():
    # the last three of 100, 150, 190, 200, 195: line over 190, 200, 195 changes by 5 of 195, 2.6 %
    rates = [100.0, 150.0, 190.0, 200.0, 195.0]
    assert plateau(rates, last=3, within=0.10) == 5
    assert plateau(rates[:4], last=3, within=0.10) is None  # 150, 190, 200 changes by 50 of 180
    assert plateau(rates, last=3, within=0.30) == 4
    assert plateau([0.0, 0.0, 0.0], last=3, within=0.5) is None, "nothing moved is no plateau"


def test_practice_is_told_by_person_in_order():
    entries = [{"person": p, "moved": 4, "duration_s": s} for p, s in (("p1", 60), ("p2", 40), ("p1", 48))]
    one, two = practised(entries, last=3, within=0.1)
    assert (one["person"], one["rates"], one["plateau"], one["rate_at_end"]) == ("p1", [240.0, 300.0], None, 270.0)
    assert two["rates"] == [360.0]


def test_the_section_names_the_rule_and_keeps_practice_apart():
    found = people(table_from_rows(rows(*LEARNER)), "human")
    assert found is not None
    rule = {"last": 3, "within": 0.1, "stated": "as the protocol states it"}
    entries = [{"person": "p1", "moved": 4, "duration_s": 60.0}]
    made = section(found.as_dict(), {"rule": rule, "people": practised(entries, last=3, within=0.1)})
    assert made is not None
    told = dict(made.tables)
    assert "in no other number" in told["Practice"].note and "as the protocol states it" in told["Practice"].note
    assert told["Practice"].rows == (("p1", "1", "240", "240.0", "–"),)
    assert section(None, None) is None


def test_learning_in_each_cell_is_of_those_who_operated_there() -> None:
    """In cell a p1 gains 60 items an hour an episode (240, 300, 360), in b p2 loses 100 (400, 300). Of all: the
    sums of (place - mean)(rate) are 120 and -50, those of (place - mean)^2 are 2 and 1/2: 70 / 2.5 = 28.
    """
    in_a = [{**row, "cell": "a"} for row in rows(*LEARNER)]
    in_b = [{**row, "cell": "b"} for i, end in enumerate((36, 48)) for row in episode(f"b{i}", "p2", 4, end)]
    table = table_from_rows([*in_a, *in_b])
    each = {rig: found.learning for rig in table.rigs() if (found := people(table, "human", rig)) is not None}
    assert {rig: (one.value, one.episodes) for rig, one in each.items()} == {
        "a": (pytest.approx(60.0), 3), "b": (pytest.approx(-100.0), 2)
    }  # fmt: skip
    of_all = people(table, "human")
    assert of_all is not None and of_all.learning.value == pytest.approx(28.0)
    by_cell = [{"cell": rig, "learning": one.as_dict(), "fatigue": None} for rig, one in each.items()]
    shown: Any = section({**of_all.as_dict(), "by_cell": by_cell}, None)  # type: ignore[arg-type]
    slopes = dict(shown.tables)["Learning and fatigue"]
    assert [(row[1], row[2].split(" ")[0], row[3]) for row in slopes.rows] == [
        ("all", "28.00", "5"), ("a", "60.00", "3"), ("b", "−100.00", "2")
    ]  # fmt: skip
