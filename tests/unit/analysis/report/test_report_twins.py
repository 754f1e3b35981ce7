"""The Markdown says what the HTML says: every heading, sentence, list and cell of the page, only drawings left out."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from labctl.analysis.episodes.supplement import supplement
from labctl.analysis.report import figures, success_curves
from labctl.analysis.report import page as report
from labctl.analysis.table import table_from_rows

HERE = Path(__file__).parents[1]
BLOCKS = {"h1", "h2", "h3", "p", "li", "dt", "dd", "td", "th", "figcaption", "footer"}
DRAWN = {"style", "svg", "nav", "title"}  # no words, or the page's own way to find its sections
SPREAD = {"p50": 0.0801, "p95": 0.125}
ANSWERS = {
    "arm": "policy-a", "episodes": 24, "questions": 1200, "late": 3, "unanswered": 1, "answers_per_s": 1.84,
    "answer_s": SPREAD, "command_s": SPREAD, "picture_s": None, "server_s": SPREAD, "rest_s": SPREAD, "load_s": SPREAD,
    "warm_s": SPREAD, "told": {"gpu_memory_mb": 7100.0},
}  # fmt: skip
MEASURE = {"value": 1.0, "ci": [0.5, 1.5], "episodes": 3}
STRESS = {
    "arm": "policy-a", "episodes": 3, "latency_worst_p95_s": 0.3,
    **dict.fromkeys(("inference_hz", "latency_s", "roughness_rad", "stability"), MEASURE),
}  # fmt: skip
CLIP = {"arm": "policy-a", "kind": "worst", "episode": "e-1", "why": "0 of 4 moved", "camera": "top", "speed": 12}
TOUCHED = {
    "arm": "policy-a", "episodes": 24, "touched": 2, "interventions": 3, "by_kind": {"hand_in_scene": 3},
    "per_hour": 1.5, "touched_s": 12.0, "robot_s": 900.0, "moved": 40, "unaided": 38,
}  # fmt: skip
FILES = {"clips/00-worst.mp4": b"film"}
PRACTICE = {
    "rule": {"stated": "by labctl's default", "last": 5, "within": 0.1},
    "people": [{"person": "p07", "episodes": 2, "rates": [270.0, 360.0], "plateau": None, "rate_at_end": 315.0}],
}


class Blocks(HTMLParser):
    """(kind, text) of every block with words, in order; what stands inside a block belongs to it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open: list[str] = []
        self._skipped = 0
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        drawn = tag in DRAWN or dict(attrs).get("class") in ("drawn", "legend", "up")
        if self._skipped or drawn:
            self._skipped += tag not in ("link", "meta", "use", "path")
        elif tag in BLOCKS:
            self._open.append(tag)
            self._text = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Nothing is inside it."""

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif self._open and tag == self._open[-1]:
            self.found.append((self._open.pop(), plain(self._text)))
            self._text = ""

    def handle_data(self, data: str) -> None:
        self._text += "" if self._skipped else data


def plain(text: str) -> str:
    """Words alone: no markup of either kind, one space between."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text.replace("&lt;", "<").replace("\\|", "|"))
    return " ".join(re.sub(r"[*`]", "", text).split())


def headings(markdown: str) -> list[str]:
    return [plain(line.lstrip("# ")) for line in markdown.splitlines() if re.match(r"#{1,3} ", line)]


@pytest.fixture(scope="module")
def case() -> dict[str, Any]:
    return json.loads((HERE / "report_case.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    with (HERE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves matplotlib out where only words are looked at."""
    for name in ("curve_figures", "pp_figures"):
        monkeypatch.setattr(success_curves, name, lambda *_: [])
    monkeypatch.setattr(figures, "hrt_figure", lambda *_: None)


def full(case: dict[str, Any]) -> dict[str, Any]:
    """A lab that has something for every section."""
    episodes = [{**case["lab"]["episodes"][0], "video": ["../video/e-001/wrist.mp4"]}, *case["lab"]["episodes"][1:]]
    return {
        **case["lab"],
        "episodes": episodes,
        "answer_times": [ANSWERS],
        "stress": {"rate_hz": 10.0, "arms": [STRESS], "episodes": []},
        "interventions": [TOUCHED],
        "practice": PRACTICE,
        "clips": [{**CLIP, "file": "clips/00-worst.mp4"}],
        "notes": ["linked to first"],
    }


def twins(out: Path, result: Any, rows: Any, lab: Any, **given: Any) -> tuple[list[tuple[str, str]], str]:
    paths = report.build_report(result, rows, out, lab=lab, title="Bin to bin", **given)
    page = Blocks()
    page.feed(paths.html.read_text(encoding="utf-8"))
    assert not page._open and not page._skipped, "every block was closed"
    return page.found, paths.markdown.read_text(encoding="utf-8")


def assert_twins(blocks: list[tuple[str, str]], markdown: str) -> None:
    told = [text for kind, text in blocks if kind in ("h1", "h2", "h3")]
    assert headings(markdown) == told, "the same headings in the same order"
    words = plain(re.sub(r"^[#-]+ ", "", markdown, flags=re.MULTILINE))
    missing = [(kind, text) for kind, text in blocks if text and text not in words]
    assert missing == []


@pytest.mark.thorough
def test_every_word_of_a_full_report_stands_in_both(case, rows, tmp_path):
    more = supplement(table_from_rows(rows, source="t"), case["result"], perm=19)
    blocks, markdown = twins(tmp_path / "r", case["result"], rows, full(case), files=lambda: FILES, supplement=more)
    assert_twins(blocks, markdown)
    told = {text for kind, text in blocks if kind in ("h2", "h3")}
    assert told >= {
        "How fast each arm answered",
        "Stress measures",
        "What servers report about themselves",
        "Interventions",
        "The human reference, person by person",
        "Practice",
        "Clips",
        "Episodes",
        "Notes",
    }
    assert "[clip](clips/00-worst.mp4)" in markdown and "[wrist](../video/e-001/wrist.mp4)" in markdown
    answered = json.loads((tmp_path / "r" / "report.json").read_text(encoding="utf-8"))["lab"]["answer_times"]
    assert answered == [ANSWERS], "and the JSON has the numbers behind them"


@pytest.mark.parametrize("left_out", ["How fast", "| policy-a |", "person by person", "### Sessions"])
def test_a_line_that_the_markdown_lacks_is_found(case, rows, tmp_path, undrawn, left_out):
    """A control of the comparison itself."""
    blocks, markdown = twins(tmp_path / "r", case["result"], rows, full(case), files=lambda: FILES)
    assert_twins(blocks, markdown)
    less = "\n".join(line for line in markdown.splitlines() if left_out not in line)
    with pytest.raises(AssertionError):
        assert_twins(blocks, less)


@pytest.mark.parametrize("without", ["reference", "lab", "curves", "rows"])
def test_what_is_not_there_is_said_in_both_in_the_same_words(case, rows, tmp_path, undrawn, without):
    result = case["result"]
    if without == "reference":
        result = {**result, "reference": None}
    if without == "curves":
        result = {**result, "cells": [{**cell, "curve": None} for cell in result["cells"]], "pairs": []}
    lab = None if without == "lab" else case["lab"]
    assert_twins(*twins(tmp_path / "r", result, [] if without == "rows" else rows, lab))
