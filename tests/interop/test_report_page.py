"""The report in Chromium: its first table is read whole on a desktop, however wide its intervals are, and on a phone;
the first column of a wide table, there and beside the episodes, stays in sight.

Opt-in: needs Chromium. pytest -m interop tests/interop/test_report_page.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from support.runs.live_campaign import wait_for
from support.screens.browser import Page, browsing

from labctl.analysis.report import page as report
from labctl.pages.episode_rows import Grid, render

pytestmark = pytest.mark.interop
CASE = Path(__file__).parents[1] / "unit" / "analysis"
FITS = "document.querySelector('.main').scrollWidth <= document.querySelector('.main').clientWidth"
SCROLLED = """(() => {
  const table = document.querySelector('TABLE'), box = table.closest('.box');
  const cells = table.querySelectorAll('tr:last-child > *');
  const left = (cell) => cell.getBoundingClientRect().left;
  const before = [left(cells[0]), left(cells[1])];
  box.scrollLeft = 120;
  const colour = getComputedStyle(cells[0]).backgroundColor;
  return [box.scrollLeft, left(cells[0]) - before[0], left(cells[1]) - before[1], colour];
})()"""


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
        wait_for("the page", lambda: tab.value("location.protocol + document.readyState") == "file:complete")
        assert tab.value("document.querySelectorAll('.main tbody tr').length") == len(case["result"]["arms"])
        assert tab.value(FITS), "nothing of it is cut off or has to be scrolled to"
        assert tab.value("document.documentElement.scrollWidth") <= width


def test_the_heads_of_its_first_table_stand_in_three_lines_on_a_desktop(tmp_path: Path) -> None:
    """Four, as they stood beside a column of whiskers, are 91 px of text at 13 px and its padding; three are 73."""
    case = json.loads((CASE / "report_case.json").read_text("utf-8"))
    with (CASE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    page, _ = report.build_page(case["result"], rows, lab=case["lab"], title="heads")
    (tmp_path / "report.html").write_text(report.render_html(page), "utf-8")
    with browsing(1280, 900) as tab:
        tab.open((tmp_path / "report.html").as_uri())
        wait_for("the page", lambda: tab.value("location.protocol + document.readyState") == "file:complete")
        assert tab.value("document.querySelectorAll('.main svg.whisker').length") > 0
        assert tab.value("document.querySelector('.main thead').getBoundingClientRect().height") <= 80


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
            wait_for("the page", lambda: tab.value("location.protocol + document.readyState") == "file:complete")
            heights.append(tab.value("document.documentElement.scrollHeight"))
            assert tab.value("document.documentElement.scrollWidth") <= 390
    assert all(height <= 15_000 for height in heights) and heights[1] <= 1.1 * heights[0]


def scrolled(page: Page, table: str) -> list[float | str]:
    """How far the table's box went, how far its first and its second cell did, px, and the first one's background."""
    return page.value(SCROLLED.replace("TABLE", table))


def test_the_first_column_of_a_table_beside_the_episodes_stays_in_sight(tmp_path: Path) -> None:
    wide = Grid("Pairs", [f"column {n}" for n in range(12)], [[f"a value of {n}" for n in range(12)]], "")
    (tmp_path / "page.html").write_bytes(render([], [], [wide]))
    with browsing(390, 844) as page:
        page.open((tmp_path / "page.html").as_uri())
        wait_for("the page", lambda: page.value("location.protocol + document.readyState") == "file:complete")
        assert scrolled(page, "table.grid tbody") == [120, 0, -120, "rgb(255, 255, 255)"]
        assert page.value("document.documentElement.scrollWidth") <= 390, "the box scrolls, not the page"


def test_the_first_column_of_a_reports_tables_stays_in_sight(tmp_path: Path) -> None:
    case = json.loads((CASE / "report_case.json").read_text("utf-8"))
    with (CASE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    page, _ = report.build_page(case["result"], rows, lab=case["lab"], title="wide")
    (tmp_path / "report.html").write_text(report.render_html(page), "utf-8")
    with browsing(390, 844) as tab:
        tab.open((tmp_path / "report.html").as_uri())
        wait_for("the page", lambda: tab.value("location.protocol + document.readyState") == "file:complete")
        tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        tab.value(
            "[...document.querySelectorAll('.box > table')].find((t) => !t.closest('.main') && "
            "t.closest('.box').scrollWidth > t.closest('.box').clientWidth + 130).id = 'wide'"
        )
        assert scrolled(tab, "#wide tbody") == [120, 0, -120, "rgb(255, 255, 255)"]
