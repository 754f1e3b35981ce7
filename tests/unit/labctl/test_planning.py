"""What a protocol of a given size can resolve."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.lab import read_plan
from labctl.planning import preview, smallest_swap_p, wilson_half_width

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "protocols" / "demo.toml"


def demo(**given: float):
    plan = read_plan(DEMO)
    return preview(plan.protocol, plan.fixture, **{"staging_s": 90.0, "scoring_s": 30.0, **given})


def test_five_blocks_cannot_beat_one_sixteenth():
    # methodology.md 3.2: "five blocks cannot beat .0625 for one pair"
    assert smallest_swap_p(5) == 0.0625


@given(st.integers(1, 5000))
def test_more_blocks_never_raise_the_smallest_p_and_never_pass_the_number_of_swaps_tried(blocks: int):
    assert 1 / 10_000 <= smallest_swap_p(blocks + 1) <= smallest_swap_p(blocks) <= 1


def test_the_wilson_half_width_of_the_paper_s_size():
    # methodology.md 3.9: +-5 pp needs 380 at p = .5 (PhAIL)
    assert wilson_half_width(380) == pytest.approx(0.05, abs=1e-3)


def test_the_demo_has_a_block_for_every_condition_and_replicate():
    seen = demo()
    assert (seen.blocks, seen.trials, seen.episodes_per_arm) == (12, 48, 12)
    assert sum(trials for _, _, trials in seen.conditions) == seen.trials


def test_hours_count_staging_arming_budget_and_scoring_of_every_trial():
    assert demo(staging_s=0.0, scoring_s=0.0).hours_at_most == pytest.approx(48 * (6.0 + 120.0) / 3600)
    assert demo().hours_at_most == pytest.approx(48 * (90.0 + 6.0 + 120.0 + 30.0) / 3600)


def test_holm_counts_the_larger_family_of_pairs():
    seen = demo()  # three policies and a person: three pairs of policies, three pairs with the person
    assert seen.smallest_holm_p == pytest.approx(3 * 2 / 2**12)
    assert seen.warnings == ()


def test_a_design_too_small_to_conclude_anything_says_so(tmp_path: Path):
    small = tmp_path / "small.toml"
    text = DEMO.read_text().replace("../fixtures", str(ROOT / "fixtures"))
    small.write_text(text.replace("blocks_per_condition = 3", "blocks_per_condition = 1"))
    plan = read_plan(small)
    seen = preview(plan.protocol, plan.fixture, staging_s=0, scoring_s=0)
    assert "4 blocks cannot reach p <= 0.05" in seen.warnings[0]


def test_the_preview_names_no_arm():
    names = {arm.name for arm in read_plan(DEMO).protocol.arm}
    told = " ".join(str(value) for key, value in asdict(demo()).items() if key != "question")
    assert not [name for name in names if name in told]
