"""Work in pieces gives the same wherever it is done, and survives the processes that do it."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any, cast

import pytest
from support.machine.cluster import write, write_killed, write_killed_once

from labctl import pieces
from labctl.cli.options import place_of
from labctl.errors import InputError, Unreachable, WorkersLost
from labctl.exports.workers import Job, write_all
from labctl.pieces import HERE, Place, _look_at, each, looks_like

NAMES = ["aa", "bbb", "cc", "d"]


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.txt")}


@pytest.mark.thorough
def test_pieces_come_in_order_and_a_killed_process_is_replaced(tmp_path: Path) -> None:
    """`kill -9` half way through a piece: another process does it again, and what was finished is not done twice."""
    jobs = [Job(f"{name}.txt", (name, tmp_path / "killed")) for name in NAMES]
    assert list(write_all(tmp_path, jobs, write_killed_once, 2)) == [2, 3, 2, 1]
    assert content(tmp_path) == {f"{name}.txt": name for name in NAMES} and (tmp_path / "killed").exists()


@pytest.mark.thorough
def test_a_piece_that_kills_each_process_ends_in_one_line_and_the_others_are_kept(tmp_path: Path) -> None:
    jobs = [Job(f"{name}.txt", (name,)) for name in NAMES]
    with pytest.raises(WorkersLost, match=r"3 times a process .* kept: the same command again, with --workers 1$"):
        list(write_all(tmp_path, jobs, write_killed, 2))
    (tmp_path / "aa.txt").write_text("??")  # as long as it was: whoever finished it is believed
    assert list(write_all(tmp_path, jobs, write, 1)) == [2, 3, 2, 1]
    assert content(tmp_path)["aa.txt"] == "??" and content(tmp_path)["cc.txt"] == "cc"


def test_what_was_finished_before_a_process_is_lost_while_others_are_still_given_is_not_done_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[int] = []

    class Pool(Executor):
        """Does each piece at once; the first such pool is broken when it is given the third."""

        def submit(self, work: Any, /, *given: Any, **_: Any) -> Future[Any]:
            if done == [0, 1]:
                done.append(-1)
                raise BrokenExecutor("a process was killed")
            future: Future[Any] = Future()
            future.set_result(work(*given))
            return future

    def double(number: int) -> int:
        done.append(number)
        return 2 * number

    monkeypatch.setattr(pieces, "processes", lambda number: Pool())
    assert list(each(Place(workers=2), double, [(n,) for n in range(4)], 2, tmp_path)) == [0, 2, 4, 6]
    assert done == [0, 1, -1, 2, 3]


def test_how_many_processes_is_as_asked_and_else_as_it_is_worth(tmp_path: Path) -> None:
    assert (Place(3).processes(1), HERE.processes(2)) == (3, 2)
    assert list(each(Place(workers=1), write, [(tmp_path / "a", "x")], 8, tmp_path)) == [1]
    with pytest.raises(InputError, match="give one of them"):
        place_of(2, "tcp://127.0.0.1:8786")


class Answering:
    """A cluster of one worker, as a client of it sees it."""

    def __init__(self, threads: int = 1, *, answer: Any = None, workers: int = 1) -> None:
        self._workers = {f"tcp://h:{n}": {"nthreads": threads} for n in range(workers)}
        self._answer = answer

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": self._workers}

    def run(self, asked: Any, token: str, on_error: str) -> dict[str, Any]:
        return {name: self._answer or asked(token) for name in self._workers}


def test_a_cluster_that_would_write_other_bytes_is_refused_in_a_line(tmp_path: Path) -> None:
    """No worker, several threads, another version, no labctl, a folder of its own: nothing is begun."""
    host, versions, _ = looks_like("")
    cases = [
        (Answering(workers=0), "no worker is there; start some: dask worker"),
        (Answering(threads=4), "has 4 threads, and a piece needs a process of its own; start it with --nthreads 1"),
        (Answering(answer=ImportError("No module named 'labctl'")), "cannot run labctl: No module named 'labctl'"),
        (Answering(answer=(host, {**versions, "numpy": "1.0"}, "")), "has numpy 1.0, here it is "),
        (Answering(answer=(host, {**versions, "code": "ab"}, "")), "has code ab, here it is "),
        (Answering(answer=(host, versions, "")), f"does not see {tmp_path}"),
    ]
    _look_at(cast(Any, Answering()), "tcp://h:1", tmp_path)
    for answering, words in cases:
        with pytest.raises(Unreachable) as said:
            _look_at(cast(Any, answering), "tcp://h:1", tmp_path)
        assert words in str(said.value), str(said.value)
    assert not list(tmp_path.iterdir()), "the sign that was looked for is gone"


class Away:
    """A client whose scheduler does not hear that it closes, as on a busy machine."""

    def __init__(self, *given: Any, **more: Any) -> None:
        pass

    def close(self, timeout: float) -> None:
        raise TimeoutError(f"timed out after {timeout} s.")


def test_a_scheduler_that_does_not_hear_the_end_hides_neither_result_nor_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest.importorskip("distributed"), "Client", Away)
    monkeypatch.setattr(pieces, "_look_at", lambda client, address, folder: None)
    with pieces.cluster("tcp://127.0.0.1:9", tmp_path):
        pass
    with pytest.raises(WorkersLost, match="gone"), pieces.cluster("tcp://127.0.0.1:9", tmp_path):
        raise WorkersLost("gone")
