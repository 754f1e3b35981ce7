"""Assessors' scores against Shrout & Fleiss; weighted kappa and its error; how many blocks would have done."""

from __future__ import annotations

import math

import numpy as np
import pytest

from labctl.analysis.blocks.agreement import icc, weighted_kappa
from labctl.analysis.blocks.enough import enough
from labctl.analysis.episodes.agreement import cohens_kappa
from labctl.errors import QuestionError

# Shrout & Fleiss (1979), table 2: four judges' ratings of six targets
RATINGS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float)


def test_icc_of_shrout_and_fleiss() -> None:
    # their table 4: ICC(2,1) = .29; R's psych prints 0.29 with 0.019 to 0.76
    found = icc(np.r_[RATINGS, [[5.0, np.nan, 4, 4]]])
    assert found.icc == pytest.approx(0.2897638)
    assert found.ci == pytest.approx((0.019, 0.761), abs=5e-4)


def test_icc_where_nothing_varies_or_all_agree() -> None:
    assert icc(np.full((4, 2), 0.5)).icc is None
    same = icc(np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]))
    assert same.icc == 1.0 and same.ci is None
    with pytest.raises(QuestionError, match="two episodes or more"):
        icc(RATINGS[:1])


def test_the_interval_of_the_icc_covers() -> None:
    rng, runs, covered = np.random.default_rng(0), 300, 0
    for _ in range(runs):
        x = rng.normal(0, 1, (30, 1)) + rng.normal(0, 0.3, (1, 2)) + rng.normal(0, 0.5, (30, 2))
        low, high = icc(x).ci or (math.nan, math.nan)
        covered += low <= 1 / (1 + 0.09 + 0.25) <= high
    assert covered / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs) - 0.01


def test_weighted_kappa_is_that_of_the_other_module_with_an_error_by_the_delta_method() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 5, 120)
    second = np.clip(first + rng.choice([-1, 0, 0, 0, 1, 2], 120), 0, 4)
    found = weighted_kappa(first.tolist(), second.tolist())
    assert found.kappa == pytest.approx(cohens_kappa(first.tolist(), second.tolist()).weighted)

    p = np.zeros((5, 5))
    np.add.at(p, (first, second), 1 / 120)
    apart = (np.arange(5)[:, None] - np.arange(5)[None, :]) ** 2 / 16

    def kappa(q: np.ndarray) -> float:
        return 1 - float((apart * q).sum() / (apart * np.outer(q.sum(axis=1), q.sum(axis=0))).sum())

    slope = np.zeros((5, 5))
    for cell in np.ndindex(5, 5):
        step = np.zeros((5, 5))
        step[cell] = 1e-6
        slope[cell] = (kappa(p + step) - kappa(p - step)) / 2e-6
    se = math.sqrt(((p * slope**2).sum() - (p * slope).sum() ** 2) / 120)
    assert found.ci is not None and (found.ci[1] - found.ci[0]) / 2 / 1.959964 == pytest.approx(se, rel=1e-4)
    assert weighted_kappa([1, 1], [1, 1]).kappa is None
    with pytest.raises(QuestionError, match="2 and 1 values"):
        weighted_kappa([1, 2], [1])


def test_more_of_the_same_blocks_find_the_pair_more_often_and_all_of_them_once_and_for_all() -> None:
    d = np.r_[np.random.default_rng(3).choice([-1.0, 0, 1], 80, p=[0.15, 0.4, 0.45]), np.nan]
    few, some, every = enough(d, [10, 40, 80], draws=200)
    assert few.detected < some.detected <= every.detected == 1.0 and few.error > 0
    assert few.wrong_sign > some.wrong_sign and every.wrong_sign == 0.0 and some.wrong_found <= some.wrong_sign
    flipped = enough(-d, [40], draws=200)[0]
    assert flipped.detected == some.detected or abs(flipped.detected - some.detected) < 4 * math.sqrt(2) * some.error
    with pytest.raises(QuestionError, match="81 blocks cannot be drawn from 80"):
        enough(d, [81])
