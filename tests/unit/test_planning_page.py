"""docs/planning.md shows what its commands print: run this file to write the page, run the test to hold it current."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from labctl import cli

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "planning.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def page() -> str:
    """The page with every console block run anew."""
    return BLOCK.sub(lambda block: f"```console\n{_run(block[1])}```", PAGE.read_text(encoding="utf-8"))


def _run(block: str) -> str:
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "\n".join(f"{command}\n{_printed(command)}" for command in commands)


def _printed(command: str) -> str:
    program, *words = shlex.split(command.removeprefix("$ "))
    assert program == "labctl", command
    said = io.StringIO()
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            assert cli.call(words) == 0, command
    finally:
        os.chdir(before)
    lines = [line.rstrip() for line in said.getvalue().splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


def test_the_page_shows_what_the_commands_print():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_the_page_shows_every_verb_of_planning():
    shown = {
        shlex.split(line)[2]
        for block in BLOCK.findall(PAGE.read_text())
        for line in block.splitlines()
        if line[:2] == "$ "
    }
    assert shown == {"plan", "power", "compare"}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
