"""What a number is written as never says otherwise than the number."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from labctl.analysis import numerals
from labctl.analysis.report.lab_facts import Lab
from labctl.analysis.report.tables import failures


def test_an_interval_without_1_is_not_printed_as_one_that_ends_there() -> None:
    assert numerals.ratio(-0.03, [-0.058, -0.002]) == "0.970 [0.944, 0.998]"
    assert numerals.ratio(-0.03, [-0.058, -0.002], turned=True) == "1.030 [1.002, 1.060]"
    assert numerals.ratio(-0.03, [-0.058, 0.0]) == "0.97 [0.94, 1.00]"
    assert numerals.ratio(-0.16, [-0.27, -0.04]) == "0.85 [0.76, 0.96]"


def test_a_p_beyond_a_usual_level_is_not_printed_as_one_at_it() -> None:
    assert [numerals.p_value(p, None) for p in (0.0504, 0.05, 0.0496)] == ["0.0504", "0.050", "0.0496"]


@given(st.floats(1e-4, 1.0), st.sampled_from(numerals.USUAL_LEVELS))
def test_a_printed_p_lies_on_the_side_of_a_level_that_p_lies_on(p: float, alpha: float) -> None:
    written = float(numerals.p_value(p, None))
    assert (written <= alpha) == (p <= alpha) or abs(p - alpha) < 1e-6


@given(st.floats(-2, 2), st.floats(0.001, 1))
def test_a_printed_ratio_holds_1_where_the_interval_does(middle: float, reach: float) -> None:
    low, high = (
        float(end) for end in numerals.ratio(middle, [middle - reach, middle + reach])[:-1].split("[")[1].split(", ")
    )
    ends = math.exp(middle - reach), math.exp(middle + reach)
    assert (low <= 1 <= high) == (ends[0] <= 1 <= ends[1]) or min(abs(end - 1) for end in ends) < 1e-5


def test_only_what_ran_into_its_budget_is_called_timed_out() -> None:
    causes = (
        "budget",
        "",
        "operator",
        "shutdown",
        "no_success",
        "interlock",
        "controller_lost",
        "futility",
        "wrong_end",
    )
    rows = [{"arm": "a", "kind": "censored", "cause": cause} for cause in causes]
    assert failures(rows, None) == {"a": {"timed out": 2, "other": 5, "crashed": 1}}


def test_a_crash_of_what_drives_the_arm_is_no_item_lost() -> None:
    rows = [{"arm": "a", "kind": "ghost", "cause": cause} for cause in ("controller_lost", "lost", "safety_stop", "")]
    by_cause = {"lost": 2, "safety stop": 1, "crashed": 1}
    assert failures(rows, None) == {"a": by_cause}
    lab: Lab = {"failures": {"a": {"controller_lost": 1, "process_lost": 1, "item lost": 2}}}
    assert failures([], lab) == {"a": {"crashed": 1, "other": 1, "lost": 2}}
