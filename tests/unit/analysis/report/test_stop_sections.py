"""What a report says of stops by hand: how many of which cause, which did not count, and the verdict if all had."""

import copy
import json
from pathlib import Path

import pytest

from labctl.analysis.report import figures, markdown, page, success_curves, wording
from labctl.analysis.report.sections import counting_section, stop_sections

HERE = Path(__file__).parents[1]
COUNTED = ["danger", "contact"]


@pytest.fixture(scope="module")
def case():
    return json.loads((HERE / "report_case.json").read_text(encoding="utf-8"))


@pytest.fixture
def undrawn(monkeypatch):
    """Leaves matplotlib out where only text is looked at."""
    for name in ("curve_figures", "pp_figures"):
        monkeypatch.setattr(success_curves, name, lambda *_: [])
    monkeypatch.setattr(figures, "hrt_figure", lambda *_: None)


def arm(name, by_cause, not_counted=None, void=0):
    return {"arm": name, "by_cause": by_cause, "not_counted": not_counted or {}, "void": void}


def stops(result, *arms, counted=COUNTED, **repeated):
    """What the lab says. repeated: changes to the pair human – policy-a once every stop is counted."""
    again = copy.deepcopy({"arms": result["arms"], "pairs": result["pairs"]})
    for one in again["pairs"]:
        if (one["a"], one["b"]) == ("human", "policy-a"):
            one.update(repeated)
    return {"counted": counted, "arms": list(arms), "repeated": again}


SPARED = (arm("human", {"mistaken_key": 1}, {"mistaken_key": 1}), arm("policy-a", {"danger": 2}))


def caution(found, result):
    return wording.stops(found, result)


def test_where_each_stop_counts_there_is_nothing_to_repeat(case):
    told = {"counted": COUNTED, "arms": [arm("policy-a", {"danger": 2, "no cause said": 1})]}
    assert caution(None, case["result"]) is None and caution(told, case["result"]) is None


def test_one_sentence_says_how_many_of_which_cause_do_not_count_and_that_each_verdict_stands(case):
    arms = (*SPARED, arm("policy-b", {"mistaken_key": 2}, {"mistaken_key": 2}))
    assert caution(stops(case["result"], *arms), case["result"]) == (
        "The protocol counts a stop by hand against an arm where its cause is danger or contact; 3 stops of another "
        "cause (mistaken key 3) count as ends by the operator. With every stop counted each verdict stands."
    )


def test_without_a_tested_pair_no_verdict_is_said_to_stand(case):
    for pairs in ([], [pair | {"p_holm": None, "verdict": None, "leads": None} for pair in case["result"]["pairs"]]):
        result = case["result"] | {"pairs": pairs}
        text = caution(stops(result, *SPARED), result)
        assert text.endswith("1 stop of another cause (mistaken key 1) counts as an end by the operator.")
        again = {"episodes": {"human": 1}, "arms": [], "pairs": pairs}
        again |= {"key": "crash", "value": "ended"}
        affected = {key: {"human": 1} if key == "crash" else {} for key in counting_section.WHAT}
        counting = {"counts": {"crash": "failure"}, "declared": False, "affected": affected}
        said = counting_section.sentence(counting | {"repeated": [again], "tipping": []}, result)
        assert said.startswith("Declared by no protocol") and "stands" not in said


def test_each_verdict_that_changes_is_named_with_both(case):
    found = stops(case["result"], *SPARED, p_holm=0.2, verdict="not resolved at this N")
    text = caution(found, case["result"])
    assert text.endswith(
        "1 stop of another cause (mistaken key 1) counts as an end by the operator. With every stop counted the "
        "verdict of human and policy-a changes from “human faster” to “not resolved at this N”."
    )


def test_a_verdict_is_the_one_of_the_analysis_at_its_own_level_whatever_its_p(case):
    found = stops(case["result"], *SPARED, p_holm=0.03)
    assert caution(found, case["result"]).endswith("each verdict stands.")


def test_a_protocol_that_counts_no_stop_says_so(case):
    found = stops(case["result"], arm("human", {"danger": 1}, {"danger": 1}), counted=[])
    assert caution(found, case["result"]).startswith(
        "The protocol counts no stop by hand against an arm; 1 stop (danger 1)"
    )


def test_every_arm_has_its_stops_by_cause_in_the_order_of_the_report(case):
    arms = (*reversed(SPARED), arm("policy-b", {"contact": 1, "no cause said": 2}, void=1))
    section = stop_sections.section(stops(case["result"], *arms), case["result"])
    heading, table = section.tables[0]
    assert heading == ""
    assert [column.label for column in table.columns] == [
        *("Arm", "Danger", "Contact", "Mistaken key", "No cause said", "Not counted", "Of voided episodes")
    ]
    assert table.rows == (
        ("human", "0", "0", "1", "0", "1", "0"),
        ("policy-a", "2", "0", "0", "0", "0", "0"),
        ("policy-b", "0", "1", "0", "2", "0", "1"),
    )


def test_both_verdicts_and_both_times_stand_side_by_side_where_a_stop_was_not_counted(case):
    found = stops(case["result"], *SPARED, p_holm=0.2, verdict="not resolved at this N")
    found["repeated"]["arms"][1]["rmst"] = 41.25
    section = stop_sections.section(found, case["result"])
    (_, times), (_, verdicts) = section.tables[1:]
    row = next(row for row in times.rows if row[0] == "policy-a")
    assert row[1].startswith("30.5 [") and row[2].startswith("41.2 [")
    assert ("human – policy-a", "human faster", "0.0003", "not resolved at this N", "0.20") in verdicts.rows
    assert len(verdicts.rows) == len(case["result"]["pairs"])


def test_without_one_that_was_not_counted_only_the_counts_are_there(case):
    told = {"counted": None, "arms": [arm("policy-a", {"no cause said": 1})]}
    section = stop_sections.section(told, case["result"])
    assert len(section.tables) == 1
    assert stop_sections.section(None, case["result"]) is None


def test_the_sentence_is_on_the_first_page_and_the_tables_have_a_place_in_the_contents(case, undrawn):
    found = stops(case["result"], *SPARED)
    built, _ = page.build_page(case["result"], [], lab={**case["lab"], "stops": found}, title="t")
    (line,) = [line for line in built["cautions"] if "stop by hand" in line]
    assert ("stops", "Stops by hand") in built["contents"]
    for text in (page.render_html(built), markdown.render(built)):
        assert line in text and "Mistaken key" in text
    plain, _ = page.build_page(case["result"], [], lab=case["lab"], title="t")
    assert "Stops by hand" not in page.render_html(plain)


def test_an_episode_says_who_ended_it_and_that_it_was_a_stop_by_hand(case, undrawn):
    episodes = [dict(one) for one in case["lab"]["episodes"][:3]]
    episodes[0] |= {"end_reason": "operator", "stopped_by_hand": "mistaken_key"}
    episodes[1] |= {"end_reason": "safety_stop", "stopped_by_hand": "danger"}
    built, _ = page.build_page(case["result"], [], lab={**case["lab"], "episodes": episodes}, title="t")
    ended = [row[6] for row in built["episode_table"].rows]
    assert ended[:2] == ["operator (stop by hand: mistaken key)", "safety stop (stop by hand: danger)"]
    assert "stop by hand" not in ended[2]
