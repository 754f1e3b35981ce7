"""Each exit code by the fault itself, as a person or a machine would make it, and the same kind in the JSON of it."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import judged
from support.runs.campaigns import make_campaign
from support.runs.live_campaign import wait_for

from labctl.cli import VERBS, call, leaving
from labctl.errors import EXITS, Exit

LABCTL = [sys.executable, "-P", "-c", "from labctl.cli import main; main()"]


def edited(lab: Path) -> list[str]:
    """Somebody edits an entry of the journal."""
    folder = make_campaign(lab).folder
    with closing(sqlite3.connect(folder / "journal.db")) as raw, raw:
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        raw.execute("UPDATE event SET who = 'somebody else' WHERE seq = 1")
    return ["episodes", str(folder)]


def locked(lab: Path, holds: list[Any], verb: str) -> list[str]:
    """Another program holds the database."""
    folder = make_campaign(lab).folder
    other = sqlite3.connect(folder / "journal.db", isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN EXCLUSIVE")
    holds.append(other)
    return [verb, str(folder)]


def test_a_record_that_was_edited_is_a_broken_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert of(edited(tmp_path), capsys)["kind"] == Exit.BROKEN_RECORD.kind


@pytest.mark.parametrize("verb", ["status", "verify"])
def test_a_database_that_another_program_holds_is_unavailable_and_no_broken_record(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    holds: list[Any] = []
    monkeypatch.setattr("labctl.store.database_backend.BUSY_S", 0.1)
    try:
        found = of(locked(tmp_path, holds, verb), capsys)
    finally:
        holds[0].close()
    assert found["kind"] == Exit.UNAVAILABLE.kind and "is locked" in found["message"]


def test_a_disk_without_room_is_unavailable_and_nothing_is_half_written(tmp_path: Path) -> None:
    rows = "".join(f"{number},a,1\n" for number in range(4000))
    (tmp_path / "e.csv").write_text(f"block,arm,success\n{rows}")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))

    words = ["import", "csv", str(tmp_path / "e.csv"), "--out", str(tmp_path / "out.csv"), "--json"]
    command = [LABCTL[0], "-B", *LABCTL[1:], *words]  # half of a bytecode file would break every later process
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=small, timeout=60)
    found = judged(done.stdout)
    assert (done.returncode, found["kind"]) == (69, Exit.UNAVAILABLE.kind), done.stderr
    assert found["remedy"] == "nothing was written; raise that limit and try again"
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "kill"])
def test_what_is_ended_before_its_end_is_interrupted(how: signal.Signals) -> None:
    made = subprocess.Popen(
        [*LABCTL, "analyze", "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for("it reads its standard input", lambda: reads(made.pid))
    os.kill(made.pid, how)
    out, err = made.communicate(timeout=60)
    assert (made.returncode, judged(out.decode())["kind"]) == (130, Exit.INTERRUPTED.kind)
    assert err.decode().splitlines()[-1] == "error: interrupted"


def reads(pid: int) -> bool:
    """Whether a process waits in read(0): the system call 0 with its first argument 0."""
    return Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x0 ")


def test_an_unknown_key_is_bad_input_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_campaign(tmp_path)
    path = tmp_path / "protocols/p.toml"
    path.write_text(path.read_text().replace("items_staged", "items_stagd"))
    found = of(["plan", str(path)], capsys)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "items_stagd" in text)
    assert (found["kind"], found["file"], found["line"]) == (Exit.BAD_INPUT.kind, str(path), line)


def test_what_the_state_forbids_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = of(["freeze", str(make_campaign(tmp_path).folder)], capsys)
    assert found["kind"] == Exit.REFUSED.kind and found["remedy"]


def test_an_error_that_nobody_foresaw_is_a_bug_that_names_how_to_report_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*given: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("labctl.cli.lifecycle.new_lab", breaks)
    assert call(["new", str(tmp_path / "lab"), "--json"]) == 70
    printed = capsys.readouterr()
    found = judged(printed.out)
    assert found["kind"] == Exit.BUG.kind and "RuntimeError: unforeseen" in found["message"]
    assert "labctl bugreport" in found["remedy"] and "report it" in found["remedy"]
    assert printed.err.startswith("Traceback")


def test_verify_says_what_it_found_with_the_code_that_its_users_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interface: `verify` exits with 1 and names what is broken; so does `doctor` where no cell could run."""
    folder = edited(tmp_path)[1]
    assert call(["verify", folder, "--json"]) == 1
    (found,) = judged(capsys.readouterr().out)["campaigns"]
    assert not found["ok"] and found["problems"]


def test_the_table_has_every_code_once_and_the_help_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert [*EXITS] == [*Exit] and leaving.IN_ORDER.issubset(VERBS)
    assert call(["--help"]) == 0
    said = capsys.readouterr().out.partition("Exit codes:")[2]
    assert [line.split()[0] for line in said.splitlines() if line[:3].strip()] == [str(int(code)) for code in Exit]
    page = (Path(__file__).parents[3] / "docs/cli.md").read_text("utf-8")
    assert all(f"| {int(code)} | {code.kind.replace('_', ' ')} | {EXITS[code]} |" in page for code in Exit)


def of(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """The error of a command with --json, judged; its code is the one it left with."""
    capsys.readouterr()
    code = call([*words, "--json"])
    printed = capsys.readouterr()
    found = judged(printed.out)
    assert json.loads(printed.out)["exit_code"] == code, printed.err
    return found
