"""Exports on a real Dask scheduler and workers: the same bytes as here, whoever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machine.cluster import Cluster, started, write, write_killed_once, write_without_scheduler

from labctl.errors import Exit, Unreachable, WorkersLost
from labctl.exports.workers import Job, write_all
from labctl.exports.writing import Grid, Request, export_campaign
from labctl.pieces import HERE, Place


@pytest.fixture(autouse=True, scope="module")
def dask() -> None:
    """Imported by the worker that runs these tests, not by each that collects them."""
    pytest.importorskip("distributed")


pytestmark = [pytest.mark.thorough, pytest.mark.real_time]
NAMES = ["aa", "bbb", "cc", "d", "ee", "f"]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers, which none of these tests kills."""
    with started(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("form", ["mcap", "parquet", "lerobot-v3", "npz"])
def test_an_export_has_the_same_bytes_by_one_process_by_two_and_on_a_cluster(
    form: str, unblinded: Path, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the workers have another working folder
    grid = Grid(fps=10, max_error_ms=1000.0) if form.startswith("lerobot") else Grid()
    made = {}
    for place in (Place(workers=1), Place(workers=2), Place(cluster=cluster.address)):
        out, said = Path(f"{place.workers}"), list[str]()
        export_campaign(unblinded, Request(form, out, grid=grid, place=place), said.append)
        assert any("1/" in line for line in said), "it says how far it is"
        made[place] = content(out)
    assert len({str(sorted(files)) for files in made.values()}) == 1
    first, *others = made.values()
    assert all(other == first for other in others)


def test_a_worker_that_is_killed_in_mid_work_costs_nothing(tmp_path: Path) -> None:
    """kill -9 with half a file written: another worker writes it anew, and what comes out is the same."""
    (tmp_path / "cluster").mkdir()
    (tmp_path / "out").mkdir()
    jobs = [Job(f"{name}.txt", (name, tmp_path / "killed")) for name in NAMES]
    with started(tmp_path / "cluster") as running:
        place = Place(cluster=running.address)
        assert list(write_all(tmp_path / "out", jobs, write_killed_once, 1, place)) == [len(name) for name in NAMES]
    assert {path.stem: path.read_text() for path in (tmp_path / "out").glob("*.txt")} == {n: n for n in NAMES}


def test_a_scheduler_that_goes_away_ends_in_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "out").mkdir()
    with started(tmp_path / "cluster", workers=1) as running:
        jobs = [Job(f"{name}.txt", (name, running.scheduler)) for name in NAMES]
        with pytest.raises(WorkersLost, match=r"the scheduler went away; \d of 6 pieces came back") as lost:
            list(write_all(tmp_path / "out", jobs, write_without_scheduler, 1, Place(cluster=running.address)))
    assert lost.value.exit_code == Exit.UNAVAILABLE and "\n" not in str(lost.value)
    (tmp_path / "out" / "aa.txt").write_text("??")
    again = [Job(f"{name}.txt", (name,)) for name in NAMES]
    assert list(write_all(tmp_path / "out", again, write, 1, HERE)) == [len(name) for name in NAMES]
    assert (tmp_path / "out" / "aa.txt").read_text() == "??", "what was finished on the cluster is not done again"


def test_the_last_worker_that_goes_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "out").mkdir()
    monkeypatch.setattr("labctl.pieces.EMPTY_S", 4.0)
    with started(tmp_path / "cluster", workers=1) as running:
        jobs = [Job(f"{name}.txt", (name, tmp_path / "killed")) for name in NAMES]
        with pytest.raises(WorkersLost, match="no worker is left; 0 of 6 pieces came back"):
            list(write_all(tmp_path / "out", jobs, write_killed_once, 1, Place(cluster=running.address)))


def test_where_nobody_answers_nothing_is_begun(
    tmp_path: Path, unblinded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labctl.pieces.ANSWER_S", 8.0)  # a scheduler that is there answers within it
    with started(tmp_path, workers=0) as running:
        with pytest.raises(Unreachable, match="no worker is there; start some: dask worker"):
            export_campaign(
                unblinded, Request("npz", tmp_path / "out", place=Place(cluster=running.address)), lambda line: None
            )
        os.kill(running.scheduler, signal.SIGKILL)
        monkeypatch.setattr("labctl.pieces.ANSWER_S", 1.0)
        with pytest.raises(Unreachable, match="no Dask scheduler answers there; start one"):
            export_campaign(
                unblinded, Request("npz", tmp_path / "out", place=Place(cluster=running.address)), lambda line: None
            )
    assert not (tmp_path / "out").exists()
