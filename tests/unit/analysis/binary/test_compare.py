"""Compared counts: the right test for the design, verdicts that follow it, and words that never claim too much."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.analysis.binary.compare import compare_counts, independent, paired, within_strata
from labctl.analysis.binary.paired import mcnemar, tango
from labctl.analysis.binary.sentences import sentences
from labctl.analysis.binary.tables_2x2 import boschloo_p, newcombe, stratified
from labctl.errors import QuestionError, TableError

PUBLISHED = Path(__file__).parents[1] / "data" / "bridgev2_star_conditions.csv"
UNRESOLVED = "not resolved at this N"


def test_each_design_gets_its_own_test_and_interval():
    alone = independent((17, 20), (14, 20))
    assert alone["p_value"] == boschloo_p((17, 20), (14, 20)) and alone["ci"] == [*newcombe((17, 20), (14, 20))]
    both = paired((17, 20), (14, 20), 5, 2)
    assert both["p"] == {"mcnemar_mid": mcnemar(5, 2).p_mid, "mcnemar_exact": mcnemar(5, 2).p_exact}
    assert both["p_value"] == mcnemar(5, 2).p_mid and both["ci"] == [*tango(5, 2, 20)]
    strata = within_strata([((9, 10), (7, 10)), ((8, 10), (4, 10))])
    assert strata["p_value"] == stratified([((9, 10), (7, 10)), ((8, 10), (4, 10))]).p_mid
    assert strata["first"]["successes"] == 17 and strata["second"]["trials"] == 20


def test_a_smaller_alpha_widens_the_interval_and_moves_the_verdict():
    loose, strict = independent((19, 20), (12, 20)), independent((19, 20), (12, 20), 0.005)
    assert loose["verdict"] == "first higher" and strict["verdict"] == UNRESOLVED
    assert strict["ci"][0] < loose["ci"][0] < loose["ci"][1] < strict["ci"][1]


def test_counts_too_large_for_the_exact_test_say_which_test_was_used():
    found = independent((4000, 5000), (4100, 5000))
    assert found["test"] == "score"
    assert "score test" in " ".join(sentences(found))


@pytest.mark.parametrize(
    ("first", "second", "b", "c", "said"),
    [
        ((17, 20), (14, 30), 5, 2, "cannot be pairs"),
        ((17, 20), (14, 20), 2, 5, "b - c must be the difference"),
        ((3, 20), (0, 20), 4, 1, "cannot come from"),
        ((17, 20), (14, 20), 10, 7, "cannot come from"),
        ((3, 20), (4, 20), -1, 0, "cannot come from"),
    ],
)
def test_pairs_that_contradict_the_counts_are_refused(first, second, b: int, c: int, said: str):
    with pytest.raises(QuestionError, match=said):
        paired(first, second, b, c)


tables = st.tuples(*[st.integers(0, 8)] * 4).filter(lambda cells: sum(cells) > 0)


@settings(deadline=None)
@given(cells=tables)
def test_every_table_of_pairs_gives_back_its_own_counts(cells):
    both, b, c, _ = cells
    n = sum(cells)
    found = paired((both + b, n), (both + c, n), b, c)
    assert found["difference"] == pytest.approx(found["first"]["rate"] - found["second"]["rate"])
    assert found["smallest_p"] <= found["p_value"] + 1e-12


counts = st.integers(1, 15).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(deadline=None, max_examples=40)
@given(first=counts, second=counts)
def test_exchanging_the_arms_exchanges_the_verdict(first, second):
    one, other = independent(first, second), independent(second, first)
    turned = {"first higher": "second higher", "second higher": "first higher"}
    assert other["verdict"] == turned.get(one["verdict"], one["verdict"])
    assert other["p_value"] == pytest.approx(one["p_value"], rel=1e-3)


@settings(deadline=None, max_examples=40)
@given(first=counts, second=counts)
def test_words_rank_only_what_is_resolved_and_never_call_two_rates_equal(first, second):
    found = independent(first, second)
    text = " ".join(sentences(found, "A", "B"))
    assert text.startswith("Resolved: ") == (found["verdict"] != UNRESOLVED)
    assert not re.search(r"\b(better|equal|equivalent|no difference|identical|proves?|significant)\b", text)
    if found["verdict"] == "second higher":
        assert text.startswith("Resolved: B succeeded more often than A, by ")
    assert "items of one episode are not" in text


def test_an_unresolved_pair_says_what_remains_possible_both_ways():
    claim = sentences(independent((17, 20), (14, 20)), "A", "B")[0]
    assert claim == (
        "Not resolved at this N: A succeeded more often than B by 15.0 points, and the counts go with anything from "
        "11.1 points in favour of B to 39.0 points in favour of A (95 % interval)."
    )


def test_a_resolved_lead_is_told_from_the_side_that_leads():
    claim = sentences(independent((2, 20), (17, 20)), "A", "B")[0]
    assert claim == "Resolved: B succeeded more often than A, by 75.0 points [+45.9, +87.1]."


def test_where_most_pairs_disagree_the_exact_test_decides():
    found = paired((12, 16), (4, 16), 12, 4)
    assert found["test"] == "mcnemar_exact" and found["p_value"] == mcnemar(12, 4).p_exact > 0.05
    assert found["p"]["mcnemar_mid"] < 0.05 and found["verdict"] == UNRESOLVED
    assert "rejects too often when most pairs disagree" in " ".join(sentences(found))


def test_too_few_discordant_pairs_say_so():
    text = " ".join(sentences(paired((3, 3), (1, 3), 2, 0)))
    assert "2 discordant pairs cannot give a p below 0.50 whatever they say" in text
    assert "No pair disagrees" in " ".join(sentences(paired((3, 3), (3, 3), 0, 0)))


def test_a_test_and_an_interval_that_disagree_are_called_borderline():
    found = within_strata([((1, 10), (0, 10)), ((8, 10), (4, 10))])
    assert found["verdict"] == UNRESOLVED and found["ci"][0] > 0
    assert "excludes 0, by another method than the test: borderline" in " ".join(sentences(found))


def test_strata_that_point_both_ways_are_pointed_out():
    text = " ".join(sentences(within_strata([((9, 10), (2, 10)), ((2, 10), (6, 10))])))
    assert "Strata point both ways" in text


def test_the_published_conditions_are_compared_pair_by_pair_within_axis():
    rows = compare_counts(PUBLISHED, "arm", ["axis"])
    assert len(rows) == 7 * 6 // 2
    row = next(r for r in rows if (r["a"], r["b"]) == ("OpenVLA (OXE)", "OpenVLA (OXE, FT)"))
    assert (row["first"]["successes"], row["second"]["successes"]) == (39, 70)
    assert row["p_holm"] >= row["p_value"] and row["verdict"] == "second higher" and row["missing"] == []
    lacking = next(r for r in rows if (r["a"], r["b"]) == ("OpenVLA (OXE)", "OpenVLA (Bridge, FT)"))
    assert lacking["missing"] == ["SB-SMO", "SB-VRB", "VSB-NOBJ"]


def test_without_strata_the_sums_are_compared(tmp_path: Path):
    file = tmp_path / "c.csv"
    file.write_text("arm,object,successes,trials\na,x,9,10\nb,x,7,10\na,y,8,10\nb,y,4,10\n")
    (row,) = compare_counts(file, "arm")
    assert row["design"] == "independent" and row["p_value"] == boschloo_p((17, 20), (11, 20))


def test_a_table_with_one_arm_or_no_common_stratum_is_refused(tmp_path: Path):
    file = tmp_path / "c.csv"
    file.write_text("arm,object,successes,trials\na,x,9,10\nb,y,7,10\n")
    with pytest.raises(TableError, match="'a' and 'b' have no stratum with trials of both"):
        compare_counts(file, "arm", ["object"])
    file.write_text("arm,successes,trials\na,9,10\n")
    with pytest.raises(TableError, match="arm has only the value 'a'"):
        compare_counts(file, "arm")
