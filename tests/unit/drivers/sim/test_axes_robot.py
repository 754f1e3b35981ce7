"""A simulated robot on a rail: what still moves is not at rest."""

from __future__ import annotations

import numpy as np
import pytest
from support.runs.axes import cell_of
from support.runs.campaigns import ROOT

from labctl.clock import SECOND
from labctl.config.cell_schema import parse_cell
from labctl.devices import Robot, Setpoints, load
from labctl.drivers.common.robot_tables import FR3
from labctl.errors import DeviceRefused
from labctl.testing.given import FIXTURE

PERIOD_NS = SECOND // 100


@pytest.fixture
def railed() -> Robot:
    text = (ROOT / "hw_configs/sim_fr3.toml").read_text("utf-8")
    for old, new in cell_of("sim_rail").items():
        text = text.replace(old, new, 1)
    made = load("sim_rail", {}, cell=parse_cell(text, "cell.toml"), fixture=FIXTURE)
    made.connect(0)
    return made


def led(robot: Robot, first: int, n: int) -> None:
    """Setpoints `first` to `first + n - 1` of a rail that is to go to 0.3 m while the joints stand."""
    t_ns = (1 + first + np.arange(n)) * PERIOD_NS
    q = np.tile(np.append(0.3, FR3.home), (n, 1))
    robot.follow(Setpoints(t_ns, q, np.zeros(n)))


def test_a_rail_that_still_moves_refuses_to_recover_though_the_joints_stand(railed: Robot) -> None:
    led(railed, 0, 30)
    assert railed.status().mode == "moving" and railed.observe()["dq"][0] > 0.1
    railed.stop()
    with pytest.raises(DeviceRefused, match="still moving"):
        railed.recover()
    led(railed, 30, 100)
    assert railed.observe()["dq"][0] == 0.0
    railed.recover()
    assert railed.status().mode == "idle"
