"""Recorded joint campaigns that tests only read (`Recordings.of`), and what they need to be read."""

from __future__ import annotations

import shutil
from pathlib import Path

from labctl.core.trial_table import State
from labctl.joint.seal_host import writing
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from support.joint.joint_labs import answering, finish, make_labs, unblind

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
CELLS = ("a", "b")
BLIND = "blind"


def recorded_cells(lab: Path, *, cameras: bool, blocks: int = 4) -> Path:
    """Two cells that ran a joint campaign, unblinded; below BLIND as each was before. The first cell's folder."""
    labs = make_labs(lab, cells=CELLS, cameras=cameras, blocks=blocks, changed=SMALL if cameras else {})
    with answering(labs):
        folders = [labs.join(cell) for cell in CELLS]
        for folder in folders:
            said: list[str] = []
            run_campaign(folder, said.append, manual=True)
            with Campaign.open(folder) as campaign:
                states = {trial.state for trial in campaign.state.trials.values()}
            assert states == {State.SCORED}, "\n".join(said)  # seen once: two of four trials without an episode
            finish(folder)
        for cell in CELLS:
            shutil.copytree(lab / cell, lab / BLIND / cell)
        with writing(labs.made.folder, "test") as host:
            host.unblind(who="lee", reason="")
        for folder in folders:
            unblind(folder)
    return folders[0]


def cell_folders(first: Path, *, blinded: str = "") -> list[Path]:
    """Both cells' folders of what `recorded_cells` returned, those of the cells in `blinded` as they were before."""
    lab = first.parents[2]
    return [(lab / BLIND if cell in blinded else lab) / cell / "campaigns" / f"two-{cell}" for cell in CELLS]
