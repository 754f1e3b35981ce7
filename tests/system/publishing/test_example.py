"""The published campaign in docs/ convinces a process that has no lab: it verifies, and its report is made again.

When the report's numbers change by intention, publish the example anew:
`python -m support.runs.published_example docs/published/simulated-cell` (with tests/ on the path).
"""

from __future__ import annotations

import json
from pathlib import Path

from support.runs.published import alone

EXAMPLE = Path(__file__).resolve().parents[3] / "docs/published/simulated-cell"


def test_the_example_in_the_documentation_verifies_and_reports_without_a_lab(tmp_path: Path) -> None:
    said = alone(["verify", str(EXAMPLE), "--json"], tmp_path)
    assert said.returncode == 0, said.stderr + said.stdout
    found = json.loads(said.stdout)
    assert found["ok"] and found["counts"]["recordings"] == 2 and len(found["withheld"]) == 10
    made = alone(["report", str(EXAMPLE), "--out", "again"], tmp_path)
    assert made.returncode == 0, made.stderr + made.stdout
    last = made.stdout.splitlines()[-1]
    assert last == "byte for byte the published report" or last.startswith("the same numbers"), last


def test_the_example_is_small_and_has_no_pictures_of_a_lab() -> None:
    files = [path for path in EXAMPLE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 4_000_000
    assert not [path for path in files if path.suffix in (".mp4", ".mkv")]
