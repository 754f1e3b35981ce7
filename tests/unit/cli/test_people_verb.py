"""`labctl people`: a code comes from a pipe or a terminal, never from the command line, and is shown nowhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from labctl.cli import call


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "lab.toml").write_text("")
    return tmp_path


def told(lines: str, *words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    return call(["people", *words])


def test_a_code_is_set_changed_listed_and_taken_away(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--lab", str(lab))
    assert told("blue-9513\n", "code", "p07", *at, monkeypatch=monkeypatch) == 0
    assert told("wrong-1\nred-2222\n", "code", "p07", *at, monkeypatch=monkeypatch) == 1
    assert told("blue-9513\nred-2222\n", "code", "p07", *at, monkeypatch=monkeypatch) == 0
    assert call(["people", "list", *at]) == 0
    shown = capsys.readouterr()
    assert "the personal code of p07 is set" in shown.out and "p07  set 20" in shown.out
    assert "that is not the code of p07; nothing was changed" in shown.err
    for secret in ("blue-9513", "wrong-1", "red-2222"):
        assert secret not in shown.out + shown.err
    assert told("red-2222\n", "code", "p07", "--remove", *at, monkeypatch=monkeypatch) == 0
    assert call(["people", "list", *at]) == 0 and "nobody has a personal code" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "name", "says"),
    [
        ("123\n", "p07", "4 to 64"),
        ("", "p07", "no line for"),
        ("1234\n", "p,07", "no id"),
        ("12\x0734\n", "p07", "typed"),
    ],
)
def test_bad_input_is_one_line(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str, name: str, says: str
) -> None:
    assert told(lines, "code", name, "--lab", str(lab), monkeypatch=monkeypatch) in (1, 2)
    shown = capsys.readouterr()
    assert says in shown.err and shown.err.count("\n") == 1 and not (lab / "personal-codes.json").exists()
