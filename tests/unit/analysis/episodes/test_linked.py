"""Arms of two campaigns meet through anchors, or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.statistics.cohorts import TAU_NS
from support.statistics.linked_campaigns import told_apart

from labctl.analysis.episodes.linked import Campaign, compare_linked
from labctl.analysis.episodes.sensitivity import part_of
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.errors import LinkError


def campaign(
    name: str, seed: int, arms: dict[str, float], *, episodes: int = 40, fake: str = "real", budget: float = 360.0
):
    rng = np.random.default_rng(seed)
    cells = {
        (arm, obj): simulate(Distribution(mean, budget_s=budget), episodes, rng, arm=arm, obj=obj)
        for arm, mean in arms.items()
        for obj in ("cup", "pan")
    }
    return Campaign(name, cells, fake)


def first_of(whole: Campaign, episodes: int, *arms: str) -> Campaign:
    """The campaign with only the first episodes of some arms in each cell."""
    cells = {k: part_of(c, np.arange(c.episodes) < (episodes if k[0] in arms else 1e9)) for k, c in whole.cells.items()}
    return replace(whole, cells=cells)


NEW = (("may", "a"), ("june", "b"))
MAY = campaign("may", 1, {"human": 10, "frozen": 60, "a": 50})


def test_a_slower_evening_is_taken_out_by_the_anchors() -> None:
    # in June everything takes 1.5 times as long; a (50 s) and b (50 s at May's pace) are alike
    june = campaign("june", 2, {"human": 15, "frozen": 90, "b": 75})
    found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS)
    assert found.anchors == ("frozen", "human") and found.objects == ("cup", "pan")
    assert found.naive < 0.85 < found.ratio
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]
    assert all(d.ratio > 1.2 and (d.p or 1) < 0.05 for d in found.drift)
    assert sum("drifted" in w for w in found.warnings) == 2
    assert found.as_dict()["drift"][0]["anchor"] == "frozen"


def test_a_real_difference_is_still_seen() -> None:
    june = campaign("june", 3, {"human": 10, "frozen": 60, "b": 140})
    found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS)
    assert found.ratio < 0.7 and found.p is not None and found.p < 0.01
    assert not [w for w in found.warnings if "one anchor" in w]


def test_one_anchor_is_a_caution() -> None:
    june = campaign("june", 3, {"human": 10, "b": 60})
    (said, *_) = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS).warnings
    assert said.startswith("one anchor only (human)")


def test_fewer_than_four_anchors_are_a_caution_since_they_hardly_show_their_own_changes() -> None:
    laws = {"human": 10.0, "frozen": 60.0, "third": 35.0, "fourth": 90.0}
    for some in (2, 3, 4):
        anchors = dict(list(laws.items())[:some])
        may, june = (campaign(name, 7, {**anchors, arm: 50}) for name, arm in (("may", "a"), ("june", "b")))
        said = compare_linked(may, "a", june, "b", tau_ns=TAU_NS).warnings
        assert any(w.startswith(f"{some} anchors (") for w in said) == (some < 4)


def test_an_anchor_that_never_varies_says_nothing_of_drift() -> None:
    # nothing is ever done within tau, so every time is tau
    may, june = (campaign(name, 5, {"human": 10, "stuck": 1e6, arm: 50}) for name, arm in (("may", "a"), ("june", "b")))
    found = compare_linked(may, "a", june, "b", tau_ns=TAU_NS)
    (stuck,) = [d for d in found.drift if d.anchor == "stuck"]
    assert (stuck.ratio, stuck.interval, stuck.p) == (1.0, None, None)
    assert any(w.startswith("the drift of anchor stuck cannot be judged") for w in found.warnings)


def test_two_campaigns_are_drawn_apart() -> None:
    # counterexample: the same draws in both leave an anchor that gave the same times twice no width at all
    again = {("b" if a == "a" else a, o): cell for (a, o), cell in MAY.cells.items()}
    june = Campaign("june", {key: replace(cell, arm=key[0]) for key, cell in again.items()})
    found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS)
    for drift in found.drift:
        assert drift.ratio == pytest.approx(1) and drift.interval is not None
        assert drift.interval[0] < 0.95 and drift.interval[1] > 1.05


def test_campaigns_that_do_not_differ_are_told_apart_as_often_as_asked() -> None:
    """docs/statistics-calibration.md at reduced size: within four Monte-Carlo errors of .05 and .95."""
    runs = 100
    found = told_apart((12, 12), range(runs))
    error = 4 * (0.05 * 0.95 / runs) ** 0.5
    assert found["p ≤ .05"] <= 0.05 + error and found["an anchor's drift, p ≤ .05"] <= 0.05 + error
    assert found["95 % interval holds 1"] >= 0.95 - error


def test_anchors_of_few_episodes_count_with_the_freedom_they_have() -> None:
    """*Seen:* with two anchor episodes a cell .14 of like campaigns had p ≤ .05, when only new arms' were counted."""
    assert told_apart((2, 12), range(80))["p ≤ .05"] <= 0.06
    may, june = (campaign(name, 7, {"human": 10, "frozen": 60, new: 50}, episodes=12) for name, new in NEW)
    whole = compare_linked(may, "a", june, "b", tau_ns=TAU_NS)
    found = compare_linked(first_of(may, 2, "human", "frozen"), "a", first_of(june, 2, "human", "frozen"), "b",
                           tau_ns=TAU_NS)  # fmt: skip
    assert found.df is not None and whole.df is not None and found.df < whole.df / 2


def test_anchors_that_change_each_for_itself_widen_the_interval() -> None:
    steady = campaign("june", 2, {"human": 10, "frozen": 60, "b": 50})
    unsteady = campaign("june", 2, {"human": 16, "frozen": 40, "b": 50})
    widths, apart = [], []
    for june in (steady, unsteady):
        found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS)
        assert found.interval is not None
        widths.append(found.interval[1] / found.interval[0])
        apart.append(found.apart or 0.0)
    assert apart[1] > 2 * apart[0] and widths[1] > 2 * widths[0]
    assert compare_linked(MAY, "a", campaign("june", 2, {"human": 10, "b": 50}), "b", tau_ns=TAU_NS).apart is None


def test_an_anchor_of_one_episode_gives_a_ratio_and_no_claim() -> None:
    june = campaign("june", 2, {"human": 10, "b": 50})
    found = compare_linked(MAY, "a", first_of(june, 1, "human"), "b", tau_ns=TAU_NS)
    assert found.ratio > 0 and (found.interval, found.p, found.df) == (None, None, None)


@pytest.mark.parametrize(
    ("other", "arms", "found"),
    [
        (campaign("june", 4, {"b": 60}), ("a", "b"), "share no anchor arm beside a and b"),
        (campaign("june", 4, {"a": 60, "b": 60}), ("a", "b"), "share no anchor arm"),
        (campaign("sims", 4, {"human": 10, "b": 60}, fake="sim"), ("a", "b"), "may is real and sims is sim"),
        (campaign("june", 4, {"human": 10, "b": 60}, budget=180.0), ("a", "b"), "budgets at cup are unequal"),
        (campaign("june", 4, {"human": 10, "b": 60}), ("a", "z"), "has no arm 'z'; its arms are b, human"),
    ],
)
def test_what_cannot_be_compared_is_refused(other: Campaign, arms: tuple[str, str], found: str) -> None:
    with pytest.raises(LinkError, match=found):
        compare_linked(MAY, arms[0], other, arms[1], tau_ns=TAU_NS)


def test_objects_must_have_been_met_in_both() -> None:
    june = campaign("june", 4, {"human": 10, "b": 60})
    elsewhere = Campaign("june", {(a, f"other {o}"): c for (a, o), c in june.cells.items()})
    with pytest.raises(LinkError, match="no object was met by a, b and the anchors human"):
        compare_linked(MAY, "a", elsewhere, "b", tau_ns=TAU_NS)
