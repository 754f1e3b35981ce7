"""From a hand to the arm: how fast it follows and how late it is, by device and servo; printed, not judged.

A leader's last joint turns at a steady speed; a stick is pushed to the full at once. On the simulated arm in its own
time, on the emulators through the vendors' clients in this machine's. What the lab's processes add is not in it.

An emulated FR3 waits for its client: on a busy machine its time goes slower than the hand's, and what is measured then
is the machine. Its time as a share of this machine's is printed; below 99 % the figures say nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import Emulators
from support.robots.hand_to_robot import Drive, Followed, followed, push, sweep

from labctl.clock import SECOND
from labctl.drivers.teleop.gate import Caps
from labctl.testing.robot import RobotRig

TURN_S = 1.6
ROBOTS = {
    "sim_fr3": ("sim_fr3", {}),
    "sim_ur5": ("sim_ur5", {}),
    "fr3_velocity": ("emulated_fr3", {"servo": "velocity"}),
    "fr3_cartesian": ("emulated_fr3", {"servo": "cartesian"}),
    "ur5e": ("emulated_ur5e", {}),
    "ur5": ("emulated_ur5", {}),
}


def _robot_s(emulators: Emulators, cell_name: str, *, live: bool) -> float:
    """The emulated robot's own time, s."""
    return float(emulators[cell_name].stats()["robot_time_s"]) if live else 0.0


def words(found: Followed) -> str:
    late, half = found.late_s * 1e3, found.half_s * 1e3
    return f"{found.speed:.0%} of its speed, {late:.0f} ms behind, half speed after {half:.0f} ms"


@pytest.mark.benchmark
@pytest.mark.parametrize("name", ROBOTS)
def test_how_an_arm_follows_a_hand(name: str) -> None:
    cell_name, options = ROBOTS[name]
    live = cell_name.startswith("emulated")
    with Emulators(ahead=True) as emulators:
        given = emulators.options(cell_name) if live else {}
        if live:
            given["driver_options"] |= options
        rig = RobotRig("emulated" if live else cell_name, given, cell_named(cell_name), live=live)
        print()
        try:
            rig.connect()
            began_s, began_ns = _robot_s(emulators, cell_name, live=live), rig.now_ns
            for speed in (0.2, 0.4, 0.8):
                rig.stage()
                drive = Drive(rig, Caps(joint_rad_s=0.8), sweep(rig, speed, TURN_S), leader=True)
                way = drive.go(TURN_S + 0.5)
                found = followed(way.t_s, way.q[:, -1] - drive.q0[-1], speed, TURN_S)
                drive.end()
                print(f"{name}, leader at {speed} rad/s: {words(found)}")
            rig.stage()
            drive = Drive(rig, Caps(), push(1, 1.0), leader=False)
            way = drive.go(1.0)
            found = followed(way.t_s, np.abs(way.tcp[:, 1] - way.tcp[way.t_s <= 0][-1, 1]), 0.15, 1.0)
            drive.end()
            print(f"{name}, stick at 0.15 m/s: {words(found)}")
            if live:
                passed_s = _robot_s(emulators, cell_name, live=live) - began_s
                print(f"{name}: its time was {passed_s * SECOND / (rig.now_ns - began_ns):.1%} of this machine's")
        finally:
            rig.robot.close()
