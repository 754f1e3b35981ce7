"""Every key of [analysis] binds: another value gives another result, page and letters. No key is read by nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.analysis.episodes.random_factors import anew
from labctl.analysis.episodes.supplement import supplement
from labctl.analysis.operations_table.analyze import analyze, dumps
from labctl.analysis.report import figures, markdown, success_curves
from labctl.analysis.report.page import build_page
from labctl.analysis.table import table_from_rows
from labctl.config.protocol_schema import AnalysisPlan, parse_protocol
from labctl.errors import InputError
from labctl.reporting.interim_look import judged_at
from labctl.reporting.rows_report import plan_of

SIZES = (199, 199, 0)
ROOT = Path(__file__).resolve().parents[3]
DEMO = (ROOT / "protocols" / "demo.toml").read_text(encoding="utf-8")
FAMILY = 'family = ["ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph"]'
LOOKS = "[analysis.looks]\nfractions = [0.3, 0.6, 1.0]"
CHANGED = {
    "tau_s": ("tau_s = 120.0", "tau_s = 20.0"),
    "reference": ('reference = "human"', 'reference = "policy-a"'),
    "family": (FAMILY, 'family = ["uph"]'),
    "alpha": ("alpha = 0.05", "alpha = 0.2"),
    "estimator": ("alpha = 0.05\n", 'alpha = 0.05\nestimator = "wang_chang"\n'),
    "looks": ("alpha = 0.05\n", f"alpha = 0.05\n\n{LOOKS}\n"),
    "margin": ("alpha = 0.05\n", "alpha = 0.05\n\n[analysis.margin]\nrmst_ratio = 1.25\n"),
    "random_factors": ("alpha = 0.05\n", 'alpha = 0.05\nrandom_factors = ["session", "operator"]\n'),
}


def rows() -> list[dict[str, Any]]:
    """A person and three policies at one object, chosen so that letters hang on every key."""
    rng = np.random.default_rng(11)
    times = {
        "human": rng.gamma(9, 0.9, 12),
        "policy-a": rng.gamma(30, 0.6, 12),
        "policy-b": rng.gamma(2.0, 9.0, 12),
        "policy-c": np.minimum(rng.gamma(3, 12.0, 12), 110.0),
    }
    return [
        {"episode": f"{arm}{i}", "arm": arm, "object": "towels", "block": str(i), "kind": "success",
         "time_s": round(float(t), 3), "items_staged": 1, "end_s": round(float(t), 3), "budget_s": 120.0,
         "session": f"s{i % 5}", "operator": f"p{i % 4}"}
        for arm, drawn in times.items() for i, t in enumerate(drawn)
    ]  # fmt: skip


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("curve_figures", "pp_figures"):
        monkeypatch.setattr(success_curves, name, lambda *_: [])
    monkeypatch.setattr(figures, "hrt_figure", lambda *_: None)


def outcome(text: str) -> tuple[str, str, dict[str, str]]:
    """JSON, page and letters of a campaign whose protocol is `text`, four blocks of twelve complete."""
    protocol = parse_protocol(text, "p.toml")
    trials = {n: SimpleNamespace(block=n, state="scored" if n < 4 else "planned", exhausted=False) for n in range(12)}
    alpha, _ = judged_at(SimpleNamespace(trials=trials), protocol)  # type: ignore[arg-type]
    told = rows()
    plan = plan_of(protocol.analysis, alpha, told, [], SIZES)
    table = table_from_rows(told)
    result = analyze(table, **plan)
    if factors := protocol.analysis.random_factors:
        result["anew"] = anew(table, result, factors)
    page, _ = build_page(result, told, lab=None, title="t")
    letters = {arm["arm"]: arm["letters"] for arm in result["arms"]}
    assert {a["arm"]: a["letters"] for a in supplement(table, result, perm=19)["arms"]} == letters
    return dumps(result), markdown.render(page), letters


def test_every_key_of_the_analysis_is_changed_below() -> None:
    assert set(CHANGED) == set(AnalysisPlan.model_fields)


def test_another_value_of_any_key_gives_another_result_page_and_letters(undrawn: None) -> None:
    before = outcome(DEMO)
    for key, (old, new) in CHANGED.items():
        assert DEMO.count(old) == 1
        after = outcome(DEMO.replace(old, new))
        changed = [a != b for a, b in zip(after, before, strict=True)]
        # the first two tell no arms apart, and where every episode has one operation all estimators are one
        assert changed == [True, True, key not in ("margin", "random_factors", "estimator")], key


def test_verdict_and_letters_are_of_one_level() -> None:
    # seen: Holm's p .094 at alpha .20 "not resolved" while the letters separated the arms
    found = analyze(table_from_rows(rows()), tau=120.0, boot=199, perm=199)
    p = sorted(pair["p_holm"] for pair in found["pairs"])
    for alpha in (0.001, 0.05, (p[-1] + p[-2]) / 2, 0.99):
        again = analyze(table_from_rows(rows()), tau=120.0, boot=199, perm=199, alpha=alpha)
        letters = {arm["arm"]: set(arm["letters"]) for arm in again["arms"]}
        for pair in again["pairs"]:
            differs = pair["verdict"] != "not resolved at this N"
            assert differs == (pair["p_holm"] <= alpha) == (not letters[pair["a"]] & letters[pair["b"]])


def test_against_an_arm_that_was_never_scored_no_other_is_held() -> None:
    to = 'alpha = 0.05\n\n[analysis.margin]\nrmst_ratio = 1.25\nnon_inferior_to = "policy-c"\n'
    plan = parse_protocol(DEMO.replace("alpha = 0.05\n", to), "p.toml").analysis
    asked = plan_of(plan, 0.05, rows(), [], SIZES)
    assert asked["margin"] == {"rmst_ratio": 1.25, "non_inferior_to": "policy-c"}
    assert plan_of(plan, 0.05, [row for row in rows() if row["arm"] != "policy-c"], [], SIZES)["margin"] is None


@pytest.mark.parametrize("key", ["famly", "level", "primary"])
def test_a_key_that_nothing_reads_is_refused(key: str) -> None:
    with pytest.raises(InputError, match=f"unknown key '{key}'"):
        parse_protocol(DEMO.replace("alpha = 0.05\n", f'alpha = 0.05\n{key} = "x"\n'), "p.toml")


def test_the_families_of_a_protocol_of_the_command_line_and_of_the_statistics_are_one_list():
    from labctl.analysis.family import STATISTICS
    from labctl.cli import options

    assert AnalysisPlan.model_fields["family"].default == STATISTICS == options.listed(options.FAMILY)
