"""A robot declares a column, and a stream, that could tell policies apart: no blind surface has either, with no line of
labctl changed (support.robots.telling_robot).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.robots.telling_robot import PLAIN, STREAM, TELLING
from support.runs.campaigns import HUMAN, make_campaign, policy, unblinded_copy
from support.runs.recordings import Recordings
from support.screens.all_text import hits

from labctl.cli import call
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from labctl.viewing.episode import look_at

# Formats give a stream's name another spelling (a file's, an entity's), so the word in it is looked for as well.
NAMES = [TELLING, STREAM, "grip_force", "thoughts"]
SHOWN = ["motor_temperature"]


def run_telling(lab: Path) -> Path:
    """A campaign of two episodes with such a robot; its folder."""
    cell = {'driver = "sim_fr3"': 'driver = "support.robots.telling_robot:build"'}
    arms = [policy("first", skill="swift"), HUMAN]
    folder = make_campaign(lab, arms, cell=cell, items=1, budget=4.0, arming=1.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture(scope="module")
def blinded(recordings: Recordings) -> Path:
    return recordings.of(run_telling)


@pytest.fixture(scope="module")
def unblinded(recordings: Recordings, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))


@pytest.mark.parametrize("form", ["parquet", "mcap", "npz"])
def test_no_export_has_it_before_unblinding_and_every_one_after(
    blinded: Path, unblinded: Path, tmp_path: Path, form: str
) -> None:
    for folder, out in ((blinded, tmp_path / "blind"), (unblinded, tmp_path / "open")):
        assert call(["export", str(folder), "--to", form, "--out", str(out)]) == 0
    assert hits(tmp_path / "blind", NAMES) == []
    assert {word for _, word in hits(tmp_path / "blind", SHOWN)} == {"motor_temperature"}
    after = {word for _, word in hits(tmp_path / "open", NAMES)}
    assert after >= ({TELLING} if form == "npz" else {"grip_force", "thoughts"})


def test_no_masked_view_has_it(blinded: Path, unblinded: Path) -> None:
    """`labctl show` and the rrd export draw what `look_at` gathers, and nothing else."""
    for folder in (blinded, unblinded):
        with Campaign.open(folder) as campaign:
            episodes = [episode for trial in campaign.state.trials.values() for episode in trial.episodes]
        for episode in episodes:
            seen = look_at(folder, episode, masked=True).streams
            columns = seen["arm/state"].columns
            assert STREAM not in seen and "arm/action" not in seen and "policy" not in seen
            assert PLAIN in columns and TELLING not in columns and "q.fr3_joint1" in columns
            assert seen["arm/state"].values.shape == (len(seen["arm/state"].t_ns), len(columns))
            assert not [name for name in columns if name.startswith(("dq.", "tau."))]
    whole = look_at(unblinded, episodes[0]).streams
    assert TELLING in whole["arm/state"].columns and STREAM in whole, "a control: it is there to be seen"
