"""`labctl doctor` asks the lab's PostgreSQL server where lab.toml names one, in one line, and nowhere else."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from labctl.checks import store_server
from labctl.checks.store_server import check_store
from labctl.errors import InputError, MissingExtra, StorageError

URL = "postgresql+psycopg://cell1@127.0.0.1:{port}/labctl"


def lab(folder: Path, port: int | None) -> Path:
    settings = f'[store]\nurl = "{URL.format(port=port)}"\ntimeout_s = 2.0\n' if port else ""
    (folder / "lab.toml").write_text(settings)
    return folder


def test_without_a_server_or_a_lab_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    monkeypatch.chdir(tmp_path)
    assert check_store(None) == []
    assert check_store(lab(tmp_path, None)) == []
    with pytest.raises(InputError):
        check_store(tmp_path / "none")


def test_a_server_that_does_not_answer_is_a_warning_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        (check,) = check_store(lab(tmp_path, taken.getsockname()[1]))
    assert check.level == "warn" and "\n" not in check.text
    assert check.text.startswith("postgresql+psycopg://cell1@127.0.0.1:") and "does not answer" in check.text
    assert check.remedy == "runs go on without it; then: labctl database copy"


@pytest.mark.parametrize("place", ["cell1@db/labctl?foo=bar", "cell1@db/labctl?sslmode=a=b", "cell1@db..lab/labctl"])
def test_an_address_that_cannot_be_read_is_a_warning_in_one_line(tmp_path: Path, place: str) -> None:
    pytest.importorskip("psycopg")
    (tmp_path / "lab.toml").write_text(f'[store]\nurl = "postgresql+psycopg://{place}"\n')
    (check,) = check_store(tmp_path)
    assert check.level == "warn" and "this address cannot be read" in check.text
    assert "foo" not in check.text.partition("(")[2]


@pytest.mark.parametrize("error", [MissingExtra("postgres", "a store"), StorageError("no password that it takes")])
def test_whatever_is_wrong_with_it_is_said_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(store_server, "Server", refuse)
    (check,) = check_store(lab(tmp_path, 5432))
    assert check.level == "warn" and str(error).partition(";")[0] in check.text


def test_one_that_answers_says_how_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Answers:
        def __init__(self, url: str, timeout_s: float, *, reading: bool) -> None:
            assert reading and timeout_s == 2.0

        def close(self) -> None:
            pass

    monkeypatch.setattr(store_server, "Server", Answers)
    (check,) = check_store(lab(tmp_path, 5432))
    assert check.level == "ok" and "answers in" in check.text and "labctl store 1" in check.text
