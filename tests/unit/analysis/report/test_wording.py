"""The claims a report makes: only a fixed test may rank two arms, and nothing is called blind that is not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labctl.analysis
from labctl.analysis import numerals
from labctl.analysis.binary import compare
from labctl.analysis.binary.sentences import sentences
from labctl.analysis.report import pair_tables, wording

BANNED = (
    *("better", "faster", "slower", "worse", "superior", "outperform", "beats", "wins", "best"),
    *("no difference", "equal", "same", "equivalent", "identical", "alike", "comparable", "similar", "significant"),
)
VERDICTS = (
    *("better", "different, crossing", "different, not ranked", "depends on object", "not resolved at this N"),
    *("", None),
)


def pair(p_holm, verdict, ratio=-0.4, a="arm-1", b="arm-2", reach=0.2, **more):
    """As the analysis has it: who leads is named with the verdict "better" alone."""
    leads = (a if (ratio or 0) < 0 else b) if verdict == "better" else None
    bounds = None if ratio is None else [ratio - reach, ratio + reach]
    rmst = {"rmst_a": RMST[a], "rmst_b": RMST[b], "objects": ["cup"]}
    said = {"a": a, "b": b, "p_holm": p_holm, "verdict": verdict, "leads": leads, "log_rmst_ratio": ratio, "p": {}}
    return {**said, **rmst, "log_rmst_ratio_ci": bounds, "log_rmst_ratio_adjusted_ci": bounds, **more}


RMST = {"arm-1": 10.0, "arm-2": 20.0, "arm-3": 30.0}


def result(*pairs, episodes=12, objects=("cup",)):
    arms = [{"arm": name, "rmst": value, "episodes": episodes} for name, value in RMST.items()]
    cells = [{"arm": name, "object": obj, "episodes": episodes} for name in RMST for obj in objects]
    return {"tau": 120.0, "alpha": 0.05, "arms": arms, "cells": cells, "pairs": list(pairs)}


def said(found):
    lines = [claim.text for claim in wording.summary(found)]
    for one in found["pairs"]:
        lines.append(wording.verdict_words(one))
        lines += [wording.matrix_words(one, one[side]) for side in ("a", "b")]
    return " ".join(lines).lower()


@given(
    p=st.floats(min_value=0.0, max_value=1.0),
    verdict=st.sampled_from([v for v in VERDICTS if v != "better"]),
    ratio=st.none() | st.floats(-3, 3),
)
def test_without_the_verdict_better_nothing_is_ranked_and_nothing_is_called_equal(p, verdict, ratio):
    text = said(result(pair(p, verdict, ratio)))
    assert not [word for word in BANNED if word in text]
    assert "less time" not in text and "more time" not in text
    assert ("not resolved at this n" in text) == (verdict == "not resolved at this N")
    assert ("not tested" in text) == (not verdict)


@pytest.mark.parametrize("bounds", [None, [-0.9, 0.1], [-0.9, 0.0]])
def test_a_direction_is_never_said_without_an_interval_that_excludes_1(bounds):
    found = result(pair(0.001, "better", log_rmst_ratio_adjusted_ci=bounds))
    text = said(found)
    assert "not ranked" in text and not [word for word in BANNED if word in text]


def test_a_pair_that_differs_without_a_direction_says_so_with_its_ratio():
    (claim,) = wording.summary(result(pair(0.001, "different, not ranked", ratio=-0.1)))
    assert claim.standing == "unranked"
    assert (
        "differ (time per item 0.90 [0.74, 1.11] of arm-1 over arm-2, 95 % for this pair; Holm-adjusted p = 0.001)"
        in claim.text
    )
    assert "neither leads" in claim.text


@pytest.mark.parametrize("verdict", ["different, not ranked", "better"])
def test_a_pair_without_an_interval_is_not_said_to_have_one(verdict):
    """Of 10 s and 20 s an item, every time, "the interval holds 1"."""
    bare = {"log_rmst_ratio_ci": None, "log_rmst_ratio_adjusted_ci": None}
    (claim,) = wording.summary(result(pair(0.001, verdict, -0.7, **bare)))
    assert claim.standing == "unranked"
    assert claim.text == (
        "arm-1 and arm-2 differ (time per item 0.50 of arm-1 over arm-2; Holm-adjusted p = 0.001), but their time per "
        "item did not vary in these episodes and has no interval, so they are not ranked."
    )


def test_a_resolved_pair_names_the_arm_that_took_less_time_whatever_its_place():
    for one in (pair(0.001, "better", -0.4), pair(0.001, "better", 0.4, a="arm-2", b="arm-1")):
        (claim,) = wording.summary(result(one))
        assert claim.standing == "resolved"
        assert claim.text.startswith("arm-1 was faster per item than arm-2: it took 0.67 [0.55, 0.82] times as long")
        assert "10.0 s against 20.0 s" in claim.text and "capped at 120 s" in claim.text
        assert claim.text.index("0.67") < claim.text.index("Holm-adjusted p = 0.001"), "the effect before the p"


def test_the_times_of_a_sentence_are_those_of_the_objects_that_both_arms_met():
    one = pair(0.001, "better", rmst_b=15.5, objects=["cup"])
    (claim,) = wording.summary(result(one, objects=("cup", "pan")))
    assert "10.0 s against 15.5 s (on cup, which both met)" in claim.text
    for verdict in ("different, not ranked", "not resolved at this N"):
        (claim,) = wording.summary(result(pair(0.001, verdict, objects=["cup"]), objects=("cup", "pan")))
        assert "(on cup, which both met)" in claim.text, "a ratio that the table's columns would contradict"


def test_few_episodes_are_cautioned_in_the_sentence_that_rests_on_them():
    for verdict in ("better", "different, crossing", "not resolved at this N"):
        (claim,) = wording.summary(result(pair(0.001, verdict), episodes=3))
        assert claim.text.endswith("This rests on as few as 3 episodes of an arm at an object.")
        (claim,) = wording.summary(result(pair(0.001, verdict), episodes=5))
        assert "as few as" not in claim.text


def test_an_arm_that_leads_several_others_is_one_sentence():
    pairs = [pair(0.002, "better", -1, "arm-1", "arm-2"), pair(0.010, "better", -1, "arm-1", "arm-3")]
    (claim,) = wording.summary(result(*pairs))
    assert "arm-1 was faster per item than arm-2 and arm-3" in claim.text
    assert "arm-2, 10.0 s against 20.0 s; 0.37 [0.30, 0.45] times as long as arm-3, 10.0 s" in claim.text
    assert "largest Holm-adjusted p = 0.010" in claim.text


def test_a_sentence_says_for_which_pairs_its_intervals_hold_at_once_and_never_for_those_of_the_other_family():
    three = ("human", "arm-1"), ("human", "arm-2"), ("human", "arm-3")
    others = ("arm-1", "arm-2"), ("arm-1", "arm-3")
    one = pair(0.001, "better", -1)
    pairs = [{**one, "a": a, "b": b, "leads": a} for a, b in (*three, *others)]
    found = {**result(*pairs), "reference": "human"}
    found["arms"] = [{"arm": "human", "rmst": 5.0, "episodes": 12}, *found["arms"]]
    with_human, of_policies = wording.summary(found)[:2]
    assert "intervals 95 % for all 3 pairs with human at once" in with_human.text
    assert "intervals 95 % for both pairs without human at once" in of_policies.text
    (open_pairs,) = wording.summary({**found, "pairs": [{**p, "verdict": "not resolved at this N"} for p in pairs]})
    said = "95 % for all 3 pairs with human at once and, apart, for both pairs without human at once"
    assert said in open_pairs.text
    (alone,) = wording.summary(result(pair(0.001, "better", -1)))
    assert "intervals 95 % for this pair" in alone.text
    three_arms = [{**p, "verdict": "not resolved at this N"} for p in (*pairs[:2], pairs[3])]
    (open_pairs,) = wording.summary({**found, "pairs": three_arms})
    assert "95 % for both pairs with human at once and, apart, for the pair without human" in open_pairs.text


def test_open_pairs_are_open_questions_with_their_effect_and_n():
    (claim,) = wording.summary(result(pair(0.31, "not resolved at this N", ratio=-0.1)))
    assert "(time per item 0.90 [0.74, 1.11], Holm-adjusted p = 0.31, 12 and 12 episodes)" in claim.text
    assert "open question" in claim.text


def test_an_open_pair_without_an_interval_claims_none():
    text = wording.summary(result(pair(1.0, "not resolved at this N", 0.0, log_rmst_ratio_adjusted_ci=None)))[0].text
    assert "interval" not in text and text.endswith("the data do not rank the arms.")


def test_without_pairs_the_report_says_that_it_ranks_nothing():
    (claim,) = wording.summary(result())
    assert "does not rank" in claim.text


def test_a_policy_whose_interval_reaches_the_floor_is_cautioned():
    arm = {"arm": "arm-1", "hrt": 0.06, "hrt_floor": 0.044, "hrt_ci": [0.04, 0.09]}
    text = wording.floor_caution(arm, reference="human") or ""
    assert "[4.0, 9.0] %" in text and "floor of 4.4 %" in text
    assert wording.floor_caution(arm | {"hrt_ci": [0.05, 0.09]}, reference="human") is None
    assert wording.floor_caution(arm | {"hrt_ci": None, "hrt_floor": None}, reference="human") is None


def test_only_an_arm_that_moved_nothing_is_likened_to_a_robot_that_never_moves():
    # seen: said of an arm that moved 18 of 24
    arm = {"arm": "arm-1", "hrt": 0.06, "hrt_floor": 0.044, "hrt_ci": [0.044, 0.09]}
    text = wording.floor_caution(arm | {"moved": 0.75}, reference="human") or ""
    assert "moved 75.0 % of the items staged" in text and "never moves" not in text
    assert "never moves" in (wording.floor_caution(arm | {"moved": 0.0}, reference="human") or "")


@pytest.mark.parametrize("share", [None, 0.25, 1.0])
def test_slots_that_can_be_deduced_are_never_called_blind(share):
    text = " ".join(wording.blinding({"deducible_share": share}))
    assert {None: "not recorded", 0.25: "25.0 % of slots", 1.0: "no slot is called blind"}[share] in text
    assert "is blind" not in text and "were blind" not in text and "fully blind" not in text


def test_limits_of_blinding_are_printed_beside_the_statement():
    facts = {"statement": "S.", "deducible_share": 0.0, "shared_uid": True, "early_unblinding": "a paper was due"}
    text = " ".join(wording.blinding(facts))
    assert text.startswith("S. ") and "one user account" in text
    assert "Unblinded early. Reason given: a paper was due" in text


def test_a_bare_table_claims_no_blinding():
    assert wording.blinding(None) == ["A bare table carries no record of blinding, so none is claimed."]


def test_no_other_part_of_the_report_writes_a_claim_word():
    folder = Path(labctl.analysis.__file__).parent / "report"
    claims = ("better", "faster", "slower", "worse", "outperform", "significant")
    parts = ("tables", "lab_tables", "diagrams", "page_words", "markdown", "figures", "page")
    others = (folder.parent / "numerals.py", folder.parent / "survival" / "bands.py", folder / "report.html.j2")
    for path in (*(folder / f"{part}.py" for part in parts), *others):
        text = path.read_text(encoding="utf-8").lower()
        assert not [word for word in claims if word in text]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), ("inf", "not reached"), (float("inf"), "not reached"), (10.46, "10.5"), (-0.01, "0.0"), (-2, "−2.0")],
)
def test_a_number_has_one_decimal_and_infinity_is_not_reached(value, text):
    assert numerals.number(value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "–"), (0.314, "0.31"), (0.0312, "0.031"), (0.00012, "0.0001"), (0.00001, "< 0.0001"), (1, "1.00")],
)
def test_a_p_value_keeps_the_digits_that_matter(p, text):
    assert numerals.p_value(p, None) == numerals.p_value(p, 0.0) == text


@pytest.mark.parametrize(
    ("p", "error", "text"),
    [(0.314, 0.0046, "0.31 ± 0.005"), (0.0312, 0.0017, "0.031 ± 0.002"), (0.0001, 0.0001, "0.0001 ± 0.0001")],
)
def test_what_random_draws_gave_has_its_error_behind_it_to_a_digit(p, error, text):
    assert numerals.p_value(p, error) == text and numerals.p_equals(p, error) == f"p = {text}"


def test_an_estimate_prints_hrt_in_percent_with_its_interval():
    # OpenPI pi0.5 in the table of PhAIL, arXiv 2605.29710: 13.8 [12.2, 15.7]
    assert numerals.estimate(0.138, [0.122, 0.157], scale=100) == "13.8 [12.2, 15.7]"
    assert numerals.estimate(0.138, None, scale=100) == "13.8"
    assert numerals.estimate(None, [0.1, 0.2]) == "–"


def test_an_open_pair_names_the_episodes_at_the_objects_it_was_tested_on():
    found = result(pair(0.31, "not resolved at this N", -0.1), objects=("cup", "pan"))
    assert ", 12 and 12 episodes)" in wording.summary(found)[0].text, "24 of each in all, half of them at the pan"


@pytest.mark.parametrize(
    ("alpha", "text"),
    [
        (0.05, "95"),
        (0.1, "90"),
        (0.01, "99"),
        (0.025, "97.5"),
        (0.001, "99.9"),
        (0.005, "99.5"),
        (1.1e-6, "99.9999"),
        (3e-9, "99.9999997"),
    ],
)
def test_the_level_of_an_interval_is_never_rounded_to_another(alpha, text):
    assert numerals.confidence(alpha) == text
    one = compare.independent((3, 10), (6, 10), alpha)
    assert f"({text} % interval)" in " ".join(sentences(one))
    found = {**result(pair(0.5, "not resolved at this N")), "alpha": alpha}
    assert f"at {text} %" in pair_tables.pair_table(found).note
