"""A cell whose robot is seen less than five times a second: turns of the run are far apart, and none came late."""

from __future__ import annotations

from pathlib import Path

from support.runs.campaigns import events_of, make_campaign, policy

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign

RARE = {"observe_hz = 10.0": "observe_hz = 4.0", "duration_s = 0.3": "duration_s = 2.0"}


def test_an_episode_ends_at_its_budget_however_rarely_the_robot_is_seen(tmp_path: Path) -> None:
    """Each turn a quarter of a second after the one before was once taken for a loop that had stood still, whose mail
    counts before the clock: no budget ever ended an episode.
    """
    arms = [policy("idle", skill="slow"), policy("slow", skill="slow")]
    campaign = make_campaign(tmp_path, arms, blocks=1, budget=4.0, items=1, arming=1.0, cell=RARE)
    run_campaign(campaign.folder, lambda line: None, manual=True)
    events = events_of(campaign.folder)
    go = {event.episode: event.body["go_ns"] for event in events if event.kind == Kind.GO}
    ended = {event.episode: event.body for event in events if event.kind == Kind.EPISODE_ENDED}
    assert [body["reason"] for body in ended.values()] == ["budget", "budget"]
    assert all(body["end_ns"] == go[episode] + 4 * SECOND for episode, body in ended.items())
