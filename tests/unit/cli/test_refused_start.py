"""What is said of a run that a console starts and that does not come to be, and that none is left behind."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.cli import console
from labctl.cli.console import run_with_console, said_at_the_end
from labctl.errors import InputError

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab"


def test_it_is_the_last_line_of_its_log_in_whatever_letters(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("Zürich: Prüfung → 5 °C\na warning\nerror: the cell’s camera is gone\n", encoding="utf-8")
    assert said_at_the_end(log) == "the cell’s camera is gone"
    log.write_bytes(b"")
    assert said_at_the_end(log) == ""


def test_bytes_that_are_no_text_do_not_hide_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"\xff\xfe cut in a letter: \xc3\nerror: no room\n")
    assert said_at_the_end(log) == "no room"


class Child:
    """A run process that has begun and does not answer yet."""

    pid = 1

    def __init__(self, done: list[str]) -> None:
        self._done = done
        done.append("started")

    def poll(self) -> None:
        return None

    def send_signal(self, number: int) -> None:
        self._done.append(signal.Signals(number).name)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done to the process of a run; a campaign seems to have trials left, and its console a terminal."""
    found: list[str] = []
    monkeypatch.setattr(console, "need_terminal", lambda *_: None)
    monkeypatch.setattr("labctl.runtime.campaign_run.nothing_left", lambda *_, **__: "")
    monkeypatch.setattr(console.subprocess, "Popen", lambda *_, **__: Child(found))
    return found


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], None]:
    """Start a run, and a console on it, in a lab with these settings."""
    shutil.copytree(OLD, tmp_path / "lab")

    def begin(settings: str) -> None:
        (tmp_path / "lab/lab.toml").write_text(settings, "utf-8")
        run_with_console(tmp_path / "lab/campaigns/old", "zed")

    return begin


def test_who_gives_up_waiting_for_a_run_leaves_none_behind(
    start: Callable[[str], None], done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("labctl.runtime.attach.wait_for_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start("")
    assert done == ["started", "SIGTERM"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[console.keys]\nstopp = "b"\n', r"lab\.toml:2: \[console.keys\] has 'stopp'"),
        ('[console.keys]\nmoved = "space"\n', r"lab\.toml:2: .*that key stops the robot"),
        ('[console.keys]\nmoved = "p"\n', r"lab\.toml:2: \[console.keys\] moved has p, which report has too \(show"),
        ('[console.keys]\nmoved = "g"\nnote = "?,n"\n', r"lab\.toml:3: .*note has \?, which keys has too"),
        ('[console.keys]\nmoved = "g"\nnote = "n,g"\n', r"lab\.toml:3: .*note has g, which moved has too"),
        ('[console.keys]\nstop = "space,f12,s"\n', r"lab\.toml:2: .*stop has s, which session has too"),
        ('[console]\ntheme = "pink"\n', r"lab\.toml:2: no theme 'pink'"),
    ],
)
def test_settings_that_no_console_can_open_with_are_refused_before_a_run_begins(
    start: Callable[[str], None], done: list[str], settings: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        start(settings)
    assert done == []
