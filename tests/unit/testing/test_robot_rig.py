"""The rig that drives a robot as its node does: what it takes for rest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from labctl.clock import MILLISECOND, ManualClock
from labctl.config.cell_schema import parse_cell
from labctl.devices import Batch, StreamSpec
from labctl.testing.robot_rig import RobotRig

COLUMNS = ("q.a", "dq.a", "device_s")


class Late:
    """A robot on a machine that lets nothing run for 100 ms; what was given before moves it only then, for 60 ms."""

    streams = (StreamSpec("arm/state", COLUMNS, 100.0, "1"),)

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self._begin_ns, self._t_ns = clock, clock.now_ns(), clock.now_ns()
        self.q = self.dq = 0.0
        self.status = lambda: SimpleNamespace(mode="stopped")

    def drain(self, now_ns: int) -> list[Batch]:
        found: list[Batch] = []
        while (at_ns := self._t_ns + 10 * MILLISECOND) <= now_ns:
            self._t_ns = at_ns
            since = at_ns - self._begin_ns - 100 * MILLISECOND
            if since <= 0:
                continue
            self.dq = 0.5 if since <= 60 * MILLISECOND else 0.0
            self.q += self.dq * 0.01
            found.append(Batch("arm/state", np.array([at_ns]), np.array([[self.q, self.dq, at_ns / 1e9]])))
        return found

    def observe(self) -> dict[str, np.ndarray]:
        return {"q": np.array([self.q]), "dq": np.array([self.dq])}


def test_a_robot_of_which_nothing_was_heard_since_is_not_taken_for_one_at_rest() -> None:
    """It had not begun to move, by a state from before; it moved by 30 mrad after it had been seen at rest."""
    rig: Any = RobotRig.__new__(RobotRig)
    rig.live, rig.clock, rig.batches = True, ManualClock(10**9), []
    rig.robot = Late(rig.clock)
    rig.at_rest()
    stood = rig.robot.observe()["q"]
    rig.wait(500 * MILLISECOND)
    assert rig.robot.observe()["q"] == stood > 0


RAILED = """
[cell]
name = "railed"
kind = "sim"
[robot]
driver = "sim_rail"
state_hz = 100.0
control_hz = 100.0
observe_hz = 10.0
[robot.limits]
velocity_rad_s = [2.0, 2.0, 2.0, 2.0, 2.5, 2.5, 2.5]
acceleration_rad_s2 = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]
box_min_m = [0.15, -0.60, 0.00]
box_max_m = [0.80, 0.60, 0.80]
[lease]
duration_s = 0.3
stale_target_s = 0.5
"""
LIMITED = '[[robot.axis]]\nname = "rail"\nkind = "prismatic"\nunit = "m"\nvelocity = 0.4\n'


def test_what_a_cell_leaves_out_of_an_axis_is_held_to_the_drivers_own_limit() -> None:
    """Both keys may be left out, and so may the whole table. Found by a driver that somebody else wrote: its rail was
    held to an acceleration that is no number, which none keeps; without the table the suite ended with a KeyError.
    """
    rig = RobotRig(
        "sim_rail", {}, parse_cell(RAILED.replace("[lease]", LIMITED + "[lease]"), "railed.toml"), live=False
    )
    assert rig.fastest.tolist() == [0.4, 2.0, 2.0, 2.0, 2.0, 2.5, 2.5, 2.5]
    assert rig.hardest.tolist() == [2.0, *[8.0] * 7]
    rig = RobotRig("sim_rail", {}, parse_cell(RAILED, "railed.toml"), live=False)
    assert (rig.fastest[0], rig.hardest[0]) == (0.6, 2.0)
