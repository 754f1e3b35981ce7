"""The studies of the calibration page by a Dask cluster's workers: the same figures and page as here, whoever is
killed, and what was finished is not done again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.machine.cluster import started
from support.statistics import calibration_page, killed_studies
from support.statistics.calibration_page import main
from support.statistics.studies import STUDIES

from labctl.errors import WorkersLost


@pytest.fixture(autouse=True, scope="module")
def dask() -> None:
    """Imported by the worker that runs these tests, not by each that collects them."""
    pytest.importorskip("distributed")


pytestmark = [pytest.mark.thorough, pytest.mark.real_time]
QUICK = ("unequal-budgets", "looks-by-the-test")
PAGE = "".join(f"## {name}\n<!-- study {name} -->\n<!-- end -->\n" for name in QUICK)


class Made:
    """A page of a few studies with its figures, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.page, self.store = folder / "page.md", folder / killed_studies.FIGURES
        self.page.write_text(PAGE)

    def by(self, *words: str) -> None:
        main(["--quick", *words, "--page", str(self.page), "--store", str(self.store)])

    def bytes(self) -> tuple[str, str]:
        """Page and figures, but for what time they took."""
        figures = json.loads(self.store.read_text())
        for found in figures.values():
            found["cpu_s"] = 0
        self.store.write_text(json.dumps(figures))
        main(["--only-page", "--page", str(self.page), "--store", str(self.store)])
        return self.page.read_text(), self.store.read_text()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two studies that take no second, of a commit that does not change meanwhile."""
    monkeypatch.setattr(calibration_page, "STUDIES", {name: STUDIES[name] for name in QUICK})
    monkeypatch.setattr(calibration_page, "commit", lambda: "")
    monkeypatch.setattr(calibration_page, "measured", killed_studies.measured_at_no_commit)


@pytest.fixture
def here(tmp_path: Path) -> Made:
    """What is made here, one study after the other."""
    made = Made(tmp_path / "here")
    made.by()
    return made


def test_studies_on_a_cluster_have_the_bytes_of_those_here_and_say_how_far_they_are(
    here: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    made, two = Made(tmp_path / "there"), Made(tmp_path / "two")
    with started(tmp_path) as running:
        made.by("--cluster", running.address)
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == list(calibration_page.STUDIES)
    two.by("--workers", "2")
    assert made.bytes() == here.bytes() == two.bytes()


def test_a_worker_that_is_killed_in_mid_study_changes_no_figure(
    here: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path / "there")
    monkeypatch.setenv(killed_studies.PLACE, str(made.store.parent))
    monkeypatch.setattr(calibration_page, "measured", killed_studies.measured_killed_once)
    with started(tmp_path) as running:
        made.by("--cluster", running.address)
    assert (made.store.parent / killed_studies.KILLED).exists() and made.bytes() == here.bytes()


def test_what_came_back_before_the_scheduler_went_away_is_not_done_again(
    here: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Made(tmp_path / "there")
    monkeypatch.setenv(killed_studies.PLACE, str(made.store.parent))
    with started(tmp_path, workers=1) as running:
        (made.store.parent / killed_studies.SCHEDULER).write_text(str(running.scheduler))
        monkeypatch.setattr(calibration_page, "measured", killed_studies.measured_without_scheduler)
        with pytest.raises(WorkersLost, match="the scheduler went away; 1 of 2 pieces came back"):
            made.by("--cluster", running.address)
    first, *others = calibration_page.STUDIES
    assert list(json.loads(made.store.read_text())) == [first]
    monkeypatch.setattr(calibration_page, "measured", killed_studies.measured_at_no_commit)
    capsys.readouterr()
    made.by()
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == others
    assert made.bytes() == here.bytes()
