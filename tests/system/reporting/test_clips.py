"""`labctl report` shows episodes of each arm by rule, cut from videos of an unblinded campaign and of none other."""

from __future__ import annotations

import io
import json
from pathlib import Path

import av
import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind

from labctl.errors import StateError
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.clips.cutting import clips
from labctl.runtime.campaign_run import run_campaign

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}


@pytest.mark.thorough
def test_a_report_shows_what_it_chose(tmp_path: Path) -> None:
    folder = make_campaign(
        tmp_path, [HUMAN, policy("policy-a", skill="swift")], cameras=True, budget=30.0, blocks=2, cell=SMALL
    ).folder
    run_campaign(folder, lambda line: None, manual=True)
    with pytest.raises(StateError, match="unblind it first"):
        clips(folder, [], without=())
    unblind(folder)
    out = tmp_path / "report"
    page = report_campaign(folder, out, boot=20, perm=20)
    lab = json.loads((out / "report.json").read_text())["lab"]
    episodes = {episode["episode"]: episode for episode in lab["episodes"]}
    assert {(clip["arm"], clip["kind"]) for clip in lab["clips"]} >= {
        (arm, kind) for arm in ("human", "policy-a") for kind in ("typical", "worst")
    }
    for clip in lab["clips"]:
        assert episodes[clip["episode"]]["arm"] == clip["arm"] and clip["camera"] == "over_shoulder"
        with av.open(io.BytesIO((out / clip["file"]).read_bytes())) as film:
            assert film.streams.video[0].codec_context.name == "h264"
            assert film.duration is not None and film.duration <= 10.0 * 1e6
    assert page.read_text().count("<video") == len(lab["clips"])


def test_a_campaign_without_cameras_has_no_clips(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    page = report_campaign(folder, tmp_path / "report", boot=20, perm=20)
    assert "<video" not in page.read_text()
