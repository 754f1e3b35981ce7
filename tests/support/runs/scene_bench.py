"""Run nodes on benches whose protocols have rules for the scene; both cameras are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labctl.store.campaign import Campaign
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

CAMERAS = ("over_shoulder", "wrist")


@contextmanager
def scene_benches(folder: Path) -> Iterator[Callable[..., Bench]]:
    """What makes a bench with both cameras; rules are lines of [scene]."""
    opened: list[Campaign] = []

    def made(*rules: str) -> Bench:
        scene = "\n".join(["[scene]", *rules, "[design]"])
        arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
        made_in = make_campaign(folder, arms, cameras=True, protocol={"[design]": scene}).folder
        opened.append(Campaign.open(made_in, writer=True))
        return Bench(opened[-1])

    yield made
    for campaign in opened:
        campaign.close()
