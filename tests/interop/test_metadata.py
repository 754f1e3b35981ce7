"""A publication's metadata read back by those who defined it: mlcroissant, and huggingface_hub of results.

Set METADATA_PYTHON to an interpreter that has mlcroissant, huggingface_hub and PyYAML: `make peer-metadata`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.limit(300)]
READER = Path(__file__).with_name("metadata_reader.py")
EXAMPLE = Path(__file__).resolve().parents[2] / "docs/published/simulated-cell"


def test_metadata_and_results_are_what_their_own_libraries_read() -> None:
    python = os.environ.get("METADATA_PYTHON")
    if not python:
        pytest.skip("METADATA_PYTHON names no interpreter: make peer-metadata")
    done = subprocess.run([python, str(READER), str(EXAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    croissant = found["croissant"]
    assert croissant["issues"] == {"errors": [], "warnings": []}
    assert croissant["name"] == "simulated-cell"
    assert "creativecommons.org/publicdomain/zero" in str(croissant["license"])
    lines = {
        "operations": len((EXAMPLE / "tables/operations.csv").read_text().splitlines()) - 1,
        "episodes": len((EXAMPLE / "tables/episodes.csv").read_text().splitlines()) - 1,
        "journal": len((EXAMPLE / "tables/journal.jsonl").read_text().splitlines()),
    }
    assert {name: rows for name, (_, rows) in croissant["rows"].items()} == lines
    report = json.loads((EXAMPLE / "report/report.json").read_text())["result"]["arms"]
    rmst = {arm["arm"]: arm["rmst"] for arm in report}
    seconds = {one["arm"]: one["value"] for one in found["results"] if one["task_id"] in ("rmst", "seconds_per_item")}
    assert seconds == {arm: pytest.approx(rmst[arm], abs=1e-6) for arm in ("swift", "steady")}
