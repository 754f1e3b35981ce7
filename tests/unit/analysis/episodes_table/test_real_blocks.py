"""The 281 real blocks: what docs/episodes.md says of them, and errors and coverage within them, at reduced size.

In full: tests/benchmarks/bench_episodes_table.py. A share of n runs is held within four Monte-Carlo errors.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.statistics.block_calibration import (
    ALPHA,
    REAL,
    coverage,
    drawn_from,
    order_rejections,
    part_of,
    real,
    rejections,
    relabelled,
    reordered,
    truth_of,
)

from labctl import cli
from labctl.analysis.episodes_table.analyze import analyze
from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.episodes_table.reading import read_episodes
from labctl.analysis.episodes_table.result import EpisodesResult

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "episodes.md"
QUICK = Plan(boot=399, perm=199)
COMMAND = re.compile(r"```console\n\$ (labctl [^\n]*roboarena_blocks[^\n]*)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def result() -> EpisodesResult:
    return analyze(read_episodes(REAL), QUICK)


def test_ranking_order_and_preference_are_those_of_the_table(result: EpisodesResult) -> None:
    """Counted from the file by hand: 51 of 281 successes of pi0_fast, none of paligemma_binning; 266 rows say tie."""
    of = {arm["arm"]: arm for arm in result["arms"]}
    assert (of["pi0_fast"]["successes"], of["paligemma_binning"]["successes"]) == (51, 0)
    assert of["pi0_fast"]["score"] == pytest.approx(0.4379, abs=5e-5)
    assert of["paligemma_binning"]["rank_ci"] == [7, 7] and of["pi0_fast"]["rank_ci"] == [1, 5]
    assert result["preference"] is not None and result["preference"]["tie"] == 266 / 7
    assert result["blocks"]["complete"] == 281 and len(result["pairs"]) == 21


def test_looking_after_every_block_would_have_stopped_early_for_the_weakest_and_for_three_others(
    result: EpisodesResult,
) -> None:
    """Issue 21: all six pairs with paligemma_binning within 40 blocks, and at least three others at all."""
    weakest = [p["stop_block"] for p in result["pairs"] if "paligemma_binning" in (p["a"], p["b"])]
    others = [p["stop_block"] for p in result["pairs"] if "paligemma_binning" not in (p["a"], p["b"])]
    assert len(weakest) == 6 and all(stop is not None and stop <= 40 for stop in weakest)
    assert sum(stop is not None for stop in others) >= 3


def test_arms_relabelled_within_the_real_blocks_are_seldom_told_apart() -> None:
    runs = 150

    def tables():
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            yield relabelled(part_of(real(), rng.permutation(281)[:40], slice(4, 7)), rng)

    for name, share in rejections(tables(), QUICK).items():
        assert share <= ALPHA + 4 * (ALPHA * (1 - ALPHA) / runs) ** 0.5, name


@pytest.mark.thorough
def test_the_real_blocks_in_another_order_show_no_effect_of_order() -> None:
    runs = 100
    cohorts = (reordered(part_of(real(), np.arange(60), slice(0, 7)), np.random.default_rng(s)) for s in range(runs))
    for name, share in order_rejections(cohorts, Plan(perm=99)).items():
        assert share <= ALPHA + 4 * (ALPHA * (1 - ALPHA) / runs) ** 0.5, name


def test_intervals_of_blocks_drawn_from_the_real_ones_hold_what_all_of_them_say() -> None:
    runs, arms = 150, slice(5, 7)
    truth = truth_of(part_of(real(), np.arange(281), arms))
    found = coverage(drawn_from(real(), 20, arms), truth, range(runs), QUICK)
    assert set(found) == {"score", "difference", "success difference", "win"}
    for name, share in found.items():
        assert share >= 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5, name


@pytest.mark.thorough
def test_the_page_shows_what_its_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = COMMAND.findall(PAGE.read_text(encoding="utf-8"))
    assert shown
    for command, output in shown:
        done = CliRunner().invoke(cli.group, shlex.split(command)[1:])
        assert done.exit_code == 0, done.exception
        assert _lines(done.output) == _lines(output), f"run: {command}"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
