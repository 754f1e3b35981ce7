"""Every start is the arming time after its commit, whoever drives and however long a policy takes to load."""

from __future__ import annotations

from pathlib import Path

from support.runs.campaigns import HUMAN, events_of, make_campaign, policy

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign

ARMING_S = 3.0


def test_a_person_starts_as_long_after_the_commit_as_a_policy_that_loads_slowly(tmp_path: Path) -> None:
    slow = policy("slow", skill="swift", load_s=1.5, warm_s=0.5)
    folder = make_campaign(tmp_path, [HUMAN, policy("quick", skill="swift"), slow], budget=3.0, arming=ARMING_S).folder
    run_campaign(folder, lambda line: None, manual=True)
    with Campaign.open(folder, writer=True) as campaign:
        arm_of = {trial: campaign.ledger.reveal(trial) for trial in campaign.state.trials}
    times: dict[str, dict[str, int]] = {}
    for event in events_of(folder):
        if event.kind in (Kind.SCENE_COMMITTED, Kind.EPISODE_STARTED):
            times.setdefault(arm_of[event.trial], {})[str(event.kind)] = event.at_ns
    waited = {arm: at[str(Kind.EPISODE_STARTED)] - at[str(Kind.SCENE_COMMITTED)] for arm, at in times.items()}
    assert waited == dict.fromkeys(("human", "quick", "slow"), round(ARMING_S * SECOND))
