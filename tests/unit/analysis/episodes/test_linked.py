"""Arms of two campaigns meet through anchors, or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from labctl.analysis.episodes.linked import Campaign, compare_linked
from labctl.analysis.planning.distributions import Distribution, simulate
from support.statistics.cohorts import TAU_NS

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


MAY = campaign("may", 1, {"human": 10, "frozen": 60, "a": 50})


def test_a_slower_evening_is_taken_out_by_the_anchors() -> None:
    # in June everything takes 1.5 times as long; a (50 s) and b (50 s at May's pace) are alike
    june = campaign("june", 2, {"human": 15, "frozen": 90, "b": 75})
    found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS, boot=1999)
    assert found.anchors == ("frozen", "human") and found.objects == ("cup", "pan")
    assert found.naive < 0.85 < found.ratio
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]
    assert all(d.ratio > 1.2 and (d.p or 1) < 0.05 for d in found.drift)
    assert sum("drifted" in w for w in found.warnings) == 2
    assert found.as_dict()["drift"][0]["anchor"] == "frozen"


def test_a_real_difference_is_still_seen() -> None:
    june = campaign("june", 3, {"human": 10, "frozen": 60, "b": 140})
    found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS, boot=1999)
    assert found.ratio < 0.7 and found.p is not None and found.p < 0.01
    assert not [w for w in found.warnings if "one anchor" in w]


def test_one_anchor_is_a_caution() -> None:
    june = campaign("june", 3, {"human": 10, "b": 60})
    (said, *_) = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS, boot=199).warnings
    assert said.startswith("one anchor only (human)")


def test_an_anchor_that_never_varies_says_nothing_of_drift() -> None:
    # nothing is ever done within tau, so every time is tau
    may, june = (campaign(name, 5, {"human": 10, "stuck": 1e6, arm: 50}) for name, arm in (("may", "a"), ("june", "b")))
    found = compare_linked(may, "a", june, "b", tau_ns=TAU_NS, boot=99)
    (stuck,) = [d for d in found.drift if d.anchor == "stuck"]
    assert (stuck.ratio, stuck.interval, stuck.p) == (1.0, None, None)
    assert any(w.startswith("the drift of anchor stuck cannot be judged") for w in found.warnings)


def test_two_campaigns_are_drawn_apart() -> None:
    # counterexample: the same draws in both leave an anchor that gave the same times twice no width at all
    again = {("b" if a == "a" else a, o): cell for (a, o), cell in MAY.cells.items()}
    june = Campaign("june", {key: replace(cell, arm=key[0]) for key, cell in again.items()})
    found = compare_linked(MAY, "a", june, "b", tau_ns=TAU_NS, boot=499)
    for drift in found.drift:
        assert drift.ratio == pytest.approx(1) and drift.interval is not None
        assert drift.interval[0] < 0.95 and drift.interval[1] > 1.05


def test_campaigns_that_do_not_differ_are_told_apart_as_often_as_asked() -> None:
    """docs/statistics-calibration.md at reduced size: within four Monte-Carlo errors of .05 and .95."""
    runs, rejected, held = 100, [], []
    for run in range(runs):
        may = campaign("may", 2 * run, {"human": 10, "frozen": 60, "a": 50}, episodes=12)
        june = campaign("june", 2 * run + 1, {"human": 10, "frozen": 60, "b": 50}, episodes=12)
        found = compare_linked(may, "a", june, "b", tau_ns=TAU_NS, boot=199, seed=run)
        for one in (found, *found.drift):
            assert one.p is not None and one.interval is not None
            rejected.append(one.p <= 0.05)
            held.append(one.interval[0] <= 1 <= one.interval[1])
    error = 4 * (0.05 * 0.95 / runs) ** 0.5
    for which in range(3):  # the ratio, and the drift of each anchor
        assert np.mean(rejected[which::3]) <= 0.05 + error
        assert np.mean(held[which::3]) >= 0.95 - error


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
        compare_linked(MAY, arms[0], other, arms[1], tau_ns=TAU_NS, boot=99)


def test_objects_must_have_been_met_in_both() -> None:
    june = campaign("june", 4, {"human": 10, "b": 60})
    elsewhere = Campaign("june", {(a, f"other {o}"): c for (a, o), c in june.cells.items()})
    with pytest.raises(LinkError, match="no object was met by a, b and the anchors human"):
        compare_linked(MAY, "a", elsewhere, "b", tau_ns=TAU_NS, boot=99)
