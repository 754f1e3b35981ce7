"""An emulated FR3 in a cell that leaves speeds to the robot, given DROID's actions by the robot's own clock.

May not: judge, or wait for longer than a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from labctl.clock import MILLISECOND
from labctl.config.cell_schema import Cell, Limits
from labctl.devices import Setpoints
from labctl.drivers.common.robot_tables import FR3
from labctl.testing.robot import RobotRig
from support.robots.emulators import Emulator

WIDE = Limits(
    velocity_rad_s=FR3.velocity.tolist(),
    acceleration_rad_s2=[10.0] * 7,
    box_min_m=[-1.0, -1.0, -1.0],
    box_max_m=[1.0, 1.0, 1.5],
)
Wanted = Callable[[float, np.ndarray], np.ndarray | None]


@contextmanager
def droid_rig(cell: Cell, servo: str) -> Iterator[RobotRig]:
    """The robot of an emulated cell, connected and at home."""
    emulator = Emulator("fr3", "ahead=true")
    cell = cell.model_copy(update={"robot": cell.robot.model_copy(update={"limits": WIDE})})
    options = cell.robot.options
    options["driver_options"] |= {"host": emulator.host, "servo": servo}
    made = RobotRig("emulated", options, cell, live=True)
    try:
        made.connect()
        yield made
    finally:
        made.robot.close()
        emulator.end()


def pulled(rig: RobotRig, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
    """The robot's own times (n,) s and its joints (n, 7) while it is given what `wanted` says for the time since the
    first target and for the joints measured then; None ends it.
    """
    robot, rows, began = rig.robot, list[np.ndarray](), None
    rig.drain()
    over_ns = rig.now_ns + 60_000 * MILLISECOND
    while rig.now_ns < over_ns:
        rows += [batch.values for batch in rig.drain() if batch.stream == "arm/state"]
        if rows:
            at_s = float(rows[-1][-1, -1])
            began = at_s if began is None else began
            goal = wanted(at_s - began, rows[-1][-1, :7])
            if goal is None:
                break
            robot.follow(Setpoints(np.array([rig.now_ns]), goal[None, :], np.array([0.08])))
        rig.clock.sleep_until(rig.now_ns + 10 * MILLISECOND)
    assert robot.status().mode in ("idle", "moving"), robot.status()
    found = np.concatenate(rows)
    return found[:, -1] - began, found[:, :7]
