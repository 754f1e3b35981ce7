"""Simulated robots of other axes: what still moves is not at rest, and cameras draw what there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.robots.cells import cell_named
from support.runs.axes import cell_of
from support.runs.campaigns import ROOT

from labctl.clock import SECOND
from labctl.config.cell_schema import parse_cell
from labctl.devices import Robot, Setpoints, load
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.simulated_axes import ON_A_RAIL
from labctl.drivers.sim.axes.limiter import AxisLimiter
from labctl.drivers.sim.robot import SimRobot
from labctl.errors import DeviceRefused
from labctl.testing.given import FIXTURE
from labctl.testing.robot_rig import SCENE

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


@pytest.mark.parametrize(
    ("rows", "height_m", "mode"), [(10, 0.06, "safety_stop"), (1, 0.06, "safety_stop"), (10, 0.3, "idle")]
)
def test_a_rail_that_is_pushed_while_the_joints_stand_stops_at_a_wall(
    railed: Any, rows: int, height_m: float, mode: str
) -> None:
    """As a person drives it (docs/teleop.md): the tool is in the right tote, and the carriage takes it to the left."""
    railed.stage(SCENE, 1, 0)
    stand = SimRobot.to_joints(railed, np.array([[0.48, -0.2, height_m, 1.0, 0.0, 0.0, 0.0]]), FR3.home)[0]
    railed._limiter.reset(stand)
    for first in range(0, 400, rows):
        t_ns = (1 + first + np.arange(rows)) * PERIOD_NS
        railed.follow(Setpoints(t_ns, np.tile(np.append(0.35, stand), (rows, 1)), np.zeros((rows, 1))))
    assert railed.status().mode == mode
    stops = [event.body["reason"] for event in railed.events() if event.kind == "safety_stop"]
    assert stops == (["the tool hit the wall of tote 'right'"] if mode == "safety_stop" else [])
    assert bool(railed.observe()["tcp"][1] < 0.05) is (mode == "safety_stop")


@pytest.mark.parametrize("name", ["sim_rail", "sim_hand", "sim_base"])
def test_the_shipped_cells_cameras_draw_a_robot_of_other_axes_and_where_it_has_gone(name: str) -> None:
    """A camera knows arms of six and seven joints with two fingers; a rail made it stop at its first picture."""
    cell = cell_named(name)
    robot = load(name, {}, cell=cell, fixture=FIXTURE)
    robot.connect(0)
    robot.stage(SCENE, 1, 0)
    robot.drain(0)

    def pictures() -> list[np.ndarray]:
        found = []
        for table in cell.camera:
            made = load(table.driver, table.given, cell=cell, fixture=FIXTURE)
            made.connect(0)
            made.sense(robot.observe())
            found.append(made.grab(SECOND).image)
        return found

    before = pictures()
    q, opened = np.tile(robot.observe()["q"], (100, 1)), np.tile(robot.observe()["gripper"], (100, 1))
    led = {"sim_rail": 0, "sim_hand": 0, "sim_base": 8}[name]  # the rail, the first joint, a base's vy
    q[:, led] += 0.25
    hand = opened[:, 0] if opened.shape[1] == 1 else opened
    robot.follow(Setpoints((1 + np.arange(100)) * PERIOD_NS, q, hand))
    changed = [np.abs(now.astype(int) - then).max(axis=2) > 30 for now, then in zip(pictures(), before, strict=True)]
    assert changed[0].mean() > 0.005, "the arm is drawn elsewhere"


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6))
@example([1.0, -1.0])  # 0.8 m / 0.6 m/s + 0.6 m/s / 2 m/s2 = 1.63 s; given 1.5, it was not there yet
def test_a_rail_that_is_sent_to_its_end_brakes_before_it_as_gently_as_anywhere(places: list[float]) -> None:
    """It came to its end with what was left of its last step, up to an eighth harder than it may brake."""
    rail = next(axis for axis in ON_A_RAIL if axis.kind == "prismatic")
    limiter = AxisLimiter([rail], 0.01)
    wanted = np.repeat([rail.lower + (rail.upper - rail.lower) * (1 + place) / 2 for place in places], 200)
    at = np.concatenate([np.zeros(2), limiter.follow(wanted[:, None])[:, 0]])
    speed = np.diff(at) * 100
    assert np.abs(speed).max() <= rail.velocity and np.abs(np.diff(speed)).max() * 100 <= rail.acceleration
    assert at[-1] == pytest.approx(wanted[-1], abs=1e-6)
