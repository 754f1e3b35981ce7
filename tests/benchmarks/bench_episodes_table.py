"""How often the tests of an episodes table reject nothing, and how often its intervals hold the truth: by relabelling
within the 281 real blocks, by drawing blocks from them, and by simulation. Prints shares; judges nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.block_calibration import (
    ALPHA,
    coverage,
    drawn_from,
    order_rejections,
    part_of,
    real,
    rejections,
    relabelled,
    reordered,
    simulated,
    truth_of,
)
from support.statistics.stopping import swap_error

from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.survival.verdicts import pairs_of

pytestmark = pytest.mark.benchmark
PLAN = Plan(boot=999, perm=999)
PAIRS = {"pi0 and pi0_fast": slice(5, 7), "paligemma_binning and paligemma_diffusion": slice(0, 2)}


def shown(head: str, found: dict[str, float], runs: int) -> None:
    cells = "  ".join(f"{name} {share:.4f}" for name, share in found.items())
    print(f"{head:58s} {cells}   (n = {runs})")


@pytest.mark.parametrize(("blocks", "arms", "runs"), [(281, 2, 2000), (30, 2, 2000), (8, 2, 2000), (281, 7, 200)])
def test_relabelling_within_the_real_blocks(blocks: int, arms: int, runs: int) -> None:
    def tables():
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            whole = part_of(real(), rng.permutation(281)[:blocks], slice(7 - arms, 7))
            yield relabelled(whole, rng)

    shown(f"{arms} arms, {blocks} blocks, relabelled: rejected at .05", rejections(tables(), PLAN), runs)


@pytest.mark.parametrize("blocks", [281, 20])
def test_orders_drawn_anew_in_the_real_blocks(blocks: int) -> None:
    def tables():
        for seed in range(500):
            rng = np.random.default_rng(seed)
            yield reordered(part_of(real(), rng.permutation(281)[:blocks], slice(0, 7)), rng)

    shown(f"7 arms, {blocks} blocks, run in another order", order_rejections(tables(), Plan(perm=199)), 500)


@pytest.mark.parametrize("blocks", [5, 10, 20, 50])
@pytest.mark.parametrize("pair", PAIRS)
def test_coverage_of_blocks_drawn_from_the_real_ones(pair: str, blocks: int) -> None:
    truth = truth_of(part_of(real(), np.arange(281), PAIRS[pair]))
    found = coverage(drawn_from(real(), blocks, PAIRS[pair]), truth, range(1000), PLAN)
    shown(f"{pair}, {blocks} blocks: 95 % intervals hold", found, 1000)


@pytest.mark.parametrize("blocks", [5, 10, 20, 50])
def test_coverage_of_simulated_blocks(blocks: int) -> None:
    truth = {"score": 0.5, "difference": 0.0, "success difference": 0.0, "win": 0.5}
    shown(f"simulated, {blocks} blocks", coverage(simulated(blocks), truth, range(1000), PLAN), 1000)


def test_the_anytime_valid_test_with_labels_swapped_in_the_real_blocks() -> None:
    cohort = real()
    pairs = pairs_of(cohort.table.arms, None)
    found = swap_error(np.stack([cohort.difference(cohort.measure, pair) for pair in pairs], axis=1), ALPHA, 2000)
    shares = {f"{a} and {b}": float(share) for (a, b), share in zip(pairs, found.share, strict=True)}
    print(f"stopped under swapped labels, by pair: most {max(shares.values()):.4f}, mean {np.mean(found.share):.4f}")
