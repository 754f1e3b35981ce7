"""A person at a gamepad (a joystick in SDL) moves items with a robot on a rail and a vacuum cup: real processes, the
real device driver, labctl's own teleoperation, by this machine's clock.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from support.robots.item_movers import Eyes
from support.robots.seeing_hand import SURE_M, Onlooker
from support.robots.virtual_hand import Fingers
from support.runs.axes import cell_of, teleop
from support.runs.campaigns import ROOT, events_of, make_campaign, policy
from support.runs.live_campaign import end_of, running

from labctl.cli import call
from labctl.config.cell_schema import parse_cell
from labctl.core.events import Kind
from labctl.devices import declared_axes

pytestmark = [pytest.mark.real_time, pytest.mark.thorough]


def test_a_person_at_a_gamepad_moves_items_with_a_robot_on_a_rail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    cell, socket = cell_of("sim_rail"), tmp_path / "hand.sock"
    led = teleop("support.robots.virtual_hand:build", "sim_rail")
    options = f'[teleop.options]\nsocket = "{socket}"\n'
    cell["[readiness]"] = f"{led}{options}\n{cell['[readiness]']}"
    person = {"name": "human", "kind": "human", "controller": "teleop", "options": {}}
    folder = make_campaign(
        tmp_path, [person, policy("policy-a", skill="swift")], live=True, budget=60.0, cell=cell
    ).folder
    frozen = parse_cell(next((tmp_path / "cells").glob("*.toml")).read_text("utf-8"), "cell.toml")
    axes = declared_axes(frozen.robot.driver, frozen.robot.options)
    assert axes is not None
    with (
        closing(Fingers(socket)) as hand,
        Eyes(folder, Onlooker(hand, frozen, tuple(axes), sure_m=SURE_M / 5)),  # fifty looks a second
        running(folder, tmp_path / "run.log") as run,
    ):
        assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    outcomes = [event.body["outcome"] for event in events_of(folder) if event.kind == Kind.OUTCOME_RECORDED]
    assert [outcome["moved"] for outcome in outcomes] == [1, 1], (tmp_path / "run.log").read_text()
    assert call(["verify", str(folder)]) == 0
