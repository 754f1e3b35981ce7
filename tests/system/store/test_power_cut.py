"""What the journal says of a recording is on the disk when it says so: power may go right after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.machine.power_cut import left_of, watched
from support.runs.campaigns import ROOT, events_of

from labctl.core.events import Kind
from labctl.store.verifying.verify import verify_campaign

CHILD = """
import os, sys
from pathlib import Path
from support.runs.campaigns import make_campaign, policy
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.campaign_writer import CampaignWriter

log = CampaignWriter.log

def until_sealed(writer, kind, *given, **named):
    event = log(writer, kind, *given, **named)
    if kind == Kind.RECORDING_SEALED:
        os._exit(9)
    return event

CampaignWriter.log = until_sealed
arms = [policy("policy-a"), policy("policy-b")]
opened = make_campaign(Path(sys.argv[1]), arms, cameras=True, durable=True, budget=3.0)
run_campaign(opened.folder, lambda line: None, manual=True)
"""


@pytest.mark.thorough
def test_a_sealed_recording_survives_a_loss_of_power(tmp_path: Path) -> None:
    synced, lab, found = tmp_path / "synced", tmp_path / "lab", tmp_path / "found"
    environment = {**watched(synced), "PYTHONPATH": str(ROOT / "tests")}
    child = subprocess.run([sys.executable, "-c", CHILD, lab], env=environment, capture_output=True, text=True)
    assert child.returncode == 9, child.stderr
    (folder,) = (lab / "campaigns").iterdir()
    left_of(folder, synced, found / folder.name)
    (sealed,) = [event for event in events_of(found / folder.name) if event.kind == Kind.RECORDING_SEALED]
    assert {"wrist", "over_shoulder"} <= set(sealed.body["videos"]) and sealed.body["streams"]["arm/state"]["n"] > 100
    assert [str(problem) for problem in verify_campaign(found / folder.name).problems] == []
