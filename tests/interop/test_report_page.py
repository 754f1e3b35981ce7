"""The report in Chromium: its first table is read whole on a desktop, however wide its intervals are, and on a phone.

Opt-in: needs Chromium. pytest -m interop tests/interop/test_report_page.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from support.screens.browser import browsing

from labctl.analysis.report import page as report

pytestmark = pytest.mark.interop
CASE = Path(__file__).parents[1] / "unit" / "analysis"
FITS = "document.querySelector('.main').scrollWidth <= document.querySelector('.main').clientWidth"


@pytest.mark.parametrize("width", [390, 1200, 1600])
def test_the_first_table_is_whole_however_wide_its_intervals_are(tmp_path: Path, width: int) -> None:
    case = json.loads((CASE / "report_case.json").read_text("utf-8"))
    with (CASE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for arm in case["result"]["arms"]:
        arm.update(rmst=100.44, rmst_ci=[10.11, 119.99], hrt=12.345, hrt_ci=[1.2345, 123.456], moved_ci=[0.123, 0.999])
    page, _ = report.build_page(case["result"], rows, lab=case["lab"], title="wide")
    html = report.render_html(page)
    (tmp_path / "report.html").write_text(html, "utf-8")
    assert "12345.6]" in html, "as wide as intervals come"
    with browsing(width, 2000) as tab:
        tab.open((tmp_path / "report.html").as_uri())
        tab.rest(0.3)
        assert tab.value("document.querySelectorAll('.main tbody tr').length") == len(case["result"]["arms"])
        assert tab.value(FITS), "nothing of it is cut off or has to be scrolled to"
        assert tab.value("document.documentElement.scrollWidth") <= width


def test_on_a_phone_it_is_no_longer_than_what_is_read_of_it_however_many_episodes_there_are(tmp_path: Path) -> None:
    """It was 25,000 px long (issue 18.19); of four arms it is 11,340 as it opens. Five times the episodes
    may not make it longer: what has a line for each of them is folded, or on a page of its own.
    """
    case = json.loads((CASE / "report_case.json").read_text("utf-8"))
    with (CASE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    heights = []
    for times in (1, 5):
        many = [{**row, "episode": f"{row['episode']}-{n}"} for n in range(times) for row in rows]
        page, _ = report.build_page(case["result"], many, lab=case["lab"], title="long")
        (tmp_path / "report.html").write_text(report.render_html(page), "utf-8")
        with browsing(390, 844) as tab:
            tab.open((tmp_path / "report.html").as_uri())
            tab.rest(0.3)
            heights.append(tab.value("document.documentElement.scrollHeight"))
            assert tab.value("document.documentElement.scrollWidth") <= 390
    assert all(height <= 15_000 for height in heights) and heights[1] <= 1.1 * heights[0]
