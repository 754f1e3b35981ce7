"""What counts as what: a declared estimand changes the rows it says, and the verdict is repeated every other way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from labctl.analysis.episodes.estimand import CRASH, Estimand, affected, alternatives, counted
from labctl.analysis.episodes.repeated import repeated
from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.report.sections import counting_section
from labctl.analysis.report.wording import summary
from labctl.analysis.survival.curves import KAPLAN_MEIER
from labctl.analysis.table import table_from_rows
from labctl.reporting.other_ways import counting, ways_of_table

AS_IT_STANDS = Estimand("as_it_went", "left_out", "by_reason", "ended")
PLAN: dict[str, Any] = {"reference": None, "boot": 199, "perm": 199, "seed": 0}


def row(episode: str, kind: str, time_s: float | None, cause: str = "", **more: Any) -> dict[str, Any]:
    whole = {"episode": episode, "arm": "a", "object": "towels", "kind": kind, "time_s": time_s, "op_index": 0}
    return {**whole, "items_staged": 1, "end_s": 9.0, "budget_s": 30.0, "cause": cause, "void": 0, **more}


HELPED = row("e", "success", 9.0, interventions=1)
VOID = row("e", "censored", 9.0, "arm_lost", void=1)
CRASHED = row("e", "censored", 9.0, "controller_lost")
VOID_CRASH = row("e", "censored", 9.0, "controller_lost", void=1)
STUCK = row("e", "censored", 9.0, "futility")
LIMITED = row("e", "censored", 9.0, "interlock")
NO_SUCCESS = ("censored", 30.0, "no_success", 0)


@pytest.mark.parametrize(
    ("given", "how", "expected"),
    [
        (HELPED, {}, ("success", 9.0, "", 0)),
        (HELPED, {"help": "no_success"}, NO_SUCCESS),
        (VOID, {}, ("censored", 9.0, "arm_lost", 1)),
        (VOID, {"voids": "no_success"}, NO_SUCCESS),
        (CRASHED, {"crash": "failure"}, ("ghost", 9.0, "controller_lost", 0)),
        (CRASHED, {"crash": "ended"}, ("censored", 9.0, "controller_lost", 0)),
        (CRASHED, {"crash": "void"}, ("censored", 9.0, "controller_lost", 1)),
        (VOID_CRASH, {"crash": "failure"}, NO_SUCCESS),
        (VOID_CRASH, {"crash": "void", "voids": "no_success"}, ("censored", 9.0, "controller_lost", 1)),
        (STUCK, {"early_ends": "observed"}, ("censored", 9.0, "operator", 0)),
        (LIMITED, {"early_ends": "observed"}, ("censored", 9.0, "interlock_observed", 0)),
        (LIMITED, {"early_ends": "carried"}, ("censored", 9.0, "interlock", 0)),
        (row("e", "censored", 9.0, "operator"), {"early_ends": "carried"}, ("censored", 9.0, "futility", 0)),
    ],
)
def test_each_choice_changes_the_rows_that_it_is_about(given, how, expected):
    (found,) = counted([given], replace(AS_IT_STANDS, **how))
    assert tuple(found[key] for key in ("kind", "time_s", "cause", "void")) == expected


def test_rows_that_a_way_to_count_does_not_change_are_the_ones_that_were_given():
    """A table of a million rows is not copied for each of five ways to count."""
    rows = [row("e", "success", 9.0), row("f", "success", 4.0), row("f", "censored", 5.0, "futility", op_index=1)]
    found = counted(rows, replace(AS_IT_STANDS, early_ends="observed"))
    assert found[0] is rows[0] and found[1] is rows[1] and found[2]["cause"] == "operator"
    assert rows[2]["cause"] == "futility", "what was given stays as it was"


def test_a_table_of_a_file_counts_as_its_rows_say():
    rows = [{key: str(value) for key, value in HELPED.items()}, CRASHED | {"episode": "f"}]
    assert counted(rows, AS_IT_STANDS) == rows


def test_only_ways_that_change_an_episode_are_repeated_and_say_of_which_arm():
    rows = [HELPED, row("f", "success", 5.0, arm="b", interventions=0)]
    (one,) = alternatives(rows, AS_IT_STANDS)
    assert (one.key, one.value, one.episodes) == ("help", "no_success", {"a": 1})
    assert alternatives(rows[1:], AS_IT_STANDS) == []


def test_an_end_by_an_interlock_is_repeated_as_observed_since_it_is_carried_to_the_budget():
    rows = [LIMITED, row("f", "success", 5.0, arm="b")]
    assert affected(rows)["early_ends"] == {"a": {"e"}}
    (one,) = alternatives(rows, AS_IT_STANDS)
    assert (one.key, one.value, one.episodes) == ("early_ends", "observed", {"a": 1})
    (cell, _) = analyze(table_from_rows(one.rows), **PLAN)["cells"]
    assert cell["ended_early"] == 0, "no person ended it"


@pytest.mark.parametrize("declared", [True, False])
def test_an_episode_that_ended_with_its_run_is_said_to_be_cut_though_nothing_is_declared_of_it(declared: bool):
    """Ctrl-C in mid-trial and a score the next day: "(none met it)" was all that the first page had to say."""
    rows = [row("e", "censored", 9.0, "shutdown"), row("f", "success", 5.0, arm="b")]

    def analyse(other, most):
        return analyze(table_from_rows(other), **PLAN)

    result = analyse(rows, None)
    assert [cell["ended_early"] for cell in result["cells"]] == [1, 0]
    assert any("1 episode ended early by a person or with the run" in line for line in result["warnings"])
    found = repeated(rows, AS_IT_STANDS, result, analyse, declared=declared)
    said = counting_section.sentence(found, result) or ""
    cut = "An episode that ended with its run (Ctrl-C, labctl stop) counts as open until then (a 1)."
    assert said.endswith(cut) and (said == cut) != declared
    whole = repeated(rows[1:], AS_IT_STANDS, result, analyse, declared=declared)
    assert "ended_with_run" not in whole and "ended with its run" not in (
        counting_section.sentence(whole, result) or ""
    )


def campaign(helped: int) -> list[dict[str, Any]]:
    """Arm a takes some 5 s an item, b some 20 s; a was helped in its first episodes."""
    rng = np.random.default_rng(5)
    rows = []
    for arm, mean in (("a", 5.0), ("b", 20.0)):
        for i in range(10):
            t = round(float(rng.gamma(20, mean / 20)), 3)
            told = {"arm": arm, "end_s": t, "interventions": int(arm == "a" and i < helped)}
            rows.append(row(f"{arm}{i}", "success", min(t, 29.0), **told))
    return rows


@pytest.fixture(scope="module", params=[0, 10], ids=["unaided", "helped in each"])
def found(request: pytest.FixtureRequest):
    rows = campaign(request.param)

    def analyse(other, most):
        return analyze(table_from_rows(other), **PLAN)

    result = analyse(rows, None)
    return request.param, result, repeated(rows, AS_IT_STANDS, result, analyse, declared=False)


def test_an_arm_that_was_helped_in_every_episode_is_never_called_faster_without_saying_so(found):
    helped, result, _ = found
    (claim,) = [claim.text for claim in summary(result) if claim.standing == "resolved"]
    assert "a was faster per item than b" in claim
    assert ("A person helped a in 10 of its 10 episodes." in claim) == bool(helped)
    assert result["arms"][0]["helped"] == helped


def test_the_verdict_is_repeated_and_the_tipping_point_found(found):
    helped, result, counting = found
    (tipping,) = counting["tipping"]
    if not helped:
        assert counting["repeated"] == [] and (tipping["episodes"], tipping["needed"]) == (0, None)
        assert counting_section.sentence(counting, result) is None
        return
    (again,) = counting["repeated"]
    assert again["pairs"][0]["verdict"] != "better" or again["pairs"][0]["leads"] == "b"
    assert tipping["episodes"] == 10 and 1 <= (tipping["needed"] or 0) < 10
    said = counting_section.sentence(counting, result) or ""
    assert "an episode that a person helped counts as it went (a 10)" in said
    assert "Otherwise: with an episode that a person helped counted as no success, the verdict of a and b is" in said
    n = tipping["needed"]
    verb = "counts" if n == 1 else "count"
    assert f"The order of a and b is lost once {n} of 10 such episodes of a {verb} as no success." in said


def test_the_section_shows_what_counts_verdicts_times_and_tipping_points(found):
    helped, result, counting = found
    section = counting_section.section(counting, result)
    if not helped:
        assert section is None
        return
    assert section is not None
    headings = [heading for heading, _ in section.tables]
    assert headings == ["", "Verdicts, counted otherwise", "RMST and HRT, counted otherwise", "When an order is lost"]
    declared = section.tables[0][1]
    assert declared.rows[0] == ("An episode that a person helped", "as it went", "10", "0")


def test_a_bare_tables_own_crashes_that_it_calls_void_are_said_to_be_left_out_and_counted_otherwise():
    rows = [*campaign(0), *(row(f"v{i}", "censored", 20.0, CRASH, arm="a", void=1) for i in range(4))]
    plan = {**PLAN, "tau": 30.0, "estimator": KAPLAN_MEIER}
    result = analyze(table_from_rows(rows), **plan)
    found = counting(ways_of_table(rows), result, plan)  # type: ignore[arg-type]
    assert found["counts"]["crash"] == "as_recorded" and found["affected"]["crash"] == {"a": 4}
    (failed,) = (again for again in found["repeated"] if (again["key"], again["value"]) == ("crash", "failure"))
    assert [arm["episodes"] for arm in (*result["arms"], *failed["arms"])] == [10, 10, 14, 10]
    assert "an arm’s own crash counts as its rows say (a 4)" in (counting_section.sentence(found, result) or "")
