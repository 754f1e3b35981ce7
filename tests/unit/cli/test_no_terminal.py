"""A verb that draws a screen says so where there is no terminal, and waits for nobody's keys (issue 18)."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import labctl.cli
import labctl.cli.console
import labctl.ui.console.campaigns
from labctl.cli import call
from labctl.cli.console import run_with_console
from labctl.cli.options import has_terminal
from labctl.errors import InputError, LabctlError, StateError
from labctl.runtime import campaign_run
from labctl.store.verifying.verified import in_passing

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab"
NOBODY = "draws a screen and waits for keys"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "lab")
    return tmp_path / "lab"


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.setattr(sys, "__stdin__", None)  # as `<&-` leaves it


@pytest.mark.parametrize("more", [(), ("--second",)])
def test_a_review_without_a_terminal_is_one_line_that_says_what_does_without(
    more: tuple[str, ...], lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["review", "old", "--who", "zed", "--register", *more, "--lab", str(lab)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert NOBODY in line and "--page" in line


def test_a_review_that_cannot_be_shown_enters_nobody(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused has done nothing: `zed` would be an assessor for ever, who could end the review next."""
    before = _entries(lab)
    words = ["review", "old", "--who", "zed", "--register", "--lab", str(lab)]
    assert call(words) == 2 and call([*words, "--second"]) == 2
    monkeypatch.setitem(sys.modules, "labctl.pages.server", None)  # as without the extra
    assert call([*words, "--page"]) == 2 and call([*words, "--page", "--second"]) == 2
    assert _entries(lab) == before
    assert call([*words, "--list"]) == 0 and len(_entries(lab)) > len(before)


def _entries(lab: Path) -> list[str]:
    with in_passing(lab / "campaigns" / "old") as opened:
        return [event.hash for event in opened.events()]


def test_a_run_without_a_terminal_is_refused_before_it_begins(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_run, "nothing_left", lambda *_, **__: "")
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a run was started"))
    with pytest.raises(InputError, match="--headless"):
        run_with_console(lab / "campaigns" / "old", "zed")


def test_whoever_only_looks_begins_no_run_from_the_list(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(lab / "campaigns" / "old", lab / "campaigns" / "older")
    monkeypatch.setattr(labctl.cli.console, "has_terminal", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(labctl.ui.console.campaigns.Campaigns, "run", lambda _: ("old", "resume"))
    monkeypatch.setattr(labctl.cli.console, "run_with_console", lambda *_: pytest.fail("a run was begun"))
    with pytest.raises(StateError, match="no run"):
        labctl.cli.console.choose(lab, "zed", read_only=True)


def test_the_list_leaves_out_what_cannot_be_opened_and_begins_a_run_as_it_was_asked_for(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(lab / "campaigns" / "old", lab / "campaigns" / "older", dirs_exist_ok=True)
    (lab / "campaigns" / "empty").mkdir()
    (lab / "campaigns" / "empty" / "journal.db").touch()
    monkeypatch.setattr(labctl.cli.console, "has_terminal", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(labctl.ui.console.campaigns.Campaigns, "run", lambda _: ("old", "resume"))
    begun: list[dict[str, object]] = []
    monkeypatch.setattr(labctl.cli.console, "run_with_console", lambda *_, **given: begun.append(given))
    assert labctl.cli.console.choose(lab, "zed", unready=True, hand_terminal="/dev/pts/7")
    assert begun == [{"unready": True, "hand_terminal": "/dev/pts/7"}]
    assert capsys.readouterr().err.startswith("empty: ")
    for name in ("old", "older"):
        shutil.rmtree(lab / "campaigns" / name)
    shutil.copytree(lab / "campaigns" / "empty", lab / "campaigns" / "void")
    with pytest.raises(LabctlError):
        labctl.cli.console.choose(lab, "zed")


def test_one_campaign_that_cannot_be_opened_does_not_hide_the_lab(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "campaigns" / "empty").mkdir(exist_ok=True)
    (lab / "campaigns" / "empty" / "journal.db").write_bytes(b"")
    assert labctl.cli.call(["status", "empty", "--lab", str(lab)]) == 65
    assert labctl.cli.call(["status", "--lab", str(lab)]) == 65
    told = capsys.readouterr()
    assert "old: " in told.out and "\nempty: " in told.err
    assert labctl.cli.call(["status", "--json", "--lab", str(lab)]) == 65
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["unread"]] == ["empty"] and told["unread"][0]["error"]


def test_a_server_that_hands_a_screen_on_by_pipes_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_terminal()
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")  # what textual-serve sets
    assert has_terminal()


def test_whatever_function_draws_a_screen_asks_for_a_terminal_first() -> None:
    """In it or, of the chooser of campaigns, by `has_terminal`."""
    without, found = [], 0
    for path in sorted(Path(labctl.cli.__path__[0]).rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            runs = any(
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
                and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "subprocess")
                for node in ast.walk(function)
            )  # fmt: skip
            found += runs
            if runs and not names & {"need_terminal", "has_terminal"}:
                without.append(f"{path.name}: {function.name}")
    assert found >= 4 and not without
