"""Two arms are shown to be equivalent, or one to be non-inferior, only by a margin: by an interval that lies within it.

At reduced size; in full: tests/support/statistics/studies.py and docs/statistics-calibration.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.statistics.cohorts import DISTRIBUTIONS
from support.statistics.margins import at_margin, within

from labctl.analysis.operations_table.analyze import analyze, dumps
from labctl.analysis.operations_table.pair_effects import RatioReplicates, against_margin, p_beyond, ratio_interval
from labctl.analysis.survival.result import Margin, MarginVerdict
from labctl.analysis.survival.verdicts import holm, holm_levels
from labctl.analysis.table import Table, table_from_rows
from labctl.errors import TableError

T = np.empty(0)
TAU_S = 120.0


def of(ratio: float, to: str | None = None) -> Margin:
    return {"rmst_ratio": ratio, "non_inferior_to": to}


def ratio_of(
    value: float, se: float, t: Any = T, *, df: int = 40, rmst_a: float = 20.0, units: int = 41
) -> RatioReplicates:
    return RatioReplicates(value, se, t, df, (rmst_a, rmst_a * math.exp(-value)), units)


def table(arms: dict[str, tuple[float, float]], episodes: int = 12, *, items: int = 2, seed: int = 1) -> Table:
    """Arms with so many seconds an item on average and such a coefficient of variation, everything moved."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for arm, (mean, cv) in arms.items():
        for i in range(episodes):
            times = [round(float(t), 3) for t in rng.gamma(1 / cv**2, mean * cv**2, items)]
            said = {"episode": f"{arm}{i}", "arm": arm, "object": "cup", "items_staged": items, "budget_s": 240.0}
            rows += [{**said, "kind": "success", "time_s": t, "end_s": round(sum(times), 3)} for t in times]
    return table_from_rows(rows)


def found(read: Table, **plan: Any):
    return analyze(read, tau=TAU_S, boot=999, perm=99, **plan)


def test_two_one_sided_tests_by_hand() -> None:
    # log ratio .02, error .05, margin .1: 2.4 and -1.6 errors; Student's t on 2 degrees is 1/2 + t / 2 sqrt(2 + t^2)
    ratio = ratio_of(0.02, 0.05, df=2)
    below, above = (0.5 - t / 2 / (2 + t**2) ** 0.5 for t in (2.4, 1.6))
    assert p_beyond(ratio, (-0.1, None)) == pytest.approx(below) and below < above
    assert p_beyond(ratio, (None, 0.1)) == p_beyond(ratio, (-0.1, 0.1)) == pytest.approx(above)


def test_of_replicates_the_share_beyond_the_margin_counts_and_never_none() -> None:
    drawn = np.arange(-49, 50) / 20.0  # 99 from -2.45 to 2.45; 1.5 and beyond: 20 of them, on either side
    assert p_beyond(ratio_of(0.0, 0.1, drawn), (-0.15, 0.15)) == pytest.approx(21 / 100)
    assert p_beyond(ratio_of(0.0, 0.1, drawn), (-9.0, 9.0)) == pytest.approx(1 / 100)


@given(
    value=st.floats(-0.5, 0.5),
    seed=st.integers(0, 50),
    low=st.floats(-1, 0),
    high=st.floats(0, 1),
    level=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
    by_t=st.booleans(),
)
def test_p_is_at_most_a_level_exactly_where_the_interval_lies_within(
    value: float, seed: int, low: float, high: float, level: float, by_t: bool
) -> None:
    drawn = np.random.default_rng(seed).standard_t(8, 399)
    ratio = ratio_of(value, 0.2, T if by_t else drawn, df=8)
    p, bounds = p_beyond(ratio, (low, high)), ratio_interval(ratio, level)
    assert bounds is not None
    if min(abs(bounds[0] - low), abs(bounds[1] - high)) > 1e-9:
        assert (p <= (1 - level) / 2 + 1e-12) == (low < bounds[0] and bounds[1] < high)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.sampled_from([0.01, 0.05, 0.2]))
def test_each_pair_is_held_to_its_step_of_holm(values: list[float], alpha: float) -> None:
    p = {str(i): value for i, value in enumerate(values)}
    levels, adjusted = holm_levels(p, alpha), holm(p)
    for k in p:
        assert alpha / len(p) <= levels[k] <= alpha
        if abs(adjusted[k] - alpha) > 1e-9:
            assert (adjusted[k] <= alpha) == (p[k] <= levels[k])


def test_holms_steps_by_hand() -> None:
    # .05 / 3, / 2, / 1; from the first that stands on, its step
    assert holm_levels({"a": 0.01, "b": 0.02, "c": 0.04}, 0.05) == pytest.approx({"a": 0.05 / 3, "b": 0.025, "c": 0.05})
    assert holm_levels({"a": 0.01, "b": 0.03, "c": 0.04}, 0.05) == pytest.approx(
        {"a": 0.05 / 3, "b": 0.025, "c": 0.025}
    )


def judged(value: float, margin: Margin, *, se: float = 0.05, **more: Any) -> MarginVerdict:
    return against_margin({("a", "b"): ratio_of(value, se, **more)}, margin, TAU_S, 0.05, None)["a", "b"]


def test_equivalence_asks_both_sides_and_non_inferiority_the_worse_one() -> None:
    assert [judged(v, of(1.25))["shown"] for v in (-0.3, 0.0, 0.3)] == [False, True, False]
    # a takes less time: non-inferior to b, and b is not to a
    assert [judged(-0.3, of(1.25, to))["shown"] for to in ("b", "a")] == [True, False]
    assert [judged(0.3, of(1.25, to))["shown"] for to in ("b", "a")] == [False, True]
    assert judged(0.0, of(1.25, "a"))["arm"] == "b" and judged(0.0, of(1.25))["arm"] is None
    assert judged(0.0, of(1.25, "a"))["margin"] == [-math.log(1.25), None]


def test_where_an_arm_that_never_moves_would_be_within_the_margin_nothing_is_shown() -> None:
    # RMST 100 s of 120 s: 1.2 times it is never to move at all
    assert judged(0.0, of(1.19), rmst_a=100.0)["unable"] is None
    for to in (None, "a", "b"):
        found = judged(0.0, of(1.21, to), rmst_a=100.0)
        assert not found["shown"] and found["unable"] == "floor"
    # of two arms the quicker counts, or the one that is named
    assert judged(math.log(1.1), of(1.21), rmst_a=100.0)["unable"] is None, "b has 91 s"
    assert judged(math.log(1.1), of(1.21, "b"), rmst_a=100.0)["unable"] is None
    assert judged(math.log(1.1), of(1.21, "a"), rmst_a=100.0)["unable"] == "floor"


def test_a_few_units_know_their_own_spread_badly_and_one_not_at_all() -> None:
    few, many = (judged(0.0, of(1.25), se=0.1, units=n)["ci"] for n in (5, 5001))
    assert few is not None and many is not None and few[1] / many[1] == pytest.approx((5 / 4) ** 0.5, abs=1e-3)
    assert judged(0.0, of(1.25), units=1)["unable"] == judged(0.0, of(1.25), se=0.0)["unable"] == "no_spread"


def test_pairs_are_adjusted_after_holm_and_intervals_are_of_its_steps() -> None:
    values = {("a", "b"): 0.0, ("a", "c"): 0.04, ("b", "c"): 0.08}
    by = against_margin({pair: ratio_of(v, 0.08) for pair, v in values.items()}, of(1.25), TAU_S, 0.05, None)
    assert {pair: one["p_holm"] for pair, one in by.items()} == holm(
        {pair: one["p"] or 1.0 for pair, one in by.items()}
    )
    for one in by.values():
        assert one["ci"] is not None
        inside = -math.log(1.25) < one["ci"][0] and one["ci"][1] < math.log(1.25)
        assert one["shown"] == inside == (one["p_holm"] is not None and one["p_holm"] <= 0.05)
    assert by["a", "b"]["level"] == pytest.approx(1 - 2 * 0.05 / 3)


def test_pairs_with_the_reference_are_a_family_of_their_own_and_others_are_not_asked() -> None:
    arms = {"human": (10, 0.3), "a": (20, 0.3), "b": (20, 0.3)}
    both = found(table(arms), reference="human", margin=of(1.6))["pairs"]
    assert [pair["margin"]["level"] for pair in both] == pytest.approx([0.95, 0.95, 0.9])
    held = found(table(arms), reference="human", margin=of(1.6, "a"))["pairs"]
    assert [(pair["a"], pair["b"]) for pair in held if "margin" in pair] == [("human", "a"), ("a", "b")]
    assert [pair["margin"]["arm"] for pair in held if "margin" in pair] == ["human", "b"]


def test_without_a_margin_nothing_is_asked_and_no_byte_changes() -> None:
    read = table({"a": (20, 0.3), "b": (20, 0.3)})
    without, asked = found(read), found(read, margin=of(1.6))
    assert "margin" not in without and "margin" not in without["pairs"][0]
    (pair,) = asked["pairs"]
    assert asked["margin"] == of(1.6) and pair["margin"]["shown"] and pair["margin"]["claim"] == "equivalent"
    stripped = {k: v for k, v in asked.items() if k != "margin"}
    stripped["pairs"] = [{k: v for k, v in pair.items() if k != "margin"}]
    assert dumps(stripped) == dumps(without)


def test_the_interval_of_a_single_pair_is_its_90_percent_one() -> None:
    (pair,) = found(table({"a": (20, 0.3), "b": (21, 0.3)}), margin=of(1.6))["pairs"]
    told, wide = pair["margin"], pair["log_rmst_ratio_ci"]
    assert told["level"] == pytest.approx(0.9) and told["margin"] == pytest.approx([-math.log(1.6), math.log(1.6)])
    assert wide[0] < told["ci"][0] < pair["log_rmst_ratio"] < told["ci"][1] < wide[1]


def test_an_arm_of_one_episode_at_an_object_is_not_shown_to_be_anything() -> None:
    (pair,) = found(table({"a": (20, 0.01), "b": (20, 0.01)}, 1, items=4), margin=of(5.0))["pairs"]
    assert not pair["margin"]["shown"] and pair["margin"]["ci"] is None and pair["margin"]["unable"] == "no_spread"


@pytest.mark.parametrize(
    ("margin", "said"),
    [
        (of(1.0), "rmst_ratio is 1; allowed is a number above 1"),
        (of(math.inf), "rmst_ratio is inf"),
        (of(1.25, "c"), "no arm 'c' to refer to"),
    ],
)
def test_a_margin_that_makes_no_sense_is_refused(margin: Margin, said: str) -> None:
    with pytest.raises(TableError, match=said):
        found(table({"a": (20, 0.3), "b": (20, 0.3)}), margin=margin)


RUNS = 400


def error(share: float) -> float:
    return (share * (1 - share) / RUNS) ** 0.5


@pytest.mark.parametrize("episodes", [10, pytest.param(20, marks=pytest.mark.thorough)])
def test_arms_at_the_margin_are_hardly_ever_shown_to_be_within_it_and_arms_that_are_alike_are(episodes: int) -> None:
    # RMST 77 s against 1.5 times that; four Monte-Carlo errors allowed
    law = DISTRIBUTIONS["m1"]
    apart = within((law, at_margin(law, law, 1.5)), episodes, range(RUNS), ratio=1.5, objects=2, boot=499)
    assert apart["b non-inferior"] <= 0.05 + 4 * error(0.05) and apart["equivalent"] <= apart["b non-inferior"]
    assert apart["a non-inferior"] > 0.9, "the quicker one is"
    alike = within((law, law), episodes, range(RUNS), ratio=1.5, objects=2, boot=499)
    assert alike["equivalent"] >= {10: 0.35, 20: 0.85}[episodes]
