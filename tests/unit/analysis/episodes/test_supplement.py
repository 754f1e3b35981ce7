"""The supplement of a result: every entry there, null where the table is silent, the same bytes again."""

from __future__ import annotations

import json

import pytest
from labctl.analysis.episodes.supplement import supplement
from labctl.analysis.reading import read_table
from labctl.analysis.survival.analyze import analyze, dumps
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
