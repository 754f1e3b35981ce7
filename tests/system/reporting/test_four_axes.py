"""The four-axis test: a blinded campaign with a policy weak on one of four axes names that one, with an interval that
excludes no drop, and not the other three; at the number of blocks that `labctl plan` names.

One campaign goes through the journal; two hundred seeds are drawn from the law of its outcomes, on the same design, and
the campaign is held against that law.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from support.runs.campaigns import ROOT
from support.runs.task_table_campaign import open_table, run_to_table
from support.statistics.axis_law import AXES, campaign, named, rates

from labctl.analysis.blocks.axes import axis_drops
from labctl.cli import group

pytestmark = pytest.mark.thorough
SEEDS = 200
PUT_OVER = ("as trained", "other words", "more things", "turned round", "a new thing")


def asked(*words: str) -> dict[str, object]:
    done = CliRunner().invoke(group, [*words, "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


def planned(perturbed: float) -> int:
    """The blocks of each condition that the plan names for a drop from .9."""
    drops = asked("plan", str(ROOT / "protocols/demo_tasks.toml"))["drops"]
    assert isinstance(drops, Sequence)
    return next(one["sets"] for one in drops if one["perturbed"] == perturbed)


@pytest.mark.parametrize("weak", AXES)
def test_the_weak_axis_is_found_and_others_are_named_no_more_often_than_said(weak: str) -> None:
    sets, rng = planned(0.5), np.random.default_rng([21, AXES.index(weak)])
    found, wrong, wrong_of_strong = 0, 0, 0
    for seed in range(SEEDS):
        drops = axis_drops(campaign(rng, sets, weak), perm=1999, seed=seed)
        told = set(named(drops, "policy-b"))
        found, wrong = found + (weak in told), wrong + bool(told - {weak})
        wrong_of_strong += any(named(drops, "policy-a"))
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / SEEDS)
    print(f"{weak}, {sets} blocks: found {found / SEEDS}, another named {wrong / SEEDS}, {wrong_of_strong / SEEDS}")
    assert found / SEEDS >= 0.8
    assert wrong / SEEDS <= most and wrong_of_strong / SEEDS <= most


@pytest.mark.limit(2400)
def test_a_whole_blinded_campaign_names_the_weak_axis_and_its_outcomes_are_of_that_law(tmp_path: Path) -> None:
    weak = "S-LANG"  # of which the law has 100 of 300
    blocks = planned(0.3)
    opened = open_table(tmp_path, blocks=blocks, conditions=PUT_OVER, weak=weak)
    rows = run_to_table(opened.folder, tmp_path / "episodes.csv")
    axes = asked("analyze", str(tmp_path / "episodes.csv"))["axes"]
    assert isinstance(axes, Sequence)
    for one in axes:
        if one["axis"]:
            print(one)
            (low, _), at_weak = one["ci"], (one["arm"], one["axis"]) == ("policy-b", weak)
            assert (low > 0) == at_weak and (one["p"] <= 0.05 and one["drop"] > 0) == at_weak
            assert one["pairs"] == blocks
    tried = Counter((row["arm"], row["axis"]) for row in rows)
    reached = Counter((row["arm"], row["axis"]) for row in rows if row["success"] == "1")
    for (arm, axis), n in tried.items():
        rate = rates(weak if arm == "policy-b" else "")[axis]
        assert stats.binomtest(reached[arm, axis], n, rate).pvalue > 0.001, (arm, axis, reached[arm, axis], n, rate)
