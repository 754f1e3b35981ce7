"""Claims about the report of an episodes table: what stands on it, in which order, and that no sentence outruns its
interval.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.statistics.gallery import ROOT, table_of_everything

from labctl import cli
from labctl.analysis.episodes_report import claims, page
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.analyze import analyze
from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.episodes_table.result import EpisodesResult
from labctl.analysis.episodes_table.table import table_from_rows
from labctl.analysis.numerals import estimate
from labctl.analysis.report.figures import looks
from labctl.errors import InputError

QUICK = Plan(reference="broad", boot=199, perm=199)
PLAIN = "block,arm,success\n" + "".join(f"{block},{arm},{int(arm == 'x')}\n" for block in range(12) for arm in "xy")


@pytest.fixture(scope="module")
def result() -> EpisodesResult:
    return analyze(table_of_everything(sets=12), QUICK)


@pytest.fixture(scope="module")
def report(result: EpisodesResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page.build_report(result, tmp_path_factory.mktemp("out") / "report", title="all").folder


def test_a_table_with_every_column_has_every_section_and_a_figure_of_each(report: Path) -> None:
    html = (report / "report.html").read_text(encoding="utf-8")
    ids = re.findall(r'<section id="([^"]+)"', html)
    assert len(ids) == len({*ids})
    of_table = (
        "arms pairs stages times tasks axes levels retention tags preference order site evaluator monitoring enough"
    )
    assert ids[: len(of_table.split())] == of_table.split()
    names = {path.stem for path in (report / "figures").glob("*.svg")}
    assert names == {path.stem for path in (report / "figures").glob("*.csv")}
    assert {
        "means",
        "ranks",
        "score-and-success",
        "win-matrix",
        "funnel",
        "stage-3",
        "time-to-success",
        "rmst",
    } <= names
    assert {"tasks", "axes", "categories", "stress-latency", "stress-spatial", "retention", "tags"} <= names
    assert {"preference", "places", "by-site", "monitoring", "enough"} <= names


def test_a_section_is_absent_where_the_table_has_not_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(PLAIN, encoding="utf-8")
    done = CliRunner().invoke(
        cli.group, ["report", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r"), "--boot", "99", "--perm", "99"]
    )
    assert done.exit_code == 0, done.output
    html = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<section id="([^"]+)"', html) == [
        *("arms", "pairs", "monitoring", "enough", "limits", "provenance", "methods")
    ]  # fmt: skip
    assert "Score" not in (tmp_path / "r" / "report.md").read_text(encoding="utf-8").split("## What the words")[0]


def test_the_record_holds_the_numbers_that_the_page_prints_and_the_same_table_gives_the_same_bytes(
    result: EpisodesResult, report: Path, tmp_path: Path
) -> None:
    record = json.loads((report / "report.json").read_text(encoding="utf-8"))
    assert record["schema"] == "labctl.report/1" and record["result"] == json.loads(json.dumps(result))
    html = (report / "report.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", html)
    for arm in result["arms"]:
        assert f"{arm['score']:.3f} [{arm['score_ci'][0]:.3f}, {arm['score_ci'][1]:.3f}]" in text
    again = page.build_report(result, tmp_path / "again", title="all").folder
    for path in report.rglob("*"):
        if path.is_file():
            assert (again / path.relative_to(report)).read_bytes() == path.read_bytes(), path.name


def test_an_effect_with_its_interval_stands_before_any_p(result: EpisodesResult, report: Path) -> None:
    for claim in claims.claims(result):
        if " p " in claim.text:
            assert re.search(r"\d \[[−0-9.]+, [−0-9.]+\]", claim.text.split(" p ")[0]), claim.text
    headings = re.findall(r"^\| Pair \|.*$", (report / "report.md").read_text(encoding="utf-8"), re.MULTILINE)
    for line in headings:
        cells = line.split("|")
        p = [i for i, cell in enumerate(cells) if re.match(r" p\b", cell)]
        intervals = [i for i, cell in enumerate(cells) if "%" in cell and "difference" in cell.lower()]
        assert not p or not intervals or min(intervals) < min(p)


def test_a_cell_says_what_the_markdown_says_and_says_it_once(report: Path) -> None:
    html, text = ((report / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    shown = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)]
    of_stages = [cell for cell in shown if re.search(r"\] \(\d+\), ", cell)]
    assert of_stages and all(f"| {cell} |" in text for cell in of_stages)


def test_a_radar_stands_beside_the_table_of_families_and_never_without_or_before_it(
    result: EpisodesResult, report: Path
) -> None:
    html, text = ((report / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    for shown, table, picture in ((html, "Families by arms", 'aria-label="Families"'), (text, "### Families", "![Fam")):
        assert 0 <= shown.index(table) < shown.index("Where it breaks") < shown.index(picture)
    for one in result["families"]:
        assert estimate(one["score"], one["ci"], digits=2) in text
    styles = looks([arm["arm"] for arm in result["arms"]], None)
    (radar,) = next(s for s in page.sections_of(result, styles) if s.id == "levels").beside
    rows = [line.split(",") for line in radar.csv.splitlines()[1:]]
    by = {(one["arm"], one["family"]): one["score"] for one in result["families"]}
    assert {(arm, family): float(value) for arm, family, value, *_ in rows} == pytest.approx(by)
    two = [one for one in result["families"] if one["family"] != "light"]
    section = next(s for s in page.sections_of({**result, "families": two}, styles) if s.id == "levels")
    assert section.tables[0][0] == "Families by arms" and not section.beside, "a radar takes three spokes"


def test_a_direction_is_claimed_only_through_an_adjusted_interval_that_excludes_0() -> None:
    """Of 60 tables of two arms that differ by little, the sentence says an order exactly where the interval does."""
    said = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = [
            {"block": block, "arm": arm, "score": float(np.clip(0.5 + lead + 0.2 * rng.standard_normal(), 0, 1))}
            for block in range(20)
            for arm, lead in (("x", 0.08), ("y", 0.0))
        ]
        result = analyze(table_from_rows(rows), Plan(boot=199, perm=199))
        (pair,), (claim,) = result["pairs"], claims.claims(result)
        low, high = pair["adjusted_ci"] or (-1.0, 1.0)
        ordered = "scored higher" in claim.text
        said += ordered
        assert not ordered or ((low > 0) == claim.text.startswith("x scored") and not low <= 0 <= high)
        assert ordered == (pair["verdict"] == "better") == (claim.standing == "resolved")
    assert 0 < said < 60


@pytest.mark.parametrize(("alpha", "said"), [(0.05, "95"), (0.025, "97.5"), (0.005, "99.5"), (0.2, "80")])
def test_the_level_that_the_report_says_is_that_of_its_intervals(
    result: EpisodesResult, alpha: float, said: str
) -> None:
    assert claims.level({**result, "alpha": alpha}) == said
    assert words.level({**result, "alpha": alpha}) == f"{said} %"


def test_turning_the_arms_of_a_pair_round_turns_its_sentence_round(result: EpisodesResult) -> None:
    pair = next(p for p in result["pairs"] if p["adjusted_ci"])
    low, high = pair["adjusted_ci"] or (0.0, 0.0)
    forth, back = claims.effect(pair, result, pair["a"]), claims.effect(pair, result, pair["b"])
    assert forth == f"{pair['score_difference']:.3f} [{low:.3f}, {high:.3f}]".replace("-", "−")
    assert back == f"{-(pair['score_difference'] or 0):.3f} [{-high:.3f}, {-low:.3f}]".replace("-", "−")


def test_an_axis_is_named_only_where_its_adjusted_interval_excludes_no_drop(
    result: EpisodesResult, report: Path
) -> None:
    text = (report / "report.md").read_text(encoding="utf-8")
    clear = {(d["arm"], d["axis"]) for d in result["axes"] if d["axis"] and d["ci"] and d["ci"][0] > 0}
    assert ("narrow", "S-LANG") in clear
    for arm in ("broad", "narrow", "slow"):
        (line,) = (own for own in text.splitlines() if re.match(rf"{arm}( drops with|: no axis)", own))
        named = set(re.findall(r"(?:with|and|,) ([A-Z+-]+) by", line.split(";")[0]))
        assert named == {axis for own, axis in clear if own == arm}


def test_options_of_an_operations_table_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(PLAIN, encoding="utf-8")
    done = CliRunner().invoke(
        cli.group, ["report", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r"), "--margin", "1.2"]
    )
    assert done.exit_code != 0 and not (tmp_path / "r").exists()
    assert isinstance(done.exception, InputError) and "are for an operations table" in str(done.exception)


def test_more_than_six_arms_are_drawn_apart() -> None:

    found = looks([f"arm {i}" for i in range(12)], None)
    assert all(a != b for a, b in itertools.combinations(found.values(), 2))


def test_the_gallery_shows_every_figure_that_a_report_can_have(report: Path) -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for path in (report / "figures").glob("*.svg"):
        assert f"(gallery/made-{path.name})" in gallery, "make gallery"
