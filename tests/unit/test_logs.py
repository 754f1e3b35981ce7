"""A log has times and levels, turns over, tells what it lost, keeps a dead process's last words, none waits."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl import logs
from labctl.cli import call

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) +\S+: .")
CHILD = """
import ctypes, os, sys
from pathlib import Path
from labctl.logs import begin_child
import labctl.logs
labctl.logs.PATIENCE_S = 60.0
log = begin_child("arm", Path(sys.argv[1]))
print("python prints")
os.write(2, b"a library prints\\n")
{last}
"""


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And however late this machine lets the threads that write run, what they write is waited for."""
    monkeypatch.setattr(logs, "PATIENCE_S", 60.0)
    monkeypatch.setattr(logs, "REST_S", 60.0)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def child(path: Path, last: str) -> int:
    words = logs.Words("arm", logs.printed_beside(path))
    command = [sys.executable, "-c", CHILD.format(last=last), str(path)]
    made = subprocess.Popen(command, stdout=words.writes, stderr=words.writes)
    words.started()
    code = made.wait(timeout=60)
    words.rest()
    return code


def test_every_line_has_its_time_in_utc_its_level_and_who_said_it(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "run.log"
    log = logs.begin(path)
    logging.getLogger("run").info("trial 1 of 6")
    logging.getLogger("run").warning("late")
    log.end()
    log.end()
    lines = path.read_text().splitlines()
    assert all(LINE.match(line) for line in lines)
    assert [line.split("Z ")[1] for line in lines] == ["INFO    run: trial 1 of 6", "WARNING run: late"]
    assert path.stat().st_mode & 0o077 == 0, "its owner alone reads it"


def test_a_long_log_turns_over_and_the_oldest_goes(tmp_path: Path) -> None:
    log = logs.begin(tmp_path / "a.log", waiting=10_000, most=2000)
    for number in range(300):
        logging.getLogger("run").info("line %d of many that are as long as this one is", number)
    log.end()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["a.log", *(f"a.log.{n}" for n in range(1, logs.FILES + 1))]
    assert all(path.stat().st_size <= 2000 and not path.stat().st_mode & 0o077 for path in tmp_path.iterdir())
    assert "line 299" in (tmp_path / "a.log").read_text()


def test_a_log_that_a_program_prints_into_is_turned_over_before_the_next_one_has_it(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "show.log"
    for number in range(logs.FILES + 3):
        with logs.appended(path, most=10) as out:
            out.write(b"program %d\n" % number)
    assert sorted(one.name for one in path.parent.iterdir()) == [
        "show.log",
        *(f"show.log.{n}" for n in range(1, logs.FILES + 1)),
    ]
    assert path.read_bytes() == b"program 6\n" and (path.parent / "show.log.1").read_bytes() == b"program 5\n"
    assert all(not one.stat().st_mode & 0o077 for one in path.parent.iterdir())


def test_whoever_logs_does_not_wait_for_a_disk_that_hangs_and_what_was_dropped_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, emit = threading.Event(), logs.LogFile.emit

    def slow(self: logs.LogFile, record: logging.LogRecord) -> None:
        hangs.wait(30)
        emit(self, record)

    monkeypatch.setattr(logs.LogFile, "emit", slow)
    log = logs.begin(tmp_path / "a.log", waiting=5)
    for number in range(100):  # comes back although nothing is written
        logging.getLogger("arm").info("tick %d", number)
    assert log.by.lost >= 94, "one in the hand of who writes, five that wait"
    hangs.set()
    log.end()
    assert re.search(r"WARNING logs: 9[45] lines dropped", (tmp_path / "a.log").read_text())


def test_a_disk_that_takes_nothing_costs_lines_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logs.begin(tmp_path / "a.log")
    monkeypatch.setattr(log.file, "_open", lambda: open("/dev/full", "a", encoding="utf-8"))  # noqa: PTH123, SIM115
    logging.getLogger("arm").info("x")
    log.end()
    assert log.file.failed == 1
    assert capsys.readouterr() == ("", "")


def test_what_libraries_print_has_a_time_and_a_process_that_aborts_leaves_its_last_words(tmp_path: Path) -> None:
    path = tmp_path / "arm.log"
    code = child(path, "os.write(2, b'terminate called: reflex\\n'); ctypes.CDLL(None).abort()")
    text = path.with_name("arm.printed.log").read_text()
    assert code == -6
    said = [line for line in text.splitlines() if LINE.match(line)]
    for words in ("a library prints", "terminate called: reflex"):
        assert sum(words in line for line in said) == 1, (words, text)
    assert "Fatal Python error: Aborted" in text, "and the stacks of its threads"


def test_what_python_prints_in_a_process_stands_in_its_log(tmp_path: Path) -> None:
    assert child(tmp_path / "arm.log", "log.end(); os._exit(0)") == 0
    assert "WARNING arm.stderr: python prints" in (tmp_path / "arm.log").read_text()


def test_an_error_that_nobody_caught_stands_in_the_log(tmp_path: Path) -> None:
    assert child(tmp_path / "arm.log", "raise ZeroDivisionError('by nought')") == 1
    assert "ZeroDivisionError: by nought" in (tmp_path / "arm.log").read_text()


def test_a_library_that_prints_more_than_is_read_does_not_wait(tmp_path: Path) -> None:
    words = logs.Words("arm", tmp_path / "arm.log")
    with pytest.raises(BlockingIOError):
        while True:
            os.write(words.writes, b"x" * 65_536)
    words.started()
    words.rest()
    assert (tmp_path / "arm.log").stat().st_size > 0


@pytest.mark.parametrize(("said", "kept"), [("debug", 10), ("ERROR", 40), ("loud", 20), (None, 20)])
def test_labctl_log_says_what_is_kept(said: str | None, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(logs.LEVEL, raising=False)
    if said is not None:
        monkeypatch.setenv(logs.LEVEL, said)
    assert logs.level() == kept


def test_verbose_prints_what_is_logged_with_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(logs.LEVEL, "debug")
    assert call(["-v", "schema", "all"]) == 0
    logging.getLogger("arm").debug("said")
    printed = capsys.readouterr()
    assert (
        LINE.match(printed.err) and printed.err.endswith("Z DEBUG   arm: said\n") and "labctl.status/2" in printed.out
    )


def test_with_json_asked_for_each_line_of_a_log_is_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCTL_LOG_FORMAT", "json")
    log = logs.begin(tmp_path / "run.log")
    logging.getLogger("run").info("3 of %d arms\nanswer", 3)
    try:
        raise ValueError("no such arm")
    except ValueError:
        logging.getLogger("run").exception("it failed")
    log.end()
    first, second = map(json.loads, (tmp_path / "run.log").read_text().splitlines())
    assert first["time"].endswith("Z") and first["process"] == os.getpid()
    assert (first["level"], first["logger"], first["text"]) == ("INFO", "run", "3 of 3 arms\nanswer")
    assert second["text"].startswith("it failed\n") and second["text"].endswith("ValueError: no such arm")
