"""A small campaign whose pictures say which they are, run in simulated time: what every export is held against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labctl.runtime.campaign_run import run_campaign
from support.runs.campaigns import HUMAN, make_campaign, policy

WIDTH, HEIGHT, RATE_HZ = 256, 192, 10.0
ZEBRA, QUAGGA, PERSON = "zebra-policy", "quagga-policy", "human"
ARMS = [
    policy(ZEBRA, endpoint="sim://zebra-endpoint:6161/v7", skill="swift", latency_s=0.0731862),
    policy(QUAGGA, endpoint="sim://quagga-endpoint:6262/v9", skill="clumsy", latency_s=0.0917743),
    HUMAN,
]


def cell_with(**options: Any) -> dict[str, str]:
    """Replacements that put coded cameras in the place of the shipped cell's; options are those of the camera over the
    shoulder."""
    lines = "\n".join(f"{name} = {value}" for name, value in options.items())
    return {
        'driver = "sim_camera"\nwidth = 320\nheight = 240': 'driver = "support.cameras.coded_camera:build"\n'
        f"width = {WIDTH}\nheight = {HEIGHT}",
        'view = "over_shoulder"': f"seed = 1\n{lines}",
        'view = "wrist"': "seed = 2",
    }


def run_coded(
    lab: Path,
    *,
    name: str = "zebra-or-quagga",
    arms: Any = ARMS,
    blocks: int = 2,
    items: int = 2,
    budget: float = 12.0,
    **options: Any,
) -> Path:
    """Open and run a campaign with coded cameras; its folder. The campaign's name names two arms."""
    given = {"items": items, "budget": budget, "blocks": blocks, "cell": cell_with(**options)}
    folder = make_campaign(lab, arms, name=name, cameras=True, arming=1.0, **given).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder
