"""A campaign one of whose encoders hangs in mid-episode, each process in real time."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cameras.hanging_encoder import LAST
from support.runs.campaigns import ROOT, events_of, make_campaign, policy
from support.runs.live_campaign import end_of, of_kind, running

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.trial import State, fold
from labctl.nodes.video_recorder import STOOD_STILL
from labctl.store.verifying.verify import verify_campaign

HANGING = 'name = "wrist"\ndriver = "support.cameras.hanging_encoder:build"'


@pytest.mark.thorough
@pytest.mark.real_time
def test_an_encoder_that_hangs_costs_a_gap_and_neither_the_episode_nor_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the loss of a camera's pictures would end it: the policy sees them as before."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    cell = {'name = "wrist"\ndriver = "sim_camera"': HANGING}
    arms = [policy("policy-a", skill="slow"), policy("policy-b", skill="slow")]
    options = {"budget": 12.0, "arming": 5.0, "camera_lost": "end", "cell": cell}
    folder = make_campaign(tmp_path, arms, cameras=True, live=True, **options).folder
    log = tmp_path / "run.log"
    with running(folder, log) as run:
        assert end_of(run) == 0, log.read_text()
    assert {trial.state for trial in fold(events_of(folder)).trials.values()} == {State.SCORED}
    assert {event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)} == {"budget"}
    first, second = of_kind(folder, Kind.RECORDING_SEALED)
    stood = [event for event in of_kind(folder, Kind.GAP) if event.body["why"] == STOOD_STILL]
    assert {(event.episode, event.body["stream"]) for event in stood} == {(first.episode, "camera/wrist")}
    assert sum(event.body["to_ns"] - event.body["from_ns"] for event in stood) > 4 * SECOND
    frames = [event.body["videos"]["wrist"]["frames"] for event in (first, second)]
    assert 0 < frames[0] <= LAST < frames[1]
    assert verify_campaign(folder).problems == []
