"""A picture in an MCAP file has two times: its message is logged when it was received and says when its light fell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from support.cameras.recorded_videos import write_video

from labctl.clock import SECOND
from labctl.core.events import EndReason, Event, Kind
from labctl.core.outcome import outcome_from
from labctl.core.record_fold import record_of
from labctl.core.trial import CampaignState, State, Trial
from labctl.exports.mcap import write_mcap
from labctl.exports.recordings import Pictures, Recording
from labctl.exports.selection import Chosen, Selection

WALL_NS = 1_767_225_600 * SECOND  # 2026-01-01, at 5 s of the host's clock
RECEIVED = [6 * SECOND, 6 * SECOND + 101_000_123, 6 * SECOND + 198_000_456]
PLACES_US = [0, 101_000, 198_000]


def recording(path: Path, latency_s: float) -> Recording:
    """An episode of one camera and nothing else."""
    outcome = outcome_from({"items_staged": 1, "moved": 1, "lost": 0, "remaining": 0, "end_reason": "budget"})
    trial = Trial(
        "t",
        0,
        0,
        "cup/l1",
        "trial 1 of 1",
        State.SCORED,
        "e",
        ("e",),
        max_voids=3,
        outcome=outcome,
        ended=EndReason.BUDGET,
    )
    events = tuple(
        Event(seq, kind, at_ns, "b", f"2026-01-01T00:00:{at_ns // SECOND - 5:02}Z", "run", "t", "e", body)
        for seq, kind, at_ns, body in (
            (1, Kind.EPISODE_STARTED, 5 * SECOND, {}),
            (2, Kind.EPISODE_ENDED, 7 * SECOND, {"reason": "budget", "end_ns": 7 * SECOND}),
        )
    )
    pictures = Pictures(path, np.array(RECEIVED), np.array(PLACES_US), latency_s)
    chosen, anchor = Chosen("e", trial, None, "success", "cup", "budget"), (5 * SECOND, WALL_NS)
    nothing: Any = None
    episode = record_of(events, CampaignState()).episodes["e"]
    return Recording(chosen, (), {"wrist": pictures}, episode, events, 5 * SECOND, 7 * SECOND, anchor, nothing, {})


def wall(host_ns: int) -> int:
    return host_ns - 5 * SECOND + WALL_NS


@pytest.mark.parametrize("latency_s", [0.0, 0.042])
def test_it_is_logged_when_received_and_stamped_when_its_light_fell(tmp_path: Path, latency_s: float) -> None:
    video = write_video(tmp_path / "v.mp4", PLACES_US)
    counts = write_mcap(tmp_path / "e.mcap", recording(video, latency_s), Selection([], [], False, {}, {}, {}))
    assert counts["/camera/wrist"] == 3
    with (tmp_path / "e.mcap").open("rb") as file:
        found = [
            (message.log_time, json.loads(message.data)["timestamp"])
            for _, _, message in make_reader(file).iter_messages(topics=["/camera/wrist"])
        ]
    assert [log_ns for log_ns, _ in found] == [wall(t_ns) for t_ns in RECEIVED]
    lights = [stamp["sec"] * SECOND + stamp["nsec"] for _, stamp in found]
    assert lights == [wall(t_ns) - round(latency_s * SECOND) for t_ns in RECEIVED]
