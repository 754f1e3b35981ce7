"""One command runs the studies of the calibration page and writes its tables from the figures that it keeps."""

from __future__ import annotations

import json
import subprocess

import pytest
from support.statistics import calibration_page
from support.statistics.calibration_page import PAGE, PLACE, STORE, main, table, written
from support.statistics.studies import STUDIES


@pytest.fixture
def copied(tmp_path):
    """The page and a store without figures."""
    page, store = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text(PAGE.read_text())
    return page, store


def told(copied, *words: str) -> str:
    page, store = copied
    main([*words, "--page", str(page), "--store", str(store)])
    return page.read_text()


def test_a_quick_run_of_studies_writes_their_tables_and_keeps_what_made_them(copied, monkeypatch):
    monkeypatch.setattr(calibration_page, "commit", lambda: "0123abcd")
    page = told(copied, "--quick", "looks-by-the-test", "unequal-budgets")
    figures = json.loads(copied[1].read_text())
    assert set(figures) == {"looks-by-the-test", "unequal-budgets"}
    assert all(found["runs"] == 2 and found["commit"] == "0123abcd" for found in figures.values())
    for name, found in figures.items():
        assert table(name, found) in page
    assert "| refused | .0000 | 1.0000 | 1.0000 | 1.0000 |" in page, "unequal mixtures are, equal ones are not"
    others = [place[0] for place in PLACE.finditer(PAGE.read_text()) if place["name"] not in figures]
    assert all(other in page for other in others), "no other table has changed"


def test_what_has_its_figures_is_not_run_again_unless_it_is_named(copied, monkeypatch):
    told(copied, "--quick", "looks-by-the-test")
    ran = []
    monkeypatch.setattr(
        calibration_page,
        "measured",
        lambda name, runs: ran.append(name) or {"runs": 2, "first": 0, "commit": "", "cpu_s": 0, "columns": {}},
    )
    told(copied, "--quick")
    assert ran == [name for name in STUDIES if name != "looks-by-the-test"]


def test_the_page_says_what_the_figures_in_the_repository_say():
    assert written(PAGE.read_text(), json.loads(STORE.read_text())) == PAGE.read_text()


def test_every_study_has_its_place_on_the_page_once():
    places = [place["name"] for place in PLACE.finditer(PAGE.read_text())]
    assert sorted(places) == sorted(STUDIES)


def test_a_study_that_is_not_there_is_refused_by_name(copied, capsys):
    with pytest.raises(SystemExit):
        told(copied, "loks")
    assert "no study 'loks'; there are coverage, few-blocks, type-one" in capsys.readouterr().err


def test_figures_are_of_the_commit_alone_where_only_figures_and_page_differ(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "docs").mkdir()
    for name in ("docs/statistics-calibration.json", "docs/statistics-calibration.md", "code.py"):
        (tmp_path / name).write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(calibration_page, "ROOT", tmp_path)
    (tmp_path / "docs/statistics-calibration.json").write_text("2")
    (tmp_path / "docs/statistics-calibration.md").write_text("2")
    assert calibration_page.commit().isalnum()
    (tmp_path / "code.py").write_text("2")
    assert calibration_page.commit().endswith("+")
