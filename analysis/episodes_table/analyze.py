"""From an episodes table to the result of `labctl analyze`: blocks, arms, pairs and what the columns add.

Reads no file and prints nothing. Has every key of the interface, null where the table has no answer; the same table
and seed give the same bytes through `dumps`.
"""

from __future__ import annotations

import numpy as np

from labctl.analysis.episodes_table import diagnosis, further
from labctl.analysis.episodes_table.arms import arm_rows
from labctl.analysis.episodes_table.cautions import cautions
from labctl.analysis.episodes_table.cohort import Cohort, Plan, cohort_of
from labctl.analysis.episodes_table.order import order_of
from labctl.analysis.episodes_table.pairs import pair_rows
from labctl.analysis.episodes_table.ranks import by_position, cochran, friedman
from labctl.analysis.episodes_table.result import SCHEMA, Blocks, EpisodesResult
from labctl.analysis.episodes_table.table import EpisodesTable
from labctl.analysis.episodes_table.times import times_of
from labctl.analysis.monte_carlo import check_draws
from labctl.errors import TableError


def analyze(table: EpisodesTable, plan: Plan) -> EpisodesResult:
    """The object that `labctl analyze --json` prints of an episodes table (schema labctl.episodes/1).

    Raises `TableError` for a tau, reference, level or count of replicates that makes no sense for this table.
    """
    if plan.reference is not None and plan.reference not in table.arms:
        known = ", ".join(table.arms)
        raise TableError(table.where, f"no arm {plan.reference!r} to refer to; the arms are {known}")
    check_draws(table.where, plan.alpha, boot=plan.boot, perm=plan.perm)
    cohort = cohort_of(table)
    times = times_of(cohort, plan)
    pairs = pair_rows(cohort, plan)
    factors, inseparable = further.factors(cohort, plan)
    tasks, hidden = diagnosis.tasks(cohort, plan)
    preference, unbounded = further.preferred(cohort, plan)
    return {
        "schema": SCHEMA,
        "seed": plan.seed,
        "alpha": plan.alpha,
        "measure": "score" if table.has("score") else "success",
        "reference": plan.reference,
        "tau": times.tau_s,
        "blocks": block_row(cohort),
        "order": order_of(cohort, plan),
        "arms": arm_rows(cohort, pairs, times, plan),
        "pairs": pairs,
        "preference": preference,
        "factors": factors,
        "axes": further.axes(cohort, plan),
        "tags": further.tags(cohort, plan),
        "retention": further.kept(cohort, plan),
        "stress": further.stress(cohort, plan),
        "families": further.families(cohort, plan),
        "cliffs": diagnosis.breaks(cohort, plan),
        "compositions": diagnosis.together(cohort, plan),
        "tasks": tasks,
        "enough": diagnosis.fewer(cohort, plan),
        "warnings": [
            *(*cautions(cohort), *times.warnings, *inseparable, *hidden),
            *(f"preference: {text}" for text in unbounded),
        ],
    }


def block_row(cohort: Cohort) -> Blocks:
    """The entry `blocks`: tests of all arms at once on complete blocks."""
    complete = cohort.complete
    values = cohort.measure[complete]
    success = cohort.success[np.isfinite(cohort.success).all(axis=1)]
    (chi2, p), (q, q_p) = friedman(values), cochran(success)
    position_chi2, position_p = friedman(by_position(values, cohort.position[complete]))
    return {
        "n": len(cohort.table.blocks),
        "complete": int(complete.sum()),
        "friedman_chi2": chi2,
        "friedman_p": p,
        "position_chi2": position_chi2,
        "position_p": position_p,
        "cochran_q": q,
        "cochran_p": q_p,
    }
