"""Files of an export come in order from any number of processes, and those that are whole are not written again."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from labctl.errors import BrokenRecord, LabctlError, MissingExtra, OptionError, TableError
from labctl.exports.workers import DONE, Job, processes_for, write_all
from labctl.pieces import Place
from labctl.processes import WORTH_BYTES

NAMES = ["a", "b", "c", "d"]


def write(path: Path, word: str, text: str) -> dict[str, str]:
    path.write_text(word + text)
    return {"wrote": text}


def refuse(path: Path, word: str, text: str) -> dict[str, str]:
    if text == "c":
        raise BrokenRecord("c does not hold")
    return write(path, word, text)


def jobs(word: str, changed: str = "") -> list[Job]:
    return [Job(f"{name}.txt", (word, name), name + ("!" if name == changed else "")) for name in NAMES]


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_and_every_file_is_there(tmp_path: Path, processes: int) -> None:
    assert [said["wrote"] for said in write_all(tmp_path, jobs("x"), write, processes)] == NAMES
    assert [(tmp_path / f"{name}.txt").read_text() for name in NAMES] == ["xa", "xb", "xc", "xd"]


def test_what_is_whole_is_not_written_again_and_what_is_not_is(tmp_path: Path) -> None:
    first = write_all(tmp_path, jobs("x"), write)
    next(first), next(first), next(first)
    first.close()
    (tmp_path / "b.txt").write_text("half")  # no longer as long as it was
    (tmp_path / "d.txt").write_text("x")  # begun, not finished
    assert [said["wrote"] for said in write_all(tmp_path, jobs("y", changed="c"), write)] == NAMES
    assert [(tmp_path / f"{name}.txt").read_text() for name in NAMES] == ["xa", "yb", "yc", "yd"]
    assert len(list((tmp_path / DONE).iterdir())) == len(NAMES)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_a_file_is_refused_for_comes_out_as_it_was_said(tmp_path: Path, processes: int) -> None:
    with pytest.raises(BrokenRecord, match="c does not hold"):
        list(write_all(tmp_path, jobs("x"), refuse, processes))


def test_a_worker_elsewhere_is_told_a_folder_that_is_the_same_in_every_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    asked: list[tuple[Place, Path]] = []

    def elsewhere(
        place: Place, work: Callable[..., object], given: Sequence[tuple[object, ...]], worth: int, folder: Path
    ) -> Iterator[object]:
        asked.append((place, folder))
        with contextlib.chdir("/"):
            yield from [work(*one) for one in given]

    monkeypatch.setattr("labctl.exports.workers.each", elsewhere)
    there = Place(cluster="tcp://10.0.0.5:8786")
    assert [said["wrote"] for said in write_all(Path("out"), jobs("x"), write, 1, there)] == NAMES
    assert asked == [(there, tmp_path / "out")] and (tmp_path / "out/d.txt").read_text() == "xd"


def test_little_is_written_by_one_process_and_much_by_no_more_than_there_are_files() -> None:
    assert processes_for(48, WORTH_BYTES - 1) == 1 and processes_for(1, 10 * WORTH_BYTES) == 1


@pytest.mark.parametrize("error", [MissingExtra("mcap", "it"), OptionError("x", ("a",)), TableError("f:1", "x")])
def test_every_error_of_ours_comes_through_from_another_process(error: LabctlError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
