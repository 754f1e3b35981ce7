"""How many simulated 30 s episodes a minute one core runs: arm, controller, recorder, journal, no cameras."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy

from labctl.clock import SECOND, cpu_ns
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign

# A cell for many episodes: what it measures is coarser, which nothing but the benchmark uses.
FAST = {
    "state_hz = 100.0": "state_hz = 50.0",
    "control_hz = 100.0": "control_hz = 50.0",
    "observe_hz = 10.0": "observe_hz = 4.0",
    "duration_s = 0.3": "duration_s = 2.0",
    "[storage]": "[storage]\nchunk_s = 10.0",
}


@pytest.mark.benchmark
@pytest.mark.parametrize("fast", [False, True], ids=["as-in-hw_configs", "fast-cell"])
def test_simulated_episodes_per_minute(tmp_path: Path, fast: bool) -> None:
    """Episodes of one item and a 30 s budget, by policies that mostly need all of it; CPU time, one core."""
    rates = FAST if fast else {}
    arms = [HUMAN, policy("policy-a", skill="slow"), policy("policy-b", skill="slow"), policy("policy-c", skill="slow")]
    campaign = make_campaign(tmp_path, arms, blocks=8, budget=30.0, items=2, arming=1.0, cell=rates)
    started = cpu_ns()
    run_campaign(campaign.folder, lambda line: None, manual=True)
    cpu_s = (cpu_ns() - started) / SECOND
    events = events_of(campaign.folder)
    go = {event.episode: event.body["go_ns"] for event in events if event.kind == Kind.GO}
    ended = {event.episode: event.body["end_ns"] for event in events if event.kind == Kind.EPISODE_ENDED}
    simulated_s = sum(ended[episode] - go[episode] for episode in go) / SECOND
    per_minute = 60.0 / (cpu_s / (simulated_s / 30.0))
    print(
        f"\n{len(go)} episodes, {simulated_s:.0f} s simulated in {cpu_s:.1f} CPU s: "
        f"{simulated_s / cpu_s:.0f} x real time, {per_minute:.0f} episodes of 30 s a minute"
    )
