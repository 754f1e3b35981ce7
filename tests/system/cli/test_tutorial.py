"""docs/tutorial.md does what it says, typed as it stands; docs/README.md leads to every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
COMMANDS = [
    line[2:]
    for block in re.findall(r"```console\n(.*?)```", (DOCS / "tutorial.md").read_text("utf-8"), re.S)
    for line in block.splitlines()
]


@pytest.mark.thorough
@pytest.mark.limit(1800)  # a minute and a half of two cores, which other programs may have for most of the time
def test_each_command_of_the_tutorial_works_and_the_report_is_there(tmp_path: Path) -> None:
    assert len(COMMANDS) > 12
    script = "\n".join(["set -eu", *COMMANDS])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**{k: v for k, v in os.environ.items() if not k.startswith("LABCTL_")}, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1700, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lab = tmp_path / "my-lab"
    assert "without a review: an assessor went through 0 of 12 episodes" in (lab / "report" / "report.html").read_text()
    assert "all 12 trials are finished" in done.stdout
    blind = done.stdout[: done.stdout.index("unblinded")]
    assert "policy-a" not in blind.split("commitment", 1)[1], "blind until it is unblinded"
    assert (lab / "episodes.html").is_file()
    assert (lab / "operations.csv").read_text().count("\n") > 12


def test_every_command_that_is_typed_is_a_line_of_its_own() -> None:
    lines = [
        line
        for block in re.findall(r"```console\n(.*?)```", (DOCS / "tutorial.md").read_text("utf-8"), re.S)
        for line in block.splitlines()
    ]
    assert [line for line in lines if not line.startswith("$ ")] == []


def test_the_index_leads_to_every_page() -> None:
    text = (DOCS / "README.md").read_text("utf-8")
    pages = {path.name for path in DOCS.glob("*.md")} - {"README.md"}
    assert sorted(page for page in pages if f"({page}" not in text) == []
