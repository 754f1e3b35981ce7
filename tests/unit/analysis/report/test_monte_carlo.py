"""Beside every p and power that random draws gave stands its Monte-Carlo error: in JSON, on the page, as typed."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from labctl import cli
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.planning.simulation import MEASURES
from labctl.analysis.report import figures, success_curves
from labctl.analysis.results import Plain
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_test
from labctl.analysis.survival.verdicts import holm, holm_errors

TABLE = Path(__file__).parents[1] / "report_table.csv"
DRAWS = 99
IS_P = re.compile(r"(^|_)p(_|$)|^logrank_stratified_permutation$")
BY_FORMULA = {"p_cluster", "logrank_stratified_cluster"}
SAID = re.compile(r"\bp (=|<) [0-9.]+( ± [0-9.]+)?")
NUMBER = re.compile(r"(?<![<\d.] )\b[01]\.\d+")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that fills every section with a p: sessions, sides, blocks, a person who helped, and a reference."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        number = int(row["block"].removeprefix("b"))
        helped = number == 1 and row["arm"] == "policy-a"
        row |= {"session": f"s{number % 3}", "tote_side": "LR"[number % 2], "camera_side": "LR"[number // 2 % 2]}
        row |= {"interventions": str(int(helped))}
    path = tmp_path_factory.mktemp("table") / "operations.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def report(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    patch = pytest.MonkeyPatch()
    for name in ("curve_figures", "pp_figures"):
        patch.setattr(success_curves, name, lambda *_: [])
    patch.setattr(figures, "hrt_figure", lambda *_: None)
    out = tmp_path_factory.mktemp("report") / "out"
    words = ["--reference", "human", "--margin", "1.5", "--boot", str(DRAWS), "--perm", str(DRAWS)]
    assert cli.call(["report", str(table), "--out", str(out), *words]) == 0
    patch.undo()
    return out


def found(value: Plain, where: str = "") -> Iterator[tuple[str, str, dict[str, Plain]]]:
    """Every key of a p that is not null, with its place and the object it stands in."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if IS_P.search(key) and not key.endswith("_error") and inner is not None:
                yield f"{where}.{key}", key, value
            yield from found(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from found(inner, f"{where}[{i}]")


def test_every_p_in_json_has_its_error_beside_it(report: Path) -> None:
    places: set[str] = set()
    for where, key, beside in found(json.loads((report / "report.json").read_text(encoding="utf-8"))):
        if key in BY_FORMULA:
            continue
        p, error = beside[key], beside[f"{key}_error"]
        places.add(re.sub(r"\[\d+\]", "", where))
        if isinstance(p, dict):
            assert isinstance(error, dict) and set(error) == set(p), where
            told = [(name, p[name], error[name]) for name in p if p[name] is not None]
        else:
            told = [(key, p, error)]
        for name, value, off in told:
            assert isinstance(value, float | int) and isinstance(off, float | int), (where, name)
            drawn = name != "logrank_cluster"
            # of B draws a share is off by sqrt(p (1 - p) / B), and at most by half of 1 / sqrt(B), but for Holm's steps
            assert (0 < off <= 6 * 0.5 / DRAWS**0.5) if drawn and value < 1 else off >= 0, (where, name, value, off)
    assert places >= {
        ".result.pairs.p", ".result.pairs.p_holm", ".result.pairs.moved_p", ".result.pairs.by_object.p",
        ".result.pairs.margin.p", ".result.pairs.margin.p_holm", ".supplement.pairs.moved.p",
        ".supplement.pairs.object_p", ".supplement.pairs.logrank_stratified_permutation", ".supplement.arms.trend.p",
        ".supplement.arms.sessions.p", ".supplement.spatial.sides.p", ".counting.repeated.pairs.p_holm",
    }  # fmt: skip


class Cells(HTMLParser):
    """Every table of a page as rows of cells, the headings first."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("th", "td") and self.tables:
            self._in = tag
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in:
            self.tables[-1][-1][-1] += data


def test_every_p_on_the_page_has_its_error_beside_it(report: Path) -> None:
    html = (report / "report.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", re.sub(r"<(style|svg).*?</\1>", "", html, flags=re.DOTALL)))
    said = [match for match in SAID.finditer(text) if "alpha" not in match[0]]
    assert len(said) >= 2 and all(match[2] or match[1] == "<" or match[0] == "p = 1.00" for match in said), said
    parsed = Cells()
    parsed.feed(html)
    seen = 0
    for rows in parsed.tables:
        heads = [head.strip() for head in rows[0]]
        for i, head in enumerate(heads):
            in_brackets = any(re.search(r"\([01]\.\d+( ±.*)?\)", row[i]) for row in rows[1:] if len(row) > i)
            if not (re.search(r"(^|\s)p($|\s)", head) or in_brackets) or "robust p" in head or "clustered" in head:
                continue
            for row in rows[1:]:
                cell = row[i] if len(row) > i else ""
                if NUMBER.search(cell) and "<" not in cell and "1.00" not in cell:
                    seen += 1
                    assert "±" in cell, (head, row)
    assert seen > 50


def test_analyze_as_typed_has_the_error_beside_every_p(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(table), "--reference", "human", "--margin", "1.5", "--boot", str(DRAWS), "--perm", str(DRAWS)]
    assert cli.call(["analyze", *words]) == 0
    out = capsys.readouterr().out
    pairs = [line for line in out.splitlines() if " vs " in line]
    assert len(pairs) == 6 and all(re.search(r"(± [0-9.]+|1\.00)\s*$", line) for line in pairs)
    assert all(match[2] or match[1] == "<" or match[0] == "p = 1.00" for match in SAID.finditer(out))
    assert "± behind a p: its Monte-Carlo error" in out


@pytest.mark.thorough
def test_every_simulated_power_as_typed_has_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    pilot = tmp_path / "pilot.csv"
    kept = [line for line in lines[1:] if ",towels," in line and ("policy-a" in line or "policy-b" in line)]
    pilot.write_text("\n".join([lines[0], *kept]), encoding="utf-8")
    words = ["power", "--pilot", str(pilot), "--n", "2,4", "--runs", "20", "--perm", "99"]
    assert cli.call([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for pair in told["pairs"]:
        for row in (*pair["power"], *pair["assurance"]):
            assert row["error"] == share_error(row["power"], 20) > 0
    assert cli.call(words) == 0
    out = capsys.readouterr().out
    powers = [line for line in out.splitlines() if re.match(r"  (items moved|RMST ratio|UPH|KS|family)", line)]
    shares = [line for line in powers if " s, x " not in line and "beyond reach" not in line]
    for line in shares:
        assert len(re.findall(r"[01]?\.\d\d\+-\.\d\d", line)) == 4, line  # two sizes, power and assurance of each
    assert len(shares) == len(MEASURES)
    assert all(re.search(r"\[.*\]", line) for line in powers if " s, x " in line)


def test_the_error_is_how_far_other_seeds_are_off() -> None:
    law = Distribution(40.0, items=3, budget_s=200.0)
    a, b = (
        [simulate(law.slower(f), 12, np.random.default_rng([3, i]), arm=arm)]
        for i, (arm, f) in enumerate((("a", 1), ("b", 1.3)))
    )
    pair = pair_of(a, b, 200_000_000_000)
    tests = [permutation_test(pair, seed, 99) for seed in range(150)]
    for name in ("uph", "ks_macro"):
        drawn = np.array([test.p[name] for test in tests], dtype=float)
        assert drawn.std() == pytest.approx(np.mean([test.error[name] or 0.0 for test in tests]), rel=0.3)
    family = np.array([test.family for test in tests], dtype=float)
    assert family.std() == pytest.approx(np.mean([test.family_error or 0.0 for test in tests]), rel=0.3)


def test_listed_relabellings_have_no_error_and_holm_multiplies_it() -> None:
    law = Distribution(40.0, items=3, budget_s=200.0)
    a, b = ([simulate(law, 4, np.random.default_rng([4, i]), arm=arm)] for i, arm in enumerate("ab"))
    test = permutation_test(pair_of(a, b, 200_000_000_000), 0, 999)
    assert set(test.error.values()) == {0.0} and test.family_error == 0.0
    p, error = {"x": 0.01, "y": 0.02, "z": 0.9}, {"x": 0.001, "y": 0.002, "z": 0.003}
    assert holm(p) == {"x": 0.03, "y": 0.04, "z": 0.9}
    assert holm_errors(p, error) == {"x": 0.003, "y": 0.004, "z": 0.003}
    assert holm_errors({"x": 0.5, "y": 0.9}, {"x": 0.001, "y": 0.003}) == {"x": pytest.approx(0.002), "y": 0.002}
