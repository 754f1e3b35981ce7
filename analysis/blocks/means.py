"""The mean score of independent episodes with an interval: exact for successes, by t for scores.

May not: be used for episodes that share a block; their differences are paired.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from labctl.analysis.binary.rates import clopper_pearson
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import IDENTITY, LEVEL, Interval, t_interval


@dataclass(frozen=True)
class MeanScore(Result):
    """Mean of `episodes` scores from 0 to 1; None without one. `ci` lies in [0, 1]; None below two episodes that are
    no successes, and without spread.
    """

    episodes: int
    mean: float | None
    ci: Interval | None


def mean_score(scores: Floats, level: float = LEVEL) -> MeanScore:
    """Clopper–Pearson where every score is 0 or 1, else t on episodes less one, cut to [0, 1]; nan is left out."""
    x = np.asarray(scores, dtype=float)
    x = x[~np.isnan(x)]
    n = len(x)
    if not n:
        return MeanScore(0, None, None)
    mean = float(x.mean())
    if np.isin(x, (0.0, 1.0)).all():
        return MeanScore(n, mean, clopper_pearson(int(x.sum()), n, level))
    found = t_interval(mean, float(x.std(ddof=1)) / math.sqrt(n), n - 1, IDENTITY, level) if n > 1 else None
    return MeanScore(n, mean, None if found is None else (max(0.0, found[0]), min(1.0, found[1])))
