"""How often the tests of an episodes table reject nothing and its intervals hold the truth: by relabelling within real
blocks, and by drawing blocks from them or from a law.

May not: print; `tests/benchmarks/bench_episodes_table.py` does, and a small seeded test holds what it finds.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from labctl.analysis.episodes_table.analyze import block_row
from labctl.analysis.episodes_table.arms import mean_of
from labctl.analysis.episodes_table.cohort import Cohort, Plan, cohort_of
from labctl.analysis.episodes_table.order import order_of
from labctl.analysis.episodes_table.pairs import pair_rows
from labctl.analysis.episodes_table.reading import read_episodes

REAL = Path(__file__).resolve().parents[2] / "unit" / "analysis" / "data" / "roboarena_blocks.csv"
ALPHA = 0.05
Grids = tuple[np.ndarray, np.ndarray]
"""Scores and successes [blocks, arms]."""
Draw = Callable[[np.random.Generator], Cohort]


@functools.cache
def real() -> Cohort:
    """The 281 blocks."""
    return cohort_of(read_episodes(REAL))


def part_of(cohort: Cohort, blocks: np.ndarray, arms: slice, grids: Grids | None = None) -> Cohort:
    """Some blocks and arms; `grids` in place of what happened there."""
    score, success = grids or (cohort.score[blocks][:, arms], cohort.success[blocks][:, arms])
    names = tuple(f"b{i}" for i in range(len(blocks)))
    table = replace(cohort.table, blocks=names, arms=cohort.table.arms[arms])
    return Cohort(table, score, success, score, cohort.position[blocks][:, arms], np.arange(len(blocks)))


def relabelled(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Every block's outcomes in the hands of arms drawn anew: what an arm's name tells is then nothing."""
    order = rng.permuted(np.tile(np.arange(cohort.score.shape[1]), (len(cohort.score), 1)), axis=1)
    score, success = (np.take_along_axis(grid, order, axis=1) for grid in (cohort.score, cohort.success))
    position = np.take_along_axis(cohort.position, order, axis=1)
    return replace(cohort, score=score, success=success, measure=score, position=position)


def reordered(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Every block run in an order drawn anew, its outcomes as they were."""
    return replace(cohort, position=rng.permuted(cohort.position, axis=1))


def rejections(cohorts: Iterable[Cohort], plan: Plan) -> dict[str, float]:
    """The share of tables in which each test of arms rejects at ALPHA; `family`: any pair is put in an order."""
    hits: Counter[str] = Counter()
    count = 0
    for cohort in cohorts:
        count += 1
        rows, blocks = pair_rows(cohort, plan), block_row(cohort)
        first = rows[0]["p"]
        found = {name: p for name, p in first.items()} | {k: blocks[k] for k in ("friedman_p", "cochran_p")}
        hits.update(name for name, p in found.items() if p is not None and p <= ALPHA)
        hits["family"] += any(row["verdict"] not in (None, "not resolved at this N") for row in rows)
    names = ("score", "success", "mcnemar", "friedman_p", "cochran_p", "family")
    return {name: hits[name] / count for name in names}


def order_rejections(cohorts: Iterable[Cohort], plan: Plan) -> dict[str, float]:
    """The share of tables in which the tests of place and carry-over reject at ALPHA."""
    found = [(block_row(c)["position_p"], order_of(c, plan)["after_p"]) for c in cohorts]
    place, after = zip(*found, strict=True)
    return {"position_p": _share(place), "carry-over": _share(after)}


def _share(p: Iterable[float | None]) -> float:
    return float(np.mean([value is not None and value <= ALPHA for value in p]))


def coverage(draw: Draw, truth: dict[str, float], runs: range, plan: Plan) -> dict[str, float]:
    """The share of tables whose interval holds the truth, by the names of `truth_of`; no interval holds none."""
    held: Counter[str] = Counter()
    for seed in runs:
        cohort = draw(np.random.default_rng(seed))
        row = pair_rows(cohort, plan)[0]
        arm = mean_of(cohort, cohort.measure, cohort.table.arms[0], plan).interval
        found = {"score": arm, "difference": row["score_ci"], "win": row["win_ci"]}
        found["success difference"] = row["success_ci"]
        held.update(k for k, ci in found.items() if ci is not None and ci[0] - 1e-9 <= truth[k] <= ci[1] + 1e-9)
    return {name: held[name] / len(runs) for name in truth}


def truth_of(cohort: Cohort) -> dict[str, float]:
    """The values of the first arm, and of the first pair, in a whole population of blocks."""
    score, success = (grid[:, 0] - grid[:, 1] for grid in (cohort.score, cohort.success))
    return {
        "score": float(cohort.score[:, 0].mean()),
        "difference": float(score.mean()),
        "success difference": float(success.mean()),
        "win": float(((np.sign(score) + 1) / 2).mean()),
    }


def drawn_from(cohort: Cohort, blocks: int, arms: slice) -> Draw:
    """Tables of so many blocks, each drawn with replacement from those of a population."""
    return lambda rng: part_of(cohort, rng.integers(0, len(cohort.score), blocks), arms)


def simulated(blocks: int, spread: float = 1.0) -> Draw:
    """Tables of two like arms whose blocks differ in difficulty: scores in four stages, logit-normal by block."""

    def draw(rng: np.random.Generator) -> Cohort:
        ease = 1 / (1 + np.exp(-spread * rng.standard_normal((blocks, 1))))
        score = rng.binomial(4, np.broadcast_to(ease, (blocks, 2))) / 4
        base = real()
        return part_of(base, np.arange(blocks), slice(0, 2), (score, (score == 1).astype(float)))

    return draw
