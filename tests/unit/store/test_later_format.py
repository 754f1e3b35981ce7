"""A campaign of a later labctl is refused in one line: whoever does not know what binds it says nothing of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.runs.campaigns import make_campaign
from support.runs.forging import forge

from labctl.cli import call
from labctl.core.events import Event, Kind
from labctl.store.opened_body import FORMAT

VERBS: dict[str, list[str]] = {
    "verify": [],
    "status": [],
    "run": ["--headless"],
    "close": ["--abandon", "--reason", "x"],
    "report": ["--out", "{}/../../out"],
    "export": ["--to", "table", "--out", "{}/../../out.csv"],
}


def of_a_later_labctl(event: Event) -> Event:
    return replace(event, body={**event.body, "format": FORMAT + 1}) if event.kind == Kind.CAMPAIGN_OPENED else event


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_reads_or_runs_a_campaign_of_a_later_labctl(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_campaign(tmp_path).folder
    before = [event.hash for event in forge(folder, of_a_later_labctl)]
    capsys.readouterr()
    assert call([verb, str(folder), *(word.format(folder) for word in VERBS[verb])]) == 2
    said = capsys.readouterr().err
    assert f"has format {FORMAT + 1}" in said and "use a later labctl" in said and said.count("\n") == 1
    assert len(before) == 1 and not list(tmp_path.glob("out*"))
