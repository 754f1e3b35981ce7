"""How simulated controllers slide a lid: when, and along which way.

May not: know the scene beyond what an observation says of the lid (`SlidingLid.row`).
"""

from __future__ import annotations

import numpy as np

from labctl.drivers.common.simulated_axes import OPEN_M
from labctl.drivers.sim.legs import CLEAR_M, CLOSE_S, HOVER_M, OPENING_S, Legs, Point
from labctl.drivers.sim.lid import CLOSED, OPEN

BEYOND = 0.05  # of the way, that a lid is pulled farther than it goes


def to_slide(lid: np.ndarray, *, work_left: bool) -> bool:
    """Open it while there is something to put in, close it after."""
    return bool(lid[6] < OPEN) if work_left else bool(lid[6] > CLOSED)


def slide(legs: Legs, here: Point, lid: np.ndarray, aim: np.ndarray) -> None:
    """To the handle, along its way to the other end, and off. aim (2,): by how much the hand misses the handle, m."""
    start = lid[:3] + lid[6] * lid[3:6]
    end = lid[:3] + (1 + BEYOND if lid[6] < OPEN else -BEYOND) * lid[3:6]
    x, y, z = (float(value) for value in start + np.array([*aim, 0.0]))
    to_x, to_y, _ = (float(value) for value in end)
    yaw = here[3]
    legs.go((here[0], here[1], CLEAR_M, yaw))
    legs.go((x, y, max(CLEAR_M, z + HOVER_M), yaw))
    legs.go((x, y, z, yaw))
    legs.grip(0.0, CLOSE_S)
    legs.go((to_x, to_y, z, yaw))
    legs.grip(OPEN_M, OPENING_S)
    legs.go((to_x, to_y, max(CLEAR_M, z + HOVER_M), yaw))


def free_part(tote: np.ndarray, lid: np.ndarray | None) -> np.ndarray:
    """The part of a tote (6,: centre x y z, size x y z) that no lid covers, as a tote; of one without a lid, it."""
    if lid is None:
        return tote
    axis = int(np.argmax(np.abs(lid[3:5])))
    slid = float(lid[6] * lid[3 + axis])
    free = tote.copy()
    free[3 + axis] = abs(slid)
    free[axis] -= np.sign(slid) * (tote[3 + axis] - abs(slid)) / 2
    return free
