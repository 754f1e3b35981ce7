"""What more columns tell stands in the result, laid out as `analysis/blocks/` takes it, and is absent otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from labctl.analysis import numerals
from labctl.analysis.blocks.axes import Perturbed, axis_drops
from labctl.analysis.episodes_report import people_section
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.analyze import analyze
from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.episodes_table.table import table_from_rows
from labctl.analysis.report.figures import looks
from labctl.analysis.table import Row
from labctl.errors import TableError

PLAN = Plan(boot=199, perm=999)


def test_without_the_columns_there_is_nothing() -> None:
    rows = [{"block": i, "arm": arm, "score": 0.5} for i in range(4) for arm in "xy"]
    result = analyze(table_from_rows(rows), PLAN)
    assert result["preference"] is None and result["factors"] == {}
    assert result["axes"] == result["tags"] == result["retention"] == result["stress"] == []


def test_a_preference_counts_first_second_and_ties_and_agrees_with_the_score() -> None:
    """Of three with a winner and unequal scores, two prefer the higher score."""
    said = [("x|y", "x"), ("y|x", "x"), ("x|y", "tie"), ("x|y", "y"), ("y|x", "")]
    rows = [
        {"block": i, "arm": arm, "score": 0.9 if arm == "x" else 0.2, "compared": compared, "preferred": preferred}
        for i, (compared, preferred) in enumerate(said)
        for arm in "xy"
    ]
    found = analyze(table_from_rows(rows), PLAN)["preference"]
    assert found is not None
    assert (found["first"], found["second"], found["tie"]) == (1, 2, 1)
    assert found["agreement"] == pytest.approx(2 / 3)
    assert " ".join(found) == "first second tie davidson tie_parameter order_effect order_ci agreement"
    assert [s["arm"] for s in found["davidson"]] == ["x", "y"]


def test_a_strength_without_an_interval_has_its_reason_among_the_warnings() -> None:
    rows = [
        {"block": i, "arm": arm, "score": 0.5, "compared": "x|y", "preferred": "x"} for i in range(6) for arm in "xy"
    ]
    result = analyze(table_from_rows(rows), PLAN)
    assert [one["ci"] for one in result["preference"]["davidson"]] == [None, None]
    assert "preference: x never lost nor tied: its strength has no upper bound" in result["warnings"]
    assert result["preference"]["order_effect"] is None
    shown = words.preference(result)
    assert shown is not None and {row[1] for row in shown[0].rows} == {numerals.MISSING}
    assert shown[1][0].endswith("neither 0; no effect of order is known.")
    (section,) = [one for one in people_section.sections(result, looks(["x", "y"], None)) if one.id == "preference"]
    assert not section.figures, "nothing is left to draw"


def test_a_site_whose_differences_differ_is_seen_and_evaluators_are_nested_in_it() -> None:
    rng = np.random.default_rng(1)
    rows = []
    for block in range(120):
        site = block % 6
        lead = 0.25 * (site - 2.5) / 2.5
        for arm, mean in (("x", 0.5 + lead / 2), ("y", 0.5 - lead / 2)):
            score = float(np.clip(mean + 0.05 * rng.standard_normal(), 0, 1))
            more = {"site": f"s{site}", "evaluator": f"e{site}{block // 6 % 2}", "operator": "o"}
            rows.append({"block": block, "arm": arm, "score": score, **more})
    found = analyze(table_from_rows(rows), PLAN)["factors"]
    true = np.var(0.25 * (np.arange(6) - 2.5) / 2.5, ddof=1)
    assert found["site"]["levels"] == 6 and found["site"]["tau2"] == pytest.approx(true, rel=0.15)
    assert found["evaluator"]["levels"] == 12 and found["evaluator"]["tau2"] < 0.002
    (prediction,) = found["site"]["prediction"]
    assert (prediction["a"], prediction["b"]) == ("x", "y") and prediction["low"] < 0 < prediction["high"]
    assert found["operator"]["levels"] == 1 and found["operator"]["tau2"] is None


def perturbed() -> list[dict]:
    """Twelve sets, a base and an axis each; arm x loses by half under S-LANG, y by nothing."""
    rows = []
    for i in range(12):
        for condition, base, axis in (("plain", "", ""), ("worded", "plain", "S-LANG")):
            for arm in "xy":
                score = 0.5 if axis and arm == "x" else 0.75 + 0.25 * (i % 2)
                more = {"condition": condition, "base": base, "axis": axis, "set": f"set{i}", "task": f"t{i % 4}"}
                split, tag = ("test" if axis else "train"), ("precise; far" if i % 4 < 2 else "far")
                family = {"family": "language", "stress": "v2" if axis else "v1", "split": split, "tags": tag}
                rows.append({"block": f"{condition}{i}", "arm": arm, "score": score, **more, **family})
    return rows


def test_an_axis_that_costs_is_named_with_an_interval_that_excludes_no_drop() -> None:
    result = analyze(table_from_rows(perturbed()), PLAN)
    drops = {(row["axis"], row["arm"]): row for row in result["axes"]}
    assert drops["S-LANG", "x"]["drop"] == pytest.approx(0.375) and drops["S-LANG", "x"]["pairs"] == 12
    assert drops["S-LANG", "x"]["ci"][0] > 0 and drops["S-LANG", "y"]["drop"] == 0
    assert drops["S-LANG", "x"]["category"] == drops["", "x"]["category"] == "semantic"
    columns = [(r["arm"], r["score"], r["condition"], r["base"], r["axis"], r["set"]) for r in perturbed()]
    direct = {(d.axis, d.arm): d for d in axis_drops([Perturbed(*c) for c in columns], perm=999)}
    assert drops["S-LANG", "x"]["p"] == direct["S-LANG", "x"].p_holm


def test_tags_splits_and_stress_have_their_rows() -> None:
    result = analyze(table_from_rows(perturbed()), PLAN)
    assert {(row["tag"], row["arm"]) for row in result["tags"]} == {(t, a) for t in ("precise", "far") for a in "xy"}
    kept = {row["arm"]: row for row in result["retention"]}
    assert kept["x"]["retention"] == pytest.approx(0.5 / 0.875) and kept["y"]["retention"] == pytest.approx(1)
    stress = [(row["family"], row["level"], row["arm"], row["score"]) for row in result["stress"]]
    assert stress[0] == ("language", "v1", "x", pytest.approx(0.875)) and len(stress) == 4


def test_a_comma_is_part_of_a_tag() -> None:
    """0,5 kg was the tags 0 and 5 kg."""
    rows = [{**row, "tags": row["tags"].replace("far", "0,5 kg, far")} for row in perturbed()]
    assert {row["tag"] for row in analyze(table_from_rows(rows), PLAN)["tags"]} == {"precise", "0,5 kg, far"}


def test_a_tag_is_of_the_episodes_that_have_it_also_within_a_task_and_in_any_order_of_rows() -> None:
    """Office is one block of the task pick, in which both arms scored 0."""
    blocks = [(1, "pick", "kitchen"), (1, "pick", "kitchen"), (0, "pick", "office"), (0.5, "pour", "kitchen")]
    rows = [
        {"block": i, "arm": arm, "score": score, "task": task, "tags": tag}
        for i, (score, task, tag) in enumerate(blocks)
        for arm in "ab"
    ]
    for listed in (rows, rows[::-1]):
        result = analyze(table_from_rows(listed), PLAN)
        (office,) = [row for row in result["tags"] if (row["tag"], row["arm"]) == ("office", "a")]
        assert (office["tasks_with"], office["tasks_without"]) == (1, 2)
        assert (office["with"], office["without"]) == (0, pytest.approx(0.75))
        assert [text for text in result["warnings"] if text.startswith("tags differ within pick:")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"split": "dev"}, "split is 'dev'; allowed are train, test, or empty"),
        ({"axis": "Q-X"}, "axis is 'Q-X'; allowed"),
    ],
)
def test_an_unknown_split_or_axis_is_one_line(more: dict[str, str], said: str) -> None:
    with pytest.raises(TableError, match=said):
        table_from_rows([{"block": 1, "arm": "x", "score": 1, **more}])


def test_every_p_of_random_exchanges_has_its_error_beside_it_in_json_and_as_typed() -> None:
    rng = np.random.default_rng(4)
    rows = [
        {"block": block, "set": f"s{block // 2}", "condition": f"c{block}", "base": "" if block % 2 == 0 else
         f"c{block - 1}", "axis": "V-SC" if block % 2 else "", "task": f"t{block}", "tags": "long" if block % 3 else "",
         "arm": arm, "score": float(rng.uniform())}
        for block in range(60) for arm in "xyz"
    ]  # fmt: skip
    result = analyze(table_from_rows(rows), PLAN)
    told = [(p["p"]["score"], p["p_error"]["score"]) for p in result["pairs"]]
    told += [(p["p_holm"], p["p_holm_error"]) for p in result["pairs"]]
    told += [(one["p"], one["p_error"]) for one in (*result["axes"], *result["tags"])]
    assert len(told) == 3 + 3 + 2 * 3 + 3 and all(p == 1 or 0 < error < 0.12 for p, error in told), told
    shown = words.pairs(result)
    assert shown is not None
    axes, tags = (next(one for one in words.rows(result) if one.headings[0] == first) for first in ("axis", "tag"))
    for table, heading in ((shown, "p (Holm)"), (axes, "p (Holm)"), (tags, "p")):
        cells = [row[table.headings.index(heading)] for row in table.rows]
        assert cells and all("±" in cell or cell == "1.00" for cell in cells), cells


@pytest.mark.parametrize(("cells", "predicted"), [(2, False), (5, True)])
def test_cells_are_a_factor_and_below_five_nothing_is_said_of_a_further_one(cells: int, predicted: bool) -> None:
    rng = np.random.default_rng(3)
    rows = [
        {"block": f"b{block}", "arm": arm, "score": round(float(np.clip(rng.normal(mean, 0.1), 0, 1)), 3),
         "cell": f"c{block % cells}"}
        for block in range(40) for arm, mean in (("p", 0.7), ("q", 0.4))
    ]  # fmt: skip
    result = analyze(table_from_rows(rows), Plan(boot=99, perm=99))
    factor = result["factors"]["cell"]
    assert factor["levels"] == cells and bool(factor["prediction"]) is predicted
    assert len(factor["pairs"][0]["levels"]) == cells
    said = " ".join(words.factors(result))
    assert ("an interval for a further one needs 5" in said) is not predicted
    assert ("At a further cell" in said) is predicted


def test_a_set_is_one_difference_of_its_site() -> None:
    """Sets of four blocks that are alike within: sites say what they do of one block a set."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for one in range(12):
        by = 0.5 + 0.3 * rng.random(2)
        for k in range(4):
            said = {"block": f"{one}.{k}", "set": f"s{one}", "site": f"site-{one % 3}", "evaluator": f"p{one % 6}"}
            rows += [{**said, "arm": arm, "score": score} for arm, score in zip("ab", by.tolist(), strict=True)]
    alone = [row for row in rows if str(row["block"]).endswith(".0")]
    whole, first = (analyze(table_from_rows(given), PLAN)["factors"] for given in (rows, alone))
    assert whole["site"]["pairs"] and whole == first
