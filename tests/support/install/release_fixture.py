"""Writes what a release leaves on a lab's disk, to be opened by every later one: python THIS VERSION.

A small campaign, recorded, unblinded, with its protocol, cell and fixture; both tables of it, and what `labctl analyze`
made of them. `make release` calls it; tests/system/store/test_releases.py reads it. May not: write over another's.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from labctl.cli import call

TESTS = Path(__file__).resolve().parents[2]
ASKED = {
    "operations": ("--reference", "human", "--tau", "8", "--boot", "99", "--perm", "99", "--seed", "0"),
    "episodes": ("--reference", "human", "--boot", "99", "--perm", "99", "--seed", "0"),
}
SMALLER = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 5.0"}


def write(folder: Path) -> None:
    """folder: is made, and must not be there."""
    lab = folder / "lab"
    shutil.copytree(TESTS / "campaigns" / "at_88dea84" / "lab", lab, ignore=shutil.ignore_patterns("campaigns"))
    cell, protocol = lab / "cells" / "c.toml", lab / "protocols" / "p.toml"
    text = cell.read_text()
    for old, new in SMALLER.items():
        text = text.replace(old, new)
    cell.write_text(text)
    protocol.write_text(protocol.read_text().replace('name = "old"', 'name = "kept"'))
    at = ["--lab", str(lab)]
    os.environ["LABCTL_WHO"] = "release"
    run("open", str(protocol), "--cell", str(cell), *at)
    run("run", "kept", "--headless", "--simulated-time", *at)
    run("close", "kept", *at)
    run("freeze", "kept", "--unreviewed", *at)
    run("unblind", "kept", *at)
    for table, asked in ASKED.items():
        form, out = {"operations": "table"}.get(table, table), str(folder / f"{table}.csv")
        run("export", "kept", "--to", form, "--out", out, *at)
        (folder / f"{table}.json").write_text(run("analyze", out, *asked, "--json"))


def run(*typed: str) -> str:
    """What a command prints. Raises RuntimeError where it fails."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = call(typed)
    if code:
        raise RuntimeError(f"labctl {' '.join(typed)} ended with {code}")
    return out.getvalue()


def main(version: str) -> None:
    """Into tests/releases/VERSION, whole or not at all."""
    kept = TESTS / "releases" / version
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch) / version)
        shutil.copytree(Path(scratch) / version, kept)


if __name__ == "__main__":
    main(sys.argv[1])
