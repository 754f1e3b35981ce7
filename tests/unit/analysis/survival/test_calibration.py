"""Tests reject nothing about as often as stated and intervals hold the truth: at reduced size.

In full, with the table of docs/statistics-calibration.md: tests/support/statistics/studies.py. A share of n runs is
held against its target within four Monte-Carlo errors.
"""

from __future__ import annotations

import pytest
from support.statistics import calibration
from support.statistics.calibration import ALPHA, coverage, rejections
from support.statistics.cohorts import DISTRIBUTIONS

pytestmark = pytest.mark.thorough

RUNS = 150
EXACT = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph", "family", "moved", "logrank, permutation")


def error(share: float) -> float:
    return (share * (1 - share) / RUNS) ** 0.5


@pytest.mark.parametrize(
    ("sizes", "distribution", "blocks"),
    [((5, 5), "m1", False), ((10, 10), "m4", False), ((8, 16), "m1", False), ((10, 10), "m1", True)],
    ids=["five", "slow", "unequal", "blocks"],
)
def test_no_default_test_rejects_like_arms_more_often_than_asked(
    sizes: tuple[int, int], distribution: str, blocks: bool
) -> None:
    found = rejections(*sizes, DISTRIBUTIONS[distribution], range(RUNS), blocks=blocks, paper=False)
    for name in EXACT:
        assert found[name] <= ALPHA + 4 * error(ALPHA), name


def test_default_intervals_hold_the_truth_about_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "TRUTH_EPISODES", 20_000)
    calibration.truths.cache_clear()
    calibration.true_curve.cache_clear()
    found = coverage(("m1", "m4"), 10, range(RUNS))
    for name in ("hrt", "rmst of the arm", "rmst of a cell", "auc", "moved", "band"):
        for arm in ("m1", "m4"):
            assert found[f"{arm}: {name}"] >= 0.94 - 4 * error(0.95), (arm, name)
    calibration.truths.cache_clear()
    calibration.true_curve.cache_clear()
