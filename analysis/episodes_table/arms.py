"""Every arm by itself: successes, mean score, stages; and its rank among all of them.

May not: compare two arms; ranks and letters come from the pairs that `pairs.py` told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.analysis.binary.rates import clopper_pearson
from labctl.analysis.blocks.means import Estimate, mean_over_units
from labctl.analysis.episodes_table.cohort import Cohort, Plan
from labctl.analysis.episodes_table.pairs import told_apart
from labctl.analysis.episodes_table.ranks import rank_intervals, ranked
from labctl.analysis.episodes_table.result import ArmOfEpisodes, PairOfEpisodes
from labctl.analysis.episodes_table.stages import stages_of
from labctl.analysis.episodes_table.times import Times
from labctl.analysis.results import bounds
from labctl.analysis.survival.verdicts import compact_letters


def arm_rows(cohort: Cohort, pairs: Sequence[PairOfEpisodes], times: Times, plan: Plan) -> list[ArmOfEpisodes]:
    """The arms, sorted by name."""
    arms = cohort.table.arms
    different = told_apart(list(pairs))
    measure = {arm: mean_of(cohort, cohort.measure, arm, plan).value for arm in arms}
    rank, intervals = ranked(measure), rank_intervals(arms, different)
    order = sorted(arms, key=lambda arm: (rank[arm] is None, rank[arm], arm))
    letters = compact_letters(order, different)
    return [
        {
            **_row(cohort, arm, times, plan),
            "rank": rank[arm],
            "rank_ci": None if rank[arm] is None else [*intervals[arm]],
            "letters": letters[arm] if len(arms) > 1 else "",
        }
        for arm in arms
    ]


def mean_of(cohort: Cohort, grid: np.ndarray, arm: str, plan: Plan) -> Estimate:
    """The mean of a grid's values [blocks, arms] of an arm, over units."""
    column = cohort.table.arms.index(arm)
    return mean_over_units(grid[:, column], cohort.unit, 0.0, 1.0, plan.draws, plan.level)


def _row(cohort: Cohort, arm: str, times: Times, plan: Plan) -> ArmOfEpisodes:
    at = cohort.table.arms.index(arm)
    success = cohort.success[:, at]
    judged, done = int(np.isfinite(success).sum()), int(np.nansum(success))
    rate_ci = None
    if judged and cohort.single:
        rate_ci = clopper_pearson(done, judged, plan.level)
    elif judged:
        rate_ci = mean_of(cohort, cohort.success, arm, plan).interval
    score = mean_of(cohort, cohort.score, arm, plan)
    when = times.of(arm)
    return {
        "arm": arm,
        "episodes": int((cohort.table.arm == at).sum()),
        "successes": done if judged else None,
        "rate": done / judged if judged else None,
        "rate_ci": bounds(rate_ci),
        "score": score.value,
        "score_ci": bounds(score.interval),
        "rank": None,
        "rank_ci": None,
        "letters": "",
        "stages": stages_of(cohort.table, arm, plan.level),
        "rmst": when.rmst,
        "rmst_ci": bounds(when.rmst_interval),
        "hrt": when.hrt,
        "hrt_ci": bounds(when.hrt_interval),
        "curve": when.curve,
        "judged": judged,
    }
