"""What a report says of a registered margin, and that nothing calls arms equivalent without one."""

from __future__ import annotations

import ast
import copy
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import labctl.analysis
from labctl.analysis.report import figures, margin_words, markdown, pair_tables, success_curves
from labctl.analysis.report.page import build_page, render_html
from labctl.cli.report import report as report_verb
from labctl.cli.statistics import analyze as analyze_verb

HERE = Path(__file__).parents[1]
ROOT = Path(__file__).resolve().parents[4]
WORDS = re.compile(
    r"\b(alike|equivalent|equivalence|non-?inferior\w*|indistinguishable|as (good|fast|quick) as|on par|no difference"
    r"|(are|were|is|was|be|had|has|have|did|do|does) (the |about |about the )?(same|equal)"
    r"|do not differ|does not differ|no worse|identical|comparable|similar)\b",
    re.IGNORECASE,
)
# What is said of other things than of two arms: by module, the words before and after.
OF_OTHERS = {
    "again.py": ["--non-inferior-to"],
    "linked_section.py": ["Anchors that moved alike"],
    "page.py": ["as fast as it happened"],
}
IN_JSON = ("equivalent", "non-inferior")  # `claim` of a pair's margin


@pytest.fixture
def case() -> dict[str, Any]:
    return json.loads((HERE / "report_case.json").read_text(encoding="utf-8"))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("curve_figures", "pp_figures"):
        monkeypatch.setattr(success_curves, name, lambda *_: [])
    monkeypatch.setattr(figures, "hrt_figure", lambda *_: None)


LIMIT = math.log(1.25)
NEAR, FAR = [-0.1, 0.14], [-0.3, 0.34]


def asked(ci: list[float] | None, p: float | None, *, arm: str | None = None, level: float = 0.9, **more: Any) -> Any:
    told = {
        "claim": "equivalent" if arm is None else "non-inferior",
        "arm": arm,
        "margin": [-LIMIT, LIMIT],
    }
    shown = p is not None and p <= 0.05
    told |= {"level": level, "ci": ci, "p": p, "p_error": 0.0, "p_holm": p, "p_holm_error": 0.0}
    return {**told, "shown": shown, "unable": None, **more}


def pair(a: str, b: str, margin: Any = None, **more: Any) -> dict[str, Any]:
    told = {"a": a, "b": b, "log_rmst_ratio": 0.02, "p_holm": 0.6, "objects": ["cup"], "leads": None}
    told |= {"verdict": "not resolved at this N", "log_rmst_ratio_adjusted_ci": [-0.2, 0.24], **more}
    return {**told, **({"margin": margin} if margin else {})}


def result(*pairs: Any, to: str | None = None) -> Any:
    cells = [{"arm": arm, "object": "cup", "episodes": 12} for arm in "abc"]
    margin = {"rmst_ratio": 1.25, "non_inferior_to": to}
    return {"alpha": 0.05, "cells": cells, "arms": [], "pairs": list(pairs), "margin": margin}


def said(found: Any, **more: Any) -> list[str]:
    return [claim.text for claim in margin_words.claims(found, protocol=True, **more)]


def test_what_is_shown_is_said_with_the_margin_the_interval_and_then_p() -> None:
    (text,) = said(result(pair("a", "b", asked(NEAR, 0.012))))
    assert text == (
        "Shown to be equivalent in time per item, within the margin that the protocol registered, a ratio from 0.80 to "
        "1.25: a and b (1.02 [0.90, 1.15] of a over b, 90 % interval; Holm-adjusted p = 0.012)."
    )


def test_what_is_not_shown_is_never_called_a_difference() -> None:
    one = pair("a", "b", asked(FAR, 0.2))
    (text,) = said(result(one))
    assert text.startswith(
        "Not shown to be equivalent in time per item, within the margin that the protocol registered"
    )
    assert text.endswith("Holm-adjusted p = 0.20). By itself that is no sign of a difference.")
    assert "differ " not in text and margin_words.claims(result(one), protocol=True)[0].standing == "unresolved"


def test_both_kinds_of_pairs_are_a_sentence_each() -> None:
    near, far = pair("a", "b", asked(NEAR, 0.012, level=0.9667)), pair("a", "c", asked(FAR, 0.2, level=0.95))
    first, second = said(result(near, far))
    assert first.startswith("Shown") and "96.7 % interval" in first and " c " not in first
    assert second.startswith("Not shown to be equivalent in time per item, within that margin: a and c (")


def test_non_inferiority_is_of_one_arm_whichever_way_the_pair_stands() -> None:
    one = asked(NEAR, 0.01, arm="b", margin=[-LIMIT, None])
    (text,) = said(result(pair("a", "b", one), to="a"))
    assert text.startswith("Shown to be non-inferior to a in time per item, within the margin that the protocol")
    assert "a ratio below 1.25: b (0.98 [0.87, 1.11] of b over a, 90 % interval" in text
    found = margin_words.table(result(pair("a", "b", one), to="a"))
    assert found is not None
    assert found.rows[0][:6] == ("a – b", "b non-inferior", "1.02", "[0.90, 1.15]", "90", "above 0.80")


@pytest.mark.parametrize(
    ("ratio", "low", "high"), [(1.2, "0.83", "1.20"), (1.125, "0.889", "1.125"), (1.004, "0.996", "1.004")]
)
def test_a_margin_is_printed_as_it_was_registered(ratio: float, low: str, high: str) -> None:
    of = asked(NEAR, 0.2, margin=[-math.log(ratio), math.log(ratio)])
    found = {**result(pair("a", "b", of)), "margin": {"rmst_ratio": ratio, "non_inferior_to": None}}
    assert f"a ratio from {low} to {high}" in said(found)[0]
    table = margin_words.table(found)
    assert table is not None and table.rows[0][5] == f"{low} to {high}"


def test_an_interval_that_ends_beyond_the_margin_is_not_printed_as_one_that_ends_at_it() -> None:
    found = result(pair("a", "b", asked([-0.1, math.log(1.254)], 0.06)))
    table = margin_words.table(found)
    assert table is not None and table.rows[0][3] == "[0.905, 1.254]"
    assert "[0.905, 1.254] of a over b" in said(found)[0]


def test_arms_that_differ_by_less_than_the_margin_are_said_to_do_both() -> None:
    more = {"p_holm": 0.01, "verdict": "better", "leads": "b", "log_rmst_ratio_adjusted_ci": [0.01, 0.15]}
    (text,) = said(result(pair("a", "b", asked([0.02, 0.14], 0.01), **more)))
    assert text.endswith("a and b differ all the same (b faster): in the mean by less than that.")


def test_of_an_arm_that_is_ahead_no_difference_below_the_margin_is_said() -> None:
    more = {"p_holm": 0.01, "verdict": "better", "leads": "b", "log_rmst_ratio_adjusted_ci": [0.6, 0.8]}
    for arm, ends in (("b", "Holm-adjusted p = 0.010)."), ("a", "in the mean by less than that.")):
        one = pair("a", "b", asked([0.6, 0.8], 0.01, arm=arm), **more)
        (text,) = said(result(one, to="a" if arm == "b" else "b"))
        assert text.endswith(ends)


def test_pairs_that_are_told_apart_are_named_alone() -> None:
    more = {"p_holm": 0.01, "verdict": "better", "leads": "b", "log_rmst_ratio_adjusted_ci": [0.6, 0.8]}
    apart = pair("a", "b", asked([0.6, 0.8], 1.0), **more)
    (text,) = said(result(apart))
    assert text.endswith("a ratio from 0.80 to 1.25: a – b, which are told apart above.") and "no sign" not in text
    (text,) = said(result(apart, pair("a", "c", asked(FAR, 0.2))))
    assert ": a and c (" in text
    assert text.endswith("By itself that is no sign of a difference. Nor of a – b, which are told apart above.")


def test_what_another_way_to_count_takes_back_is_said() -> None:
    near, far = pair("a", "b", asked(NEAR, 0.012)), pair("a", "b", asked(FAR, 0.2))
    ways = [("every stop counted", [far]), ("voids counted as no success", [near])]
    (text,) = said(result(near), otherwise=ways)
    assert text.endswith("With every stop counted, that is not shown of a and b.") and "voids" not in text


@pytest.mark.parametrize(
    ("why", "text"),
    [("no_spread", "no spread to judge it by"), ("floor", "an arm that never moves would be within it")],
)
def test_why_nothing_can_be_shown_is_said_in_the_place_of_numbers(why: str, text: str) -> None:
    found = result(pair("a", "b", asked(NEAR, None, unable=why)))
    (sentence,) = said(found)
    table = margin_words.table(found)
    assert text in sentence and "p = " not in sentence
    assert table is not None and table.rows[0][-1].startswith(f"not shown: {text}")


def test_of_a_bare_table_the_margin_is_never_called_registered() -> None:
    (claim,) = margin_words.claims(result(pair("a", "b", asked(NEAR, 0.012))), protocol=False)
    assert "registered" not in claim.text and "which no record says was chosen before" in claim.text


def test_without_a_margin_a_report_has_no_such_word_column_or_section(case: dict[str, Any], undrawn: None) -> None:
    page, _ = build_page(case["result"], [], lab=case["lab"], title="t")
    body = re.sub(r"<style>.*?</style>", "", render_html(page), flags=re.DOTALL)
    for text in (body, markdown.render(page)):
        assert not WORDS.search(text) and "margin" not in text.lower()
    assert said({**result(pair("a", "b")), "margin": None}) == []


def test_with_a_margin_the_page_has_the_sentence_the_column_and_the_table(case: dict[str, Any], undrawn: None) -> None:
    found = copy.deepcopy(case["result"])
    found["margin"] = result()["margin"]
    found["pairs"][0]["margin"] = asked(NEAR, 0.012)
    page, _ = build_page(found, [], lab=case["lab"], title="t")
    text = markdown.render(page)
    assert "- Shown to be equivalent in time per item, within the margin that the protocol registered" in text
    assert "## Against the margin" in text and render_html(page).count('id="margin"') == 1
    table = pair_tables.pair_table(found)
    assert table.columns[-1].label == "Within the margin"
    assert [row[-1] for row in table.rows] == ["shown", *["–"] * (len(table.rows) - 1)]


def words_of(path: Path) -> list[str]:
    """Every text of a module that is no docstring and holds such a word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {
        ast.get_docstring(n, clean=False)
        for n in ast.walk(tree)
        if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef)
    }
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [text for text in texts if WORDS.search(text) and text not in documented]


def test_no_other_text_of_the_analysis_calls_two_arms_alike() -> None:
    analysis = Path(labctl.analysis.__path__[0])
    found: dict[str, list[str]] = {}
    for path in sorted(analysis.rglob("*.py")):
        others = OF_OTHERS.get(path.name, ())
        texts = [t for t in words_of(path) if t not in IN_JSON and not any(mark in t for mark in others)]
        if texts and path.name != "margin_words.py":
            found[path.name] = texts
    assert found == {}
    assert words_of(analysis / "report" / "margin_words.py"), "the search is not asleep"


TABLE = "\n".join(
    ["episode,arm,object,kind,time_s,items_staged,end_s,budget_s"]
    + [f"{arm}{i},{arm},cup,success,{20 + i % 5},1,{20 + i % 5},60" for arm in "ab" for i in range(12)]
)


def test_analyze_and_report_of_a_table_take_a_margin(tmp_path: Path) -> None:
    read = tmp_path / "operations.csv"
    read.write_text(TABLE)
    few = ["--boot", "199", "--perm", "19"]
    told = CliRunner().invoke(analyze_verb, [str(read), *few, "--margin", "1.25"])
    assert (
        told.exit_code == 0
        and "Shown to be equivalent in time per item, within the margin given with the table" in told.output
    )
    asked_json = [str(read), *few, "--margin", "1.25", "--non-inferior-to", "a", "--json"]
    body = json.loads(CliRunner().invoke(analyze_verb, asked_json).output)
    assert body["pairs"][0]["margin"]["arm"] == "b" and body["margin"]["non_inferior_to"] == "a"
    without = json.loads(CliRunner().invoke(analyze_verb, [str(read), *few, "--json"]).output)
    assert "margin" not in without


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--margin", "0.8"], "rmst_ratio is 0.8; allowed is a number above 1"),
        (["--non-inferior-to", "a"], "--non-inferior-to needs a margin"),
        (["--margin", "1.25", "--non-inferior-to", "z"], "no arm 'z'"),
    ],
)
def test_a_margin_on_the_command_line_is_refused_in_one_line(tmp_path: Path, options: list[str], said: str) -> None:
    read = tmp_path / "operations.csv"
    read.write_text(TABLE)
    told = CliRunner().invoke(analyze_verb, [str(read), "--boot", "19", "--perm", "19", *options])
    assert told.exit_code != 0 and said in str(told.exception)


def test_of_a_campaign_the_margin_stands_in_its_protocol(tmp_path: Path) -> None:
    told = CliRunner().invoke(report_verb, ["first", "--out", str(tmp_path / "r"), "--margin", "1.25"])
    assert told.exit_code != 0 and "stand in its protocol" in str(told.exception)


def test_the_words_of_intervals_name_the_levels_that_are_not_of_95_percent(case: dict[str, Any], undrawn: None) -> None:
    """All of them were 95 %, below intervals of 60, 80 and 90 %."""
    html = render_html(build_page(case["result"], [], lab=case["lab"], title="a title")[0])
    assert "All intervals are" not in html and "those of several pairs at once are at 1 − alpha" in html
