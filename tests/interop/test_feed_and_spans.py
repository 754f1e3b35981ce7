"""A site's feed read by feedparser, spans by OpenTelemetry's own messages.

Set METADATA_PYTHON to an interpreter that has feedparser and opentelemetry-proto: `make peer-metadata`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from labctl.cli import call
from labctl.publishing.site import make_site

pytestmark = [pytest.mark.interop, pytest.mark.limit(300)]
READER = Path(__file__).with_name("feed_and_spans_reader.py")
EXAMPLE = Path(__file__).resolve().parents[2] / "docs/published/simulated-cell"


@pytest.mark.parametrize("address", ["", "https://lab.example/results"])
def test_a_feed_and_spans_are_what_their_own_libraries_read(tmp_path: Path, address: str) -> None:
    python = os.environ.get("METADATA_PYTHON")
    if not python:
        pytest.skip("METADATA_PYTHON names no interpreter: make peer-metadata")
    make_site([EXAMPLE], tmp_path / "site", address=address)
    campaign = EXAMPLE / "campaigns/simulated-cell"
    assert call(["status", str(campaign), "--spans", str(tmp_path / "spans.json")]) == 0
    words = [python, str(READER), str(tmp_path / "site/feed.xml"), str(tmp_path / "spans.json")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["feed"]["bozo"], found["feed"]["version"]) == ("", "atom10")
    ((title, name, updated, link),) = found["feed"]["entries"]
    assert title and name.startswith("urn:sha256:") and updated.startswith("20")
    assert link == (f"{address}/" if address else "") + "reports/simulated-cell/report.html"
    assert found["feed"]["id"].startswith(address or "urn:labctl:site:")
    assert len(found["spans"]) > 12 * 4 and all(seconds > 0 for _, _, seconds in found["spans"])
