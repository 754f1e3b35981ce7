"""The size of a protocol and its hours, and what `labctl plan` prints of them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl import cli
from labctl.checks.protocol_size import Effort, hours, preview, trials_in
from labctl.errors import InputError
from labctl.store.lab_folder import read_plan

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "protocols" / "demo.toml"
NOTHING = Effort(0, 0, 0, None, 0, 3600, 0, 3, 0)


def demo(effort: Effort | None = None):
    plan = read_plan(DEMO)
    return preview(plan.protocol, plan.fixture, effort)


def changed(folder: Path, before: str, after: str) -> Path:
    file = folder / "changed.toml"
    text = DEMO.read_text()
    assert before in text
    file.write_text(text.replace("../fixtures", str(ROOT / "fixtures")).replace(before, after))
    return file


def test_the_demo_has_a_block_for_every_condition_and_replicate():
    seen = demo()
    assert (seen.blocks, seen.trials, seen.policies, seen.human) == (12, 48, 3, True)
    assert sum(trials for _, _, trials in seen.conditions) == seen.trials


def test_hours_are_the_stated_parts_of_every_trial():
    bare = demo(NOTHING).hours
    assert bare.total == pytest.approx(48 * (6.0 + 120.0) / 3600)  # arming and the whole budget
    stated = demo(Effort(90, 30, 20, 60, 0.0, 3600, 0, 3, 0)).hours
    assert stated.total == pytest.approx(48 * (90 + 6 + 60 + 30 + 20) / 3600)
    assert bare.running_is_at_most and not stated.running_is_at_most


def test_voids_are_run_again_breaks_follow_work_and_every_evening_opens_and_closes():
    # 100 trials of 100 s staging and 100 s run; one in five episodes is void: 25 more of them, not scored
    found = hours(100, 0.0, 100.0, Effort(100, 0, 0, None, 0.2, 3600, 720, 2.5, 1800))
    assert found.voids == pytest.approx(25 * 200 / 3600)
    work = (100 + 25) * 200 / 3600
    assert found.breaks == pytest.approx(work * 0.2)
    assert found.sessions == 5  # 6.94 h of work and 1.39 h of breaks in evenings with 2 h left
    assert found.sessions_open_close == pytest.approx(2.5)
    assert found.total == pytest.approx(work * 1.2 + 2.5)


parts = [field.name for field in fields(Effort) if field.name not in ("run_s", "session_h", "break_every_s")]


@settings(deadline=None)
@given(which=st.sampled_from(parts), more=st.floats(0.0, 0.4))
def test_more_effort_never_takes_less_time_and_parts_make_the_whole(which: str, more: float):
    more = more if which == "void_share" else 100 * more
    base = Effort()
    found = hours(48, 6.0, 120.0, Effort(**{**asdict(base), which: getattr(base, which) + more}))
    before = hours(48, 6.0, 120.0, base)
    assert found.total >= before.total - 1e-9
    values = asdict(found)
    named = sum(
        v for k, v in values.items() if k not in ("total", "sessions", "running_is_at_most", "longer_than_evening_h")
    )
    assert named == pytest.approx(found.total)


def test_an_evening_that_is_over_before_it_was_opened_is_refused():
    with pytest.raises(InputError, match="leaves no time for a trial: opening and closing take 20 min of it"):
        hours(10, 6.0, 240.0, Effort(session_h=0.3))


def test_a_trial_longer_than_an_evening_has_an_evening_of_its_own():
    found = hours(48, 6.0, 30_000.0, Effort(void_share=0.0))
    assert found.sessions == 48
    # 90 s of staging, 6 of arming, the budget, 30 of scoring, 1200 to open and close
    assert found.longer_than_evening_h == pytest.approx((90 + 6 + 30_000 + 30 + 1200) / 3600)
    assert trials_in(3, 6.0, 30_000.0, Effort(void_share=0.0)) == 3


@pytest.mark.parametrize("run_s", [0.0, 1e-320])
def test_trials_that_take_no_time_are_refused_in_words(run_s: float):
    effort = Effort(staging_s=0.0, run_s=run_s, scoring_s=0.0, void_share=0.0)
    with pytest.raises(InputError, match="takes no time at all"):
        trials_in(1.0, 0.0, 10.0, effort)


@given(evenings=st.floats(0.5, 40), run_s=st.floats(10, 5000), share=st.floats(0, 0.5))
def test_what_fits_in_evenings_fits_by_the_hours_too(evenings: float, run_s: float, share: float):
    effort = Effort(run_s=run_s, void_share=share)
    trials = trials_in(evenings, 6.0, 5000.0, effort)
    if trials:
        assert hours(trials, 6.0, 5000.0, effort).sessions <= math.ceil(evenings)
    assert hours(trials + 1, 6.0, 5000.0, effort).sessions > math.floor(evenings)


def test_a_robot_day_is_eight_hours_at_the_robot():
    found = demo().hours
    assert found.robot_days == pytest.approx((found.total - found.review) / 8)


def test_the_preview_names_no_arm():
    names = {arm.name for arm in read_plan(DEMO).protocol.arm}
    told = " ".join(str(value) for key, value in asdict(demo()).items() if key != "question")
    assert not [name for name in names if name in told]


def typed(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.call(["plan", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_verb_prints_what_the_size_can_resolve_and_the_hours(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed(str(DEMO), capsys=capsys)
    assert code == 0
    assert "0.00049 for one pair of arms, 0.0015 by Holm over 3 pairs" in out
    assert "RMSTs that differ by a factor of 2.21 or more" in out and "no difference if only 20%" in out
    assert "voids, run again" in out and "at most 5.1 in all" in out
    names = [arm.name for arm in read_plan(DEMO).protocol.arm if arm.kind == "policy"]
    assert not [name for name in names if name in out]


def test_planned_looks_are_printed_with_their_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = changed(tmp_path, "alpha = 0.05\n", "alpha = 0.05\n[analysis.looks]\nfractions = [0.5, 0.75, 1.0]\n")
    code, out, _ = typed(str(file), capsys=capsys)
    assert code == 0
    # levels at 50, 75 and 100 %: 2 (1 - Phi(2.9626)), 2 (1 - Phi(2.3590)), 2 (1 - Phi(2.0141)); see test_spending
    assert "0.00305" in out and "0.0183" in out and "0.044" in out
    assert "warning: look 1 cannot stop: after 6 blocks" in out
    code, out, _ = typed(str(file), "--json", capsys=capsys)
    found = json.loads(out)
    assert found["looks_after"] == [6, 9, 12]
    assert [look["blocks"] for look in found["resolution"]["looks"]] == [6, 9, 12]


def test_a_design_too_small_to_conclude_anything_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = changed(tmp_path, "blocks_per_condition = 3", "blocks_per_condition = 1")
    code, out, _ = typed(str(file), capsys=capsys)
    assert code == 0 and "warning: 4 blocks cannot reach p <= 0.05" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run-s", "500"], "beyond the episode budget of 120 s"),
        (["--session-h", "0.3"], "leaves no time for a trial"),
        (["--evenings", "0.01"], "time for 0 trials in 0.01 evenings"),
        (["--times-of", "nothing-such"], "no lab.toml in"),
        (["--void-share", "1"], "--void-share"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    code, out, err = typed(str(DEMO), *words, capsys=capsys)
    assert code == 2 and out == "" and said in err and err.count("\n") == 1


def test_an_unknown_controller_is_refused_at_its_line_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    text = DEMO.read_text()
    known = next(arm.controller for arm in read_plan(DEMO).protocol.arm if arm.kind == "policy")
    file = changed(tmp_path, f'controller = "{known}"', 'controller = "polcy_websocket"')
    code, out, err = typed(str(file), capsys=capsys)
    line = text.splitlines().index(f'controller = "{known}"') + 1
    assert code == 2 and out == "" and f"{file}:{line}" in err and "polcy_websocket" in err and known in err


def test_a_budget_beyond_an_evening_is_said_in_evenings(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = changed(tmp_path, "budget_s_per_item = 30.0", "budget_s_per_item = 7500.0")
    code, out, _ = typed(str(file), capsys=capsys)
    assert code == 0 and "each is an evening of its own of 8.7 h, 51 evenings in all" in out
    assert "its budget is 30000 s" in out


def test_what_three_evenings_can_tell_apart(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed(str(DEMO), "--evenings", "3", "--json", capsys=capsys)
    found = json.loads(out)
    effort = Effort()
    assert code == 0 and found["resolution"]["blocks"] == trials_in(3, 6.0, 120.0, effort) // 4
    fewer = json.loads(typed(str(DEMO), "--evenings", "1", "--json", capsys=capsys)[1])
    assert fewer["resolution"]["half_width_success"] > found["resolution"]["half_width_success"]
    code, out, _ = typed(str(DEMO), "--evenings", "3", capsys=capsys)
    assert f"{found['resolution']['blocks']} blocks" in out


@pytest.mark.parametrize(("extra", "each"), [(12, 8.0), (1, 13 / 3)])
def test_evenings_hold_the_person_s_own_blocks_too(
    extra: int, each: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """3 evenings have time for 92 trials: with 12 extra blocks beside 3 of each condition, a block is 8 of them."""
    file = changed(tmp_path, "[analysis]\n", f"[human]\nextra_blocks = {extra}\n\n[analysis]\n")
    trials = trials_in(3, 6.0, 120.0, Effort())
    blocks = math.floor(trials / each)
    found = json.loads(typed(str(file), "--evenings", "3", "--json", capsys=capsys)[1])
    assert found["resolution"]["blocks"] == blocks
    out = typed(str(file), "--evenings", "3", capsys=capsys)[1]
    assert f"time for {blocks} blocks, {math.floor(blocks * each)} trials" in out
    code, _, err = typed(str(file), "--evenings", "0.25", capsys=capsys)
    assert code == 2 and f"and two blocks are {math.ceil(2 * each)}" in err


@pytest.mark.parametrize("blocks", [3000, 6250])
def test_a_protocol_of_more_blocks_than_are_listed_is_planned_all_the_same(
    blocks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Of 12,000 blocks it said "of pairs 12000; exact power is listed up to 10000", and nothing else."""
    file = changed(tmp_path, "blocks_per_condition = 3", f"blocks_per_condition = {blocks}")
    code, out, _ = typed(str(file), "--json", capsys=capsys)
    found = json.loads(out)
    assert code == 0 and found["trials"] == 16 * blocks and found["resolution"]["smallest_p"] == 1 / 10_000
    assert all(0 < row["difference"] < 0.025 for row in found["resolution"]["resolvable"]["success"])
