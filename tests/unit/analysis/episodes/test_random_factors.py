"""Evenings and teleoperators as a sample of more: intervals, when there is none, and what is said of it."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.statistics.evenings import Evenings, coverage

from labctl import cli
from labctl.analysis.episodes.random_factors import anew
from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.report import anew_words
from labctl.analysis.survival.result import Anew, RandomFactor
from labctl.analysis.table import Table, table_from_rows

BOTH = ("session", "operator")
Times = dict[str, list[list[float]]]


def rows(times: Times, people: int = 4, **more: object) -> list[dict[str, Any]]:
    """Episodes of one operation: of every arm the times of each session; person j drives the j-th of a session."""
    return [
        {"episode": f"{arm}-{s}-{j}", "arm": arm, "object": "cup", "kind": "success", "time_s": time, "budget_s": 500.0,
         "end_s": time, "items_staged": 1, "session": f"s{s}", "operator": f"p{j % people}", **more}
        for arm, sessions in times.items() for s, own in enumerate(sessions) for j, time in enumerate(own)
    ]  # fmt: skip


def found(table: Table, factors: tuple[str, ...] = BOTH) -> Anew:
    result = analyze(table, reference="human", tau=500.0, boot=199, perm=199)
    return anew(table, result, factors)[0]


def said(table: Table, told: Anew) -> str:
    result = analyze(table, reference="human", tau=500.0, boot=199, perm=199)
    result["anew"] = [told]
    return " ".join(claim.text for claim in anew_words.claims(result))


def drawn(sessions: int, seed: int = 1) -> Times:
    rng = np.random.default_rng(seed)

    def evening(mean: float) -> list[float]:
        return (mean * math.exp(0.2 * rng.standard_normal()) * rng.gamma(9, 1 / 9, 4)).tolist()

    return {arm: [evening(mean) for _ in range(sessions)] for arm, mean in (("human", 30.0), ("policy", 60.0))}


def silent(b: str, unable: str, levels: int) -> Anew:
    factor: RandomFactor = {"levels": levels, "se": None, "further_ci": None, "unable": unable}  # type: ignore[typeddict-item]
    return {"a": "human", "b": b, "log_rmst_ratio": 0.1, "ci": None, "df": None, "factors": {"session": factor}}


def test_of_a_pair_that_nothing_was_asked_of_nothing_is_said() -> None:
    few: RandomFactor = {"levels": 1, "se": None, "further_ci": None, "unable": "few"}
    of_human = silent("x", "few", 1) | {"factors": {"operator": few}}
    told = [of_human, silent("y", "few", 1) | {"a": "x", "factors": {}}]
    claims = [claim.text for claim in anew_words.claims({"pairs": [], "anew": told})]  # type: ignore[typeddict-item]
    assert claims == [
        "Nothing is known of further teleoperators of human – x: teleoperators, 1 met, an interval takes 4 or more."
    ]
    shown = anew_words.table({"pairs": [], "anew": told})  # type: ignore[typeddict-item]
    assert shown is not None and [row[0] for row in shown.rows] == ["human – x"]
    assert anew_words.table({"pairs": [], "anew": told[1:]}) is None  # type: ignore[typeddict-item]


def test_each_pair_that_nothing_is_known_of_has_its_own_reason() -> None:
    told = [silent("x", "few", 3), silent("y", "confounded", 5), silent("z", "few", 3)]
    claims = [claim.text for claim in anew_words.claims({"pairs": [], "anew": told})]  # type: ignore[typeddict-item]
    assert len(claims) == 2
    assert "of human – x and human – z: evenings, 3 met, an interval takes 4 or more" in claims[0]
    assert "of human – y: evenings, 5 met, without one of them nothing is left" in claims[1]


def test_one_factor_is_the_delete_one_jackknife_with_t_on_the_sessions_less_one() -> None:
    times = drawn(5)
    told = found(table_from_rows(rows(times)), ("session",))

    def mean(arm: str, out: int | None = None) -> float:  # nothing is censored before tau: an RMST is a mean of times
        return float(np.mean([t for i, own in enumerate(times[arm]) if i != out for t in own]))

    without = np.log([mean("human", i) / mean("policy", i) for i in range(5)])
    value, se = math.log(mean("human") / mean("policy")), math.sqrt(4 / 5 * ((without - without.mean()) ** 2).sum())
    reach = float(stats.t.ppf(0.975, 4)) * se
    assert told["df"] == 4 and told["ci"] == pytest.approx([value - reach, value + reach])
    further = told["factors"]["session"]["further_ci"]
    assert further == pytest.approx([value - reach * math.sqrt(6), value + reach * math.sqrt(6)])
    assert "operator" not in told["factors"]


def test_two_factors_are_have_no_smaller_error_than_either_and_freedom_between_theirs() -> None:
    table = table_from_rows(rows(drawn(6)))
    both, session = found(table), found(table, ("session",))
    assert both["ci"] and session["ci"] and session["df"] == 5
    assert both["df"] and 3 <= both["df"] <= 5
    widths = [(told["ci"][1] - told["ci"][0]) / stats.t.ppf(0.975, told["df"]) for told in (both, session)]
    assert widths[0] >= widths[1] * (1 - 1e-12)
    assert both["factors"]["operator"]["levels"] == 4  # the policy is driven by nobody


def test_a_person_who_is_slow_widens_what_is_said_of_people() -> None:
    slow = [
        {**row, "time_s": row["time_s"] * (4 if row["operator"] == "p0" and row["arm"] == "human" else 1)}
        for row in rows(drawn(6))
    ]
    one, other = (found(table_from_rows(made))["factors"]["operator"]["se"] for made in (rows(drawn(6)), slow))
    assert one and other and other > 3 * one


@pytest.mark.parametrize(
    ("sessions", "change", "why"), [(3, {}, "few"), (5, {"session": ""}, "unknown"), (5, {}, "confounded")]
)
def test_where_it_cannot_be_given_that_is_said(sessions: int, change: dict[str, str], why: str) -> None:
    times = drawn(sessions)
    if why == "confounded":
        times["policy"] = [*([[]] * 4), [60.0, 70.0, 50.0, 66.0]]
    table = table_from_rows(rows(times, **change))
    told = found(table, ("session",))
    assert told["ci"] is None and told["factors"]["session"]["unable"] == why
    words = said(table, told)
    assert "Nothing is known of further evenings of human – policy" in words and anew_words.UNABLE[why] in words
    result = analyze(table, reference="human", tau=500.0, boot=199, perm=199)
    result["anew"] = [told]
    shown = anew_words.table(result)
    assert shown is not None and "cannot be given" in shown.rows[0][-1]


def test_few_people_leave_the_evenings_and_that_is_said() -> None:
    table = table_from_rows(rows(drawn(6), people=2))
    told = found(table)
    assert told["factors"]["operator"]["unable"] == "few" and told["df"] == 5 and told["ci"] is not None
    words = said(table, told)
    assert "Of further teleoperators, 2 met, an interval takes 4 or more" in words
    assert "goes beyond those who were met: human – policy" in words


def test_an_order_that_is_of_these_evenings_alone_is_called_so() -> None:
    times = drawn(5)
    slow = (0.1, 0.1, 0.1, 4.0, 0.1)
    times["policy"] = [[t * factor for t in own] for own, factor in zip(times["policy"], slow, strict=True)]
    table = table_from_rows(rows(times))
    told = found(table, ("session",))
    assert told["ci"] is not None and told["ci"][0] < 0 < told["ci"][1]
    result = analyze(table, reference="human", tau=500.0, boot=199, perm=199)
    result["anew"] = [told]
    result["pairs"][0] |= {"verdict": "better", "leads": "human", "log_rmst_ratio_adjusted_ci": [-1.0, -0.1]}
    assert "of these evenings and people alone: human – policy" in anew_words.claims(result)[0].text


def test_nothing_is_said_where_nothing_was_registered() -> None:
    result = analyze(table_from_rows(rows(drawn(4))), tau=500.0, boot=199, perm=199)
    assert anew_words.claims(result) == [] and anew_words.table(result) is None


def test_a_table_takes_the_factors_as_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = rows(drawn(6))
    path = tmp_path / "operations.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]))
        writer.writeheader()
        writer.writerows(made)
    words = ["analyze", str(path), "--reference", "human", "--boot", "199", "--perm", "199", "--random"]
    assert cli.call([*words, "session,operator"]) == 0
    assert "That goes beyond those who were met: human – policy" in capsys.readouterr().out
    assert cli.call([*words, "session", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["anew"]
    assert told["ci"] == pytest.approx(found(table_from_rows(made), ("session",))["ci"])
    assert cli.call([*words, "evening"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--random is 'evening'; allowed are session, operator or session,operator" in said


@pytest.mark.thorough
@pytest.mark.parametrize("how", [Evenings(4), Evenings(8), Evenings(6, people=4, persons=0.3)])
def test_intervals_hold_the_truth_as_often_as_they_say(how: Evenings) -> None:
    """docs/statistics-calibration.md has the full run; here 150 campaigns, four errors beyond [.93, .97]."""
    shares = coverage(how, range(20_000, 20_150))
    assert all(share > 0.93 - 4 * 0.0187 for share in shares.values()), shares
