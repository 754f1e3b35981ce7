"""The claims a report makes: only a fixed test may rank two arms, and nothing is called blind that is not."""

from pathlib import Path

import labctl.analysis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labctl.analysis import numerals
from labctl.analysis.report import wording

BANNED = (
    *("better", "faster", "slower", "worse", "superior", "outperform", "beats", "wins", "best"),
    *("no difference", "equal", "same", "equivalent", "identical", "alike", "comparable", "similar", "significant"),
)
VERDICTS = ("better", "different, crossing", "depends on object", "not resolved at this N", "", None)


def pair(p_holm, verdict, ratio=-0.4, a="arm-1", b="arm-2"):
    return {"a": a, "b": b, "p_holm": p_holm, "verdict": verdict, "log_rmst_ratio": ratio, "p": {}}


def result(*pairs, rmst=(20.0, 30.0)):
    arms = [{"arm": f"arm-{i + 1}", "rmst": value, "episodes": 12} for i, value in enumerate(rmst)]
    return {"tau": 120.0, "arms": arms, "pairs": list(pairs)}


def said(found):
    rmst = {arm["arm"]: arm["rmst"] for arm in found["arms"]}
    lines = [claim.text for claim in wording.summary(found, alpha=0.05)]
    for one in found["pairs"]:
        lines.append(wording.verdict_words(one, rmst, alpha=0.05))
        lines += [wording.matrix_words(one, one[side], rmst, alpha=0.05) for side in ("a", "b")]
    return " ".join(lines).lower()


@given(
    p=st.none() | st.floats(min_value=0.05, max_value=1.0, exclude_min=True),
    verdict=st.sampled_from(VERDICTS),
    ratio=st.none() | st.floats(-3, 3),
    rmst=st.tuples(*[st.none() | st.floats(0.1, 240.0)] * 2),
)
def test_a_null_result_never_ranks_and_never_calls_arms_equal(p, verdict, ratio, rmst):
    text = said(result(pair(p, verdict, ratio), rmst=rmst))
    assert not [word for word in BANNED if word in text]
    assert "less time" not in text and "more time" not in text
    assert ("not resolved at this n" in text) == (p is not None)
    assert ("not tested" in text) == (p is None)


@given(p=st.floats(0.0, 0.05), verdict=st.sampled_from([v for v in VERDICTS if v != "better"]))
def test_a_small_p_without_the_verdict_better_never_ranks(p, verdict):
    text = said(result(pair(p, verdict)))
    assert not [word for word in BANNED if word in text]


def test_a_resolved_pair_names_the_arm_with_the_smaller_rmst_whatever_its_place():
    for one in (pair(0.001, "better", -0.4), pair(0.001, "better", 0.4, a="arm-2", b="arm-1")):
        found = result(one)
        (claim,) = wording.summary(found, alpha=0.05)
        assert claim.standing == "resolved"
        assert claim.text.startswith("arm-1 was faster per item than arm-2: ")
        assert "20.0 s against 30.0 s (Holm-adjusted p = 0.001)" in claim.text
        assert "capped at 120 s" in claim.text


def test_scalars_that_point_different_ways_are_not_ranked():
    text = said(result(pair(0.001, "better", ratio=0.4)))
    assert "not ranked" in text and "faster" not in text


def test_alpha_is_the_line_itself():
    assert wording.summary(result(pair(0.05, "better")), alpha=0.05)[0].standing == "resolved"
    assert wording.summary(result(pair(0.05, "better")), alpha=0.01)[0].standing == "unresolved"


def test_an_arm_that_leads_several_others_is_one_sentence():
    pairs = [pair(0.002, "better", -1, "arm-1", "arm-2"), pair(0.010, "better", -1, "arm-1", "arm-3")]
    (claim,) = wording.summary(result(*pairs, rmst=(10.0, 20.0, 30.0)), alpha=0.05)
    assert "arm-1 was faster per item than arm-2 and arm-3" in claim.text
    assert "10.0 s against 20.0 s and 30.0 s (largest Holm-adjusted p = 0.010)" in claim.text


def test_open_pairs_are_open_questions_with_their_n():
    (claim,) = wording.summary(result(pair(0.31, "not resolved at this N")), alpha=0.05)
    assert "12 and 12 episodes, Holm-adjusted p = 0.31" in claim.text
    assert "open question" in claim.text


def test_without_pairs_the_report_says_that_it_ranks_nothing():
    (claim,) = wording.summary(result(), alpha=0.05)
    assert "does not rank" in claim.text


def test_a_policy_whose_interval_reaches_the_floor_is_cautioned():
    arm = {"arm": "arm-1", "hrt": 0.06, "hrt_floor": 0.044, "hrt_ci": [0.04, 0.09]}
    text = wording.floor_caution(arm, reference="human") or ""
    assert "[4.0, 9.0] %" in text and "floor of 4.4 %" in text
    assert wording.floor_caution(arm | {"hrt_ci": [0.05, 0.09]}, reference="human") is None
    assert wording.floor_caution(arm | {"hrt_ci": None, "hrt_floor": None}, reference="human") is None


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
    assert numerals.p_value(p) == text


def test_an_estimate_prints_hrt_in_percent_with_its_interval():
    # OpenPI pi0.5 in the table of PhAIL, arXiv 2605.29710: 13.8 [12.2, 15.7]
    assert numerals.estimate(0.138, [0.122, 0.157], scale=100) == "13.8 [12.2, 15.7]"
    assert numerals.estimate(0.138, None, scale=100) == "13.8"
    assert numerals.estimate(None, [0.1, 0.2]) == "–"
