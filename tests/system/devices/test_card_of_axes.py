"""A whole campaign of a policy whose card names each number of its actions (`space = "axes"`) and of a person: on a
rail with a vacuum cup, with a hand of five axes and on a base; verified, and recorded in the units of the card.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.policies.named_axes import card_of
from support.runs.axes import cell_of
from support.runs.campaigns import HUMAN, events_of, make_campaign, unblind
from support.runs.recordings import Recordings, copied

from labctl.cli import call
from labctl.core.events import Kind
from labctl.devices import declared_axes
from labctl.runtime.campaign_run import run_campaign
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore

# The least and the most that is asked of each axis that is no joint of the arm: places of it, or speeds either way.
MOVED = {
    "sim_rail": {"rail": (-0.4, 0.4), "vacuum": (0.0, 1.0)},
    "sim_hand": {f"hand.{finger}": (0.0, 1.4) for finger in ("thumb", "index", "middle", "ring", "little")},
    "sim_base": {"base.vx": (-0.3, 0.3), "base.vy": (-0.3, 0.3), "base.wz": (-0.6, 0.6), "gripper": (0.0, 0.08)},
}


def named(lab: Path, driver: str) -> Path:
    """A person and a policy that answers with named axes move two items each."""
    axes = declared_axes(driver, {})
    assert axes is not None
    (lab / "protocols").mkdir(parents=True)
    (lab / "protocols" / "axes.toml").write_text(card_of(tuple(axes)), "utf-8")
    arm = {"name": "policy-a", "kind": "policy", "controller": "support.policies.named_axes:build"}
    arms = [HUMAN, {**arm, "options": {"card": "axes.toml"}}]
    folder = make_campaign(lab, arms, items=2, budget=40.0, cell=cell_of(driver), entropy=bytes(32)).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.mark.parametrize("driver", list(MOVED))
def test_a_policy_whose_card_names_every_axis_moves_every_item_through_a_whole_campaign(
    driver: str, recordings: Recordings, tmp_path: Path
) -> None:
    recorded = recordings.of(named, driver=driver)
    copied(recorded.parent.parent, tmp_path / "lab")
    folder = tmp_path / "lab" / "campaigns" / recorded.name
    unblind(folder)
    assert call(["verify", str(folder)]) == 0
    events = events_of(folder)
    schedule = next(event.body["schedule"] for event in events if event.kind == Kind.CAMPAIGN_UNBLINDED)
    trial = next(slot["trial"] for slot in schedule if slot["arm"] == "policy-a")
    outcome = next(event for event in events if event.trial == trial and event.kind == Kind.OUTCOME_RECORDED)
    assert outcome.body["outcome"]["moved"] == 2
    store = TraceStore.open(sqlite_url(folder / "traces.db"), folder.name, readonly=True)
    try:
        episode = str(outcome.episode)
        spec = next(spec for spec in store.streams(episode) if spec.name == "arm/action")
        values = store.read(episode, "arm/action")[1]
    finally:
        store.close()
    axes = declared_axes(driver, {})
    assert axes is not None
    units = dict(zip(spec.columns, spec.units, strict=True))
    for axis in axes:
        assert units[f"requested.{axis.name}"] == axis.unit
    for axis, (least, most) in MOVED[driver].items():
        asked = values[:, spec.columns.index(f"requested.{axis}")]
        assert least - 1e-9 <= np.nanmin(asked) and np.nanmax(asked) <= most + 1e-9
        moved = np.ptp(asked[np.isfinite(asked)])
        assert moved >= 0.1 * (most - least), f"{axis} by {moved:.3f}"
