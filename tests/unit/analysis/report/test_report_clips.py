"""A report carries its clips inside the page and beside it, and says by which rule each was chosen."""

import base64
import json

import pytest

from labctl.analysis.report import page as report
from labctl.errors import ReportError

ASKED = {"tau": 60, "seed": 0, "reference": None, "alpha": 0.05, "family": ["uph"]}
RESULT = {"schema": "labctl.analysis/1", **ASKED, "cells": [], "arms": [], "pairs": []}
CLIP = b"not really a film"
LAB = {
    "clips": [
        {"arm": "policy-a", "kind": "worst", "episode": "e-1", "why": "0 of 4 moved", "camera": "top", "speed": 12,
         "file": "clips/00-worst-e-1.mp4"},
        {"arm": "policy-a", "kind": "stop", "episode": "e-2", "why": "1 of 4 moved", "camera": "top", "speed": 1,
         "file": "clips/01-stop-e-2.mp4"},
    ]
}  # fmt: skip
FILES = {clip["file"]: CLIP for clip in LAB["clips"]}


def test_clips_are_in_the_page_and_beside_it(tmp_path):
    paths = report.build_report(RESULT, [], tmp_path / "out", lab=LAB, title="clips", files=lambda: FILES)
    page = paths.html.read_text()
    assert page.count(f'src="data:video/mp4;base64,{base64.b64encode(CLIP).decode()}"') == 2
    assert "0 of 4 moved. e-1, 12 times the pace." in page and "e-2, as fast as it happened." in page
    assert "media-src data:" in page, "the page's own rule lets a browser play them"
    assert 'href="#clips"' in page and "Chosen by rule" in page
    assert (tmp_path / "out/clips/00-worst-e-1.mp4").read_bytes() == CLIP
    assert json.loads(paths.json.read_text())["lab"]["clips"] == LAB["clips"]


def test_the_rule_that_a_page_states_is_the_one_by_which_they_were_chosen(tmp_path):
    """`labctl.reporting.clips.choice`: an operator's end is no stop where the robot's safety ended another episode, and
    of tasks that are not counted in items scores are compared.
    """
    page = report.build_report(RESULT, [], tmp_path / "out", lab=LAB, title="clips", files=lambda: FILES).html
    said = " ".join(page.read_text().split())
    assert "a safety stop; without one, by an interlock; without one, by the operator" in said
    assert "not counted in items the score stands for items moved" in said


def test_a_report_without_clips_has_no_such_section(tmp_path):
    page = report.build_report(RESULT, [], tmp_path / "out", lab={}, title="none").html.read_text()
    assert "<video" not in page and "#clips" not in page


def test_a_report_with_clips_is_replaced_and_foreign_files_are_not(tmp_path):
    out = tmp_path / "out"
    report.build_report(RESULT, [], out, lab=LAB, title="first", files=lambda: FILES)
    report.build_report(RESULT, [], out, lab={}, title="second")
    assert not (out / "clips").exists()
    (out / "clips").mkdir()
    (out / "clips/notes.txt").write_text("mine")
    with pytest.raises(ReportError, match=r"clips/notes\.txt"):
        report.build_report(RESULT, [], out, title="third")
