"""Whatever a valid table holds, `analyze` answers: no exception, no NaN, numbers within their bounds."""

from __future__ import annotations

import json
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.analysis.operations_table.analyze import analyze, dumps
from labctl.analysis.table import table_from_rows

TAU = 60.0
times = st.sampled_from([0, 0.5, 1, 7, 30, 60, 90])
operation = st.one_of(st.tuples(st.just("success"), times), st.tuples(st.just("ghost"), st.one_of(st.just(""), times)))
episode = st.fixed_dictionaries(
    {
        "arm": st.sampled_from(["human", "p", "q"]),
        "object": st.sampled_from(["cup", "pan"]),
        "block": st.sampled_from(["", "1", "2"]),
        "operations": st.lists(operation, max_size=3),
        "tail": st.one_of(st.none(), st.tuples(st.sampled_from(["", "futility", "operator"]), times)),
        "budget_s": st.sampled_from(["", 60, 60, 60, 90]),
        "items_staged": st.sampled_from(["", 1, 4]),
    }
)


def rows_of(episodes: list[dict]) -> list[dict[str, object]]:
    out = []
    for i, e in enumerate(episodes):
        said = {k: e[k] for k in ("arm", "object", "block", "budget_s", "items_staged")}
        listed = [(kind, t, "") for kind, t in e["operations"]]
        if e["tail"] or not listed:
            cause, t = e["tail"] or ("", 60)
            listed.append(("censored", t, cause))
        gone, reached = 0.0, 0.0
        for kind, t, _ in listed:
            reached = max(reached, gone + (t or 0))
            gone += t if kind == "success" else 0
        if e["budget_s"] and reached > e["budget_s"]:
            said["budget_s"] = ""
        out += [{"episode": str(i), "kind": k, "time_s": t, "cause": c, **said} for k, t, c in listed]
    return out


@settings(deadline=None, max_examples=120)
@given(st.lists(episode, min_size=1, max_size=9))
def test_any_valid_table_has_an_answer_that_json_can_hold(episodes: list[dict]) -> None:
    table = table_from_rows(rows_of(episodes))
    reference = "human" if "human" in table.arms() else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = analyze(table, reference=reference, tau=TAU, boot=9, perm=9)
    assert json.loads(dumps(result))["schema"] == "labctl.analysis/1"
    for cell in result["cells"]:
        assert -1e-9 <= cell["rmst"] <= TAU + 1e-9
        assert 0 <= cell["completion"] <= 1
        assert all(a <= b + 1e-12 for a, b in zip(cell["curve"]["F"], cell["curve"]["F"][1:], strict=False))
        if cell["rmst_ci"]:
            assert cell["rmst_ci"][0] <= cell["rmst"] <= cell["rmst_ci"][1] + 1e-9
    for pair in result["pairs"]:
        assert all(p is None or 0 <= p <= 1 for p in pair["p"].values())
