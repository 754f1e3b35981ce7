"""What a report of several robots' cells says: of which cells, where they differ, and what a further one shows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.report import wording
from labctl.analysis.report.page import build_report
from labctl.analysis.report.sections import cell_section
from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.table import table_from_rows


def joint(cells: dict[str, dict[str, float]], blocks: int = 6, seed: int = 1) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {"episode": f"{cell}-{n}-{arm}", "arm": arm, "object": "cup", "kind": "success", "time_s": time,
         "budget_s": 500.0, "end_s": time, "items_staged": 1, "block": f"{cell}/{n}", "cell": cell}
        for cell, arms in cells.items() for n in range(blocks) for arm, mean in arms.items()
        for time in [round(float(mean * rng.gamma(9, 1 / 9)), 3)]
    ]  # fmt: skip


def result(rows: list[dict[str, Any]]) -> AnalysisResult:
    return analyze(table_from_rows(rows), tau=500.0, boot=199, perm=199)


def test_every_claim_of_two_cells_says_so_and_none_is_of_a_further_one():
    two = result(joint({"north": {"p": 20.0, "q": 60.0}, "south": {"p": 30.0, "q": 90.0}}))
    said = [claim.text for claim in (*wording.summary(two), *cell_section.claims(two))]
    assert said[0].startswith("In these two cells, p was faster per item than q")
    assert said[-1] == (
        "Arms are compared within a cell, on the same rig, and every number is a mean over these two cells (north and "
        "south), with equal weights of each object in each cell. Fewer than 5 are no sample of others: nothing here is "
        "claimed of another cell."
    )
    assert not any("further cell" in text for text in said)
    alike = result(joint({"north": {"p": 60.0, "q": 60.0}, "south": {"p": 90.0, "q": 90.0}}, blocks=4))
    assert wording.summary(alike)[0].text.startswith("Not resolved at this N in these two cells: p over q")


def test_from_five_cells_on_it_says_whether_an_order_holds_in_a_further_one():
    means = {f"c{i}": {"p": 20.0, "q": 60.0 + 3 * i} for i in range(5)}
    said = [claim.text for claim in cell_section.claims(result(joint(means)))]
    assert any(text.startswith("That holds in a further cell like these: time per item p over q 0.27") for text in said)
    mixed = {f"c{i}": {"p": 20.0, "q": 20.0 * ratio} for i, ratio in enumerate((1.0, 4.0, 0.8, 6.0, 1.6))}
    said = [claim.text for claim in cell_section.claims(result(joint(mixed, blocks=12)))]
    assert any(text.startswith("A further cell may show either order: time per item p over q") for text in said)


def test_a_pair_that_differs_by_cell_is_named_with_its_ratio_in_each():
    crossed = result(joint({"north": {"p": 20.0, "q": 80.0}, "south": {"p": 80.0, "q": 30.0}}, blocks=8))
    assert wording.summary(crossed)[0].text.startswith("In these two cells, p and q differ (time per item")
    assert "depends on the object or the cell" in wording.summary(crossed)[0].text
    text = cell_section.claims(crossed)[0].text
    assert text.startswith("How p and q compare depends on the cell: one leads here and the other there (time per item")
    assert "north 0." in text and "south 2." in text


def test_the_page_has_the_section_with_its_figure_and_numbers(tmp_path: Path):
    rows = joint({"north": {"p": 20.0, "q": 60.0}, "south": {"p": 30.0, "q": 90.0}})
    made = build_report(result(rows), rows, tmp_path / "out", title="two")
    page = made.html.read_text()
    assert 'id="by-cell"' in page and "Cell by cell" in page and "cup @ north" in page
    drawn = list(csv.DictReader(io.StringIO((made.figures / "by-cell.csv").read_text())))
    assert [(row["cell"], row["blocks"]) for row in drawn] == [("north", "6"), ("south", "6")]
    assert float(drawn[0]["log_rmst_ratio"]) == pytest.approx(-1.1, abs=0.4)


def test_a_table_of_one_cell_has_no_such_section():
    one = result(joint({"north": {"p": 20.0, "q": 60.0}}))
    assert cell_section.section(one) is None and cell_section.claims(one) == []
