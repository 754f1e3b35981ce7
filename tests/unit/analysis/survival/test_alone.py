"""Extra blocks of an arm alone: they count in the arm's own numbers and in HRT, and in no pair."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labctl.analysis.episodes.historical import NAME, historical
from labctl.analysis.episodes.supplement import supplement
from labctl.analysis.operations_table.analyze import analyze, dumps
from labctl.analysis.table import table_from_rows
from labctl.errors import TableError

GIVEN = {"reference": "human", "tau": 60.0, "boot": 49, "perm": 99}


def rows(*, extra: int, seed: int = 0, scale: float = 1.0) -> list[dict]:
    """Eight blocks of a person and two policies, and so many of the person alone."""
    rng, made = np.random.default_rng(seed), []
    for block in range(8 + extra):
        for arm, mean in (("human", 8.0), ("p", 20.0), ("q", 25.0)):
            if block >= 8 and arm != "human":
                continue
            one = {"episode": f"{block}{arm}", "arm": arm, "object": "cup", "kind": "success", "budget_s": 120.0}
            time_s = round(float(rng.exponential(mean * scale)) % 100, 3)
            one |= {"time_s": time_s, "end_s": time_s, "items_staged": 1, "block": block, "alone": int(block >= 8)}
            made.append(one)
    return made


def test_pairs_are_those_of_the_blocks_that_every_arm_ran_in_and_the_persons_numbers_are_of_all() -> None:
    without, with_ = (analyze(table_from_rows(rows(extra=extra)), **GIVEN) for extra in (0, 5))
    assert json.loads(dumps(with_))["pairs"] == json.loads(dumps(without))["pairs"], "to the last digit"
    own = {arm["arm"]: arm for arm in with_["arms"]}
    before = {arm["arm"]: arm for arm in without["arms"]}
    assert own["human"]["episodes"] == before["human"]["episodes"] + 5
    assert own["human"]["rmst"] != before["human"]["rmst"]
    assert own["p"]["rmst"] == before["p"]["rmst"]
    assert own["p"]["hrt"] == pytest.approx(own["human"]["rmst"] / own["p"]["rmst"])
    assert own["p"]["hrt"] != before["p"]["hrt"]
    assert [text for text in with_["warnings"] if "extra blocks" in text] == [
        "human: 5 episodes of extra blocks of its own count in its own numbers and HRT, and in no pair"
    ]


def test_what_stands_beside_pairs_knows_of_no_extra_block() -> None:
    found = []
    for extra in (0, 5):
        table = table_from_rows(rows(extra=extra))
        found.append(supplement(table, analyze(table, **GIVEN), perm=99)["pairs"])
    assert json.dumps(found[0]) == json.dumps(found[1])


def test_an_episode_is_of_an_extra_block_or_is_not() -> None:
    two = [{**rows(extra=0)[0], "alone": alone, "kind": "success", "op_index": n} for n, alone in enumerate((0, 1))]
    with pytest.raises(TableError, match="has alone True here and False in line"):
        table_from_rows(two)


def test_a_person_of_another_time_has_its_own_numbers_and_a_ratio_only_where_it_is_declared() -> None:
    ours = table_from_rows(rows(extra=0))
    then = [row for row in rows(extra=0, seed=3, scale=2.0) if row["arm"] == "human"]
    plain = historical(then, ours, 60.0, ratios=False, boot=49)
    (cell,) = plain["cells"]
    alone = analyze(table_from_rows(then), tau=60.0, boot=49, perm=9)
    assert (cell["object"], cell["episodes"], cell["moved"]) == ("cup", 8, 8)
    assert cell["rmst"] == pytest.approx(alone["cells"][0]["rmst"]) and plain["arms"] is None
    declared = historical(then, ours, 60.0, ratios=True, boot=49)
    assert declared["cells"][0]["rmst"] == cell["rmst"]
    of = {one["arm"]: one for one in declared["arms"]}
    now = {arm["arm"]: arm["rmst"] for arm in analyze(ours, **GIVEN)["arms"]}
    assert set(of) == {"human", "p", "q"} and NAME not in of
    for arm, one in of.items():
        assert one["hrt"] == pytest.approx(cell["rmst"] / now[arm])
        assert one["hrt_ci"][0] < one["hrt"] < one["hrt_ci"][1]


def test_budgets_of_then_that_are_shorter_than_tau_are_said() -> None:
    ours = table_from_rows(rows(extra=0))
    short = [{**row, "budget_s": 100.0} for row in rows(extra=0) if row["arm"] == "human"]
    assert historical(short, ours, 110.0, ratios=False, boot=9)["shorter"] == 100.0
    assert historical(short, ours, 60.0, ratios=False, boot=9)["shorter"] is None
