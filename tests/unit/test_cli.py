"""The command line's own promises: it answers at once, imports late, and ends every mistake in one line."""

from __future__ import annotations

import errno
import importlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.machine.packages import install

from labctl import __version__, cli
from labctl.cli import leaving
from labctl.errors import BrokenRecord, InputError, StateError, StorageError
from labctl.store.database_backend import storage_errors

HEAVY = ("numpy", "scipy", "sqlmodel", "sqlalchemy", "pydantic", "matplotlib", "rich", "zmq", "av", "jinja2", "rerun")


def outcome(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Exit code and stderr of a verb that raises `error`."""

    @click.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: fails)
    code = cli.call(["plan"])
    return code, capsys.readouterr().err


def test_help_lists_every_verb_and_imports_nothing_heavy():
    script = (
        "import sys, labctl.cli\n"
        "code = labctl.cli.call(['--help'])\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules], 'CODE', code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY [] CODE 0"
    for verb, (_, line) in cli.VERBS.items():
        assert f"  {verb} " in done.stdout and line.split(",")[0] in done.stdout


@pytest.mark.parametrize("verb", cli.VERBS)
def test_a_verb_can_be_loaded_and_explains_itself_with_an_example(verb: str):
    module, _, attribute = cli.VERBS[verb][0].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    shown = CliRunner().invoke(command, ["--help"])
    assert shown.exit_code == 0
    assert f"labctl {verb}" in shown.output.split("Example:")[1]


def test_help_of_no_verb_imports_a_heavy_library():
    script = (
        "import sys, labctl.cli\n"
        f"for verb in {list(cli.VERBS)!r}:\n"
        "    code = labctl.cli.call([verb, '--help'])\n"
        f"    print('HEAVY', verb, [m for m in {HEAVY!r} if m in sys.modules], 'CODE', code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if line.startswith("HEAVY")]
    assert said == [f"HEAVY {verb} [] CODE 0" for verb in cli.VERBS]


def test_an_unknown_verb_lists_the_known_ones(capsys: pytest.CaptureFixture[str]):
    assert cli.call(["analyse"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no verb 'analyse'; did you mean 'analyze'?; this version has: demo, new")
    assert said.count("\n") == 1


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]):
    assert cli.call(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("unknown key 'x'", where="a.toml:3"), 2, "error: a.toml:3: unknown key 'x'\n"),
        (StateError("not open"), 1, "error: not open\n"),
        (BrokenRecord("the chain\nis broken"), 65, "error: the chain is broken\n"),
        (PermissionError(errno.EACCES, "Permission denied", "a.csv"), 69, "error: a.csv: not allowed"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv"), 2, "error: a.csv: No such file"),
        (OSError(errno.ENOSPC, "No space left on device", "t.db"), 69, "error: t.db: no space left"),
        (OSError(errno.ENOSPC, "No space left on device"), 69, "error: a file: no space left"),
        (OSError(errno.EIO, "Input/output error"), 69, "error: a file: Input/output error; this machine says so"),
        (OSError(errno.EMFILE, "Too many open files", "v.mp4"), 69, "error: v.mp4: Too many open files; this machine"),
        (OSError(errno.ESTALE, "Stale file handle", "j.db"), 69, "error: j.db: Stale file handle; this machine"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_mistake_is_one_line_and_an_exit_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    found, text = outcome(error, monkeypatch, capsys)
    assert found == code
    assert text.startswith(said) and text.count("\n") == 1


def test_an_interrupt_is_one_line_below_the_echoed_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert outcome(KeyboardInterrupt(), monkeypatch, capsys) == (130, "\nerror: interrupted\n")


# What SQLite says of a database, and not of a statement: https://www.sqlite.org/src/file/src/main.c, sqlite3ErrStr.
OF_A_DATABASE = [
    "database is locked",
    "database table is locked",
    "attempt to write a readonly database",
    "disk I/O error",
    "database disk image is malformed",
    "database or disk is full",
    "unable to open database file",
    "file is not a database",
]


@pytest.mark.parametrize("said", OF_A_DATABASE)
def test_what_a_database_says_of_itself_is_one_line_with_a_remedy(
    said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from sqlalchemy.exc import OperationalError

    for error in (sqlite3.OperationalError(said), OperationalError("INSERT", {}, sqlite3.OperationalError(said))):
        with pytest.raises(StorageError) as mapped, storage_errors("journal.db"):
            raise error
        code, text = outcome(mapped.value, monkeypatch, capsys)
        assert code == 69 and text.startswith("error: journal.db: ") and f"({said})" in text and text.count("\n") == 1


def test_what_a_database_says_of_a_statement_is_a_bug():
    with pytest.raises(sqlite3.OperationalError), storage_errors("journal.db"):
        raise sqlite3.OperationalError('near "SELCT": syntax error')


def test_a_mistake_in_a_table_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from labctl.errors import TableError

    code, text = outcome(TableError("a.csv:7", "two censored rows"), monkeypatch, capsys)
    assert (code, text) == (2, "error: a.csv:7: two censored rows\n")


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), OSError(errno.EBADF, "Bad file"), ValueError("nan")])
def test_a_bug_keeps_its_traceback_and_asks_to_be_reported(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    code, text = outcome(error, monkeypatch, capsys)
    *above, last = text.splitlines()
    assert code == 70 and above[0].startswith("Traceback") and type(error).__name__ in above[-1]
    assert last.startswith(f"error: this is a bug in labctl ({type(error).__name__}")
    assert "labctl bugreport CAMPAIGN" in last and last.endswith(f"report it with that to {leaving.issues()}")


def test_a_bug_of_a_driver_that_another_package_registers_is_not_called_one_of_labctl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Found with a driver of somebody else's, whose robot could not take an empty row of setpoints."""
    text = "import json\n\n\ndef follow() -> None:\n    json.loads('[')\n"
    install(tmp_path, "lab-odd", {"lab_odd/__init__.py": "", "lab_odd/arm.py": text}, {"odd_arm": "lab_odd.arm"})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError) as raised:
        importlib.import_module("lab_odd.arm").follow()
    code, said = outcome(raised.value, monkeypatch, capsys)
    last = said.splitlines()[-1]
    assert code == 70 and last.startswith("error: this is a bug in lab_odd.arm, line 5 (JSONDecodeError: ")
    assert last.endswith("the driver odd_arm is of the package lab-odd; report it to whoever made that")


@pytest.mark.parametrize("words", [["--help"], ["plan", "none.toml", "--json"]])
def test_a_reader_that_leaves_early_is_no_bug(words: list[str]):
    given = str(words).replace("'", '"')
    command = f"{sys.executable} -c 'import labctl.cli; labctl.cli.main({given})' | true"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "words",
    [["17/20", "14/20"], ["17/20", "--json"], pytest.param(["17/20", "14/20", "--json"], marks=pytest.mark.thorough)],
)
def test_an_output_without_room_is_one_line_and_the_error_keeps_its_code(words: list[str], unbuffered: str):
    """With --json the document that says so had no room either, and that was a traceback; without, what Python held
    back was complained of at its exit.
    """
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    script = f"import labctl.cli; labctl.cli.main({['compare', *words]!r})"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True, env=env)
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert done.returncode == (69 if "14/20" in words else 2)
