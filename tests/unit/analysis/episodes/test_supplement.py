"""The supplement of a result: every entry there, null where the table is silent, the same bytes again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from labctl.analysis import supplement_result as forms
from labctl.analysis.episodes import covariate_balance, failures, operators, sensitivity
from labctl.analysis.episodes.supplement import supplement
from labctl.analysis.operations_table.analyze import analyze, dumps
from labctl.analysis.reading import read_table
from labctl.analysis.results import Result
from labctl.analysis.survival import items_moved, order_probability
from labctl.analysis.table import Table, table_from_rows

FEW = {"boot": 199, "perm": 199}


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Table:
    return read_table(request.path.parents[1] / "report_table.csv")


def test_a_campaigns_table_fills_every_entry(table: Table) -> None:
    result = analyze(table, reference="human", **FEW)
    found = supplement(table, result, perm=199)
    assert set(found) == {"schema", "cells", "arms", "pairs", "spatial", "teleoperators", "people"}
    assert len(found["cells"]) == len(result["cells"]) and len(found["pairs"]) == len(result["pairs"])
    for cell in found["cells"]:
        value = next(c for c in result["cells"] if (c["arm"], c["object"]) == (cell["arm"], cell["object"]))
        assert cell["bounds"]["best"] - 1e-9 <= value["rmst"] <= cell["bounds"]["worst"] + 1e-9
        assert cell["by_operation"]["rmst"][0] == pytest.approx(value["rmst_first_operation"])
        if cell["arm"] == "human":
            assert cell["pp"] is None and cell["qq"] is None
        else:
            assert 0 <= cell["pp"]["area"] <= 1 and cell["qq"]["last"] <= 1
    for arm in found["arms"]:
        assert arm["letters"] and arm["failures"]["operations"] > 0
    for pair in found["pairs"]:
        assert 0 <= pair["logrank_stratified_permutation"] <= 1 and pair["moved"]["p"] <= 1
    assert dumps(found) == dumps(supplement(table, result, perm=199))


def test_a_bare_table_leaves_gaps_not_errors() -> None:
    rows = [dict(episode=f"{a}{i}", arm=a, object="o", kind="ghost", time_s="") for a in "ab" for i in range(2)]
    bare = table_from_rows(rows)
    found = supplement(bare, analyze(bare, tau=60, **FEW), perm=99)
    assert found["spatial"] is None and found["teleoperators"] == []
    assert found["cells"][0]["incidence"] is None and found["arms"][0]["hrt_bounds"] is None
    assert json.loads(dumps(found))["pairs"][0]["moved"] is None


@pytest.mark.parametrize(
    ("made", "form"),
    [
        (sensitivity.Bounds, forms.Range),
        (sensitivity.ByOperation, forms.ByOperation),
        (order_probability.QQPlot, forms.Quantiles),
        (failures.Sweep, forms.Swept),
        (failures.FailureModes, forms.Failures),
        (covariate_balance.Trend, forms.Trend),
        (covariate_balance.Sessions, forms.Sessions),
        (items_moved.MovedDifference, forms.Moved),
        (covariate_balance.Configuration, forms.Configuration),
        (covariate_balance.Sides, forms.Sides),
        (covariate_balance.Spatial, forms.Spatial),
        (operators.Operator, forms.Operator),
        (operators.Slope, forms.Slope),
        (operators.People, forms.People),
    ],
)
def test_a_form_names_what_its_result_holds(made: type[Result], form: type[Any]) -> None:
    assert [field.name for field in fields(made)] == list(form.__annotations__)


def test_the_supplement_has_the_keys_of_its_forms(table: Table) -> None:
    found = supplement(table, analyze(table, reference="human", boot=19, perm=19), perm=19)
    parts: list[tuple[Mapping[str, Any], type[Any]]] = [(found, forms.Supplement)]
    parts += [(cell, forms.MoreOfCell) for cell in found["cells"]]
    parts += [(arm, forms.MoreOfArm) for arm in found["arms"]]
    parts += [(pair, forms.MoreOfPair) for pair in found["pairs"]]
    for part, form in parts:
        assert list(part) == [name for name in form.__annotations__ if name != "trend_by_cell"], "several cells have it"
