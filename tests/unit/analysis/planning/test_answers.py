"""The answer for times as one object: levels, assumptions, sizes, and what makes no sense refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from labctl.analysis.planning.answers import Request, answer, arms_from_rmst, levels
from labctl.analysis.planning.distributions import Distribution
from labctl.analysis.planning.pilot import pilot_of
from labctl.analysis.planning.simulation import MEASURES
from labctl.analysis.reading import read_table
from labctl.analysis.table import table_from_rows
from labctl.errors import QuestionError

PILOT = Path(__file__).parents[1] / "report_table.csv"
LAW = Distribution(1.0, items=4, budget_s=240.0)


def test_pairs_with_the_reference_are_a_family_of_their_own():
    assert levels(["human", "a", "b", "c"], "human", 0.06) == {
        ("human", "a"): pytest.approx(0.02),
        ("human", "b"): pytest.approx(0.02),
        ("human", "c"): pytest.approx(0.02),
        ("a", "b"): pytest.approx(0.02),
        ("a", "c"): pytest.approx(0.02),
        ("b", "c"): pytest.approx(0.02),
    }
    assert levels(["a", "b"], None, 0.05) == {("a", "b"): 0.05}
    assert levels(["human", "a", "b"], "human", 0.05)["a", "b"] == 0.05


def test_items_are_lost_at_the_usual_share_unless_that_alone_would_make_the_rmst():
    arms = arms_from_rmst({"human": 10.5, "a": 77.0}, LAW, 240.0, [], ["all"])
    assert [arm.distributions["all"].lost for arm in arms] == [0.0, 0.04]
    arms = arms_from_rmst({"human": 10.5, "a": 77.0}, LAW, 240.0, [0.01, 0.1], ["all"])
    assert [arm.distributions["all"].lost for arm in arms] == [0.01, 0.1]


def test_a_pilot_gives_every_arm_a_law_at_every_object_with_its_items_and_budget():
    arms = pilot_of(read_table(PILOT), 120.0, None, None).arms
    assert [arm.name for arm in arms] == ["human", "policy-a", "policy-b", "policy-c"]
    for arm in arms:
        assert len(arm.distributions) == 4
        assert {(distribution.items, distribution.budget_s) for distribution in arm.distributions.values()} == {
            (4, 120.0)
        }
        assert arm.rmst_s == pytest.approx(arm.asked_s, rel=0.25)


def pilot_row(**said: object) -> dict[str, object]:
    base = {"episode": "1", "arm": "a", "object": "x", "kind": "success", "time_s": 5.0, "budget_s": 60.0}
    return {**base, "items_staged": 2, **said}


def test_a_pilot_that_cannot_say_is_refused():
    one_arm = table_from_rows([pilot_row(), pilot_row(time_s=6.0)])
    with pytest.raises(QuestionError, match="two arms or more that have met the same object"):
        pilot_of(one_arm, 60.0, None, None)
    mixed = table_from_rows([pilot_row(), pilot_row(episode="2", arm="b", items_staged=3)])
    with pytest.raises(QuestionError, match="items_staged is not one number; give --items"):
        pilot_of(mixed, 60.0, None, None)
    silent = table_from_rows([pilot_row(budget_s=""), pilot_row(episode="2", arm="b", budget_s="")])
    with pytest.raises(QuestionError, match="budget_s is not one number; give --budget-s"):
        pilot_of(silent, 60.0, None, None)


def test_the_answer_holds_assumptions_power_sizes_and_what_is_resolvable():
    arms = arms_from_rmst({"human": 10.0, "a": 60.0, "b": 90.0}, LAW, 240.0, [], ["x", "y"])
    parts: list[tuple[str, int, int]] = []
    found = answer(
        arms,
        Request(240.0, (3, 6), reference="human", runs=20, perm=99),
        lambda what, done, of: parts.append((what, done, of)),
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["schema"] == "labctl.power/1" and found["objects"] == ["x", "y"]
    assert [(pair["a"], pair["b"], pair["level"]) for pair in found["pairs"]] == [
        ("human", "a", 0.025),
        ("human", "b", 0.025),
        ("a", "b", 0.05),
    ]
    for pair in found["pairs"]:
        assert set(pair["episodes_for_target"]) == set(MEASURES)
        assert all(0 <= row["power"] <= 1 and row["error"] > 0 for row in pair["power"])
    assert found["resolvable"]["arm"] == "a" and found["resolvable"]["episodes"] == 6
    assert [(row["arm"], row["episodes"]) for row in found["hrt"]] == [("a", 3), ("a", 6), ("b", 3), ("b", 6)]
    assert [arm["rmst_asked"] for arm in found["arms"]] == [10.0, 60.0, 90.0]
    done = {what: (last, of) for what, last, of in parts}
    assert done["power"] == (40, 40) and set(done) == {"power", "resolvable"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Request(300.0, (5,)), "beyond the episode budget of 240 s"),
        (Request(240.0, ()), "allowed is 2 and more"),
        (Request(240.0, (1, 5)), "allowed is 2 and more"),
        (Request(240.0, (5,), reference="person"), "no arm 'person' to refer to"),
        (Request(240.0, (5,), alpha=0.001, perm=99), "--perm 999"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: Request, said: str):
    arms = arms_from_rmst({"a": 60.0, "b": 90.0}, LAW, 240.0, [], ["x"])
    with pytest.raises(QuestionError, match=said):
        answer(arms, asked)


def test_one_arm_or_one_name_twice_is_refused():
    arms = arms_from_rmst({"a": 60.0}, LAW, 240.0, [], ["x"])
    for wrong in (arms, (*arms, *arms)):
        with pytest.raises(QuestionError, match="two or more, each named once"):
            answer(wrong, Request(240.0, (5,)))


def test_swaps_are_enough_when_they_just_are():
    arms = arms_from_rmst({"a": 20.0, "b": 150.0}, LAW, 240.0, [], ["x"])
    found = answer(arms, Request(240.0, (8,), runs=20, perm=19))
    assert math.isclose(found["pairs"][0]["level"], 1 / 20)
    assert max(row["power"] for row in found["pairs"][0]["power"]) > 0


def test_a_pilot_of_void_episodes_alone_is_refused_in_words() -> None:
    rows = [{"episode": arm, "arm": arm, "object": "cup", "kind": "success", "time_s": 9.0, "void": 1} for arm in "ab"]
    with pytest.raises(QuestionError, match="two arms or more that have met the same object"):
        pilot_of(table_from_rows(rows), 60.0, 4, 60.0)
