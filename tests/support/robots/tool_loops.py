"""Closed ways of an FR3's tool, and the joints that an inverse kinematics answers them with, pose after pose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3, FR3_LOWER, FR3_UPPER, Inverse, fr3_downward

SPEED_M_S = 0.1
TILT_RAD = 0.44
PLACE = (0.5, 0.0, 0.3)
DOWN = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, slots=True)
class Loop:
    """A closed way: `at` gives the tool's shift (3,), m, after a share of it; length_m."""

    at: Callable[[float], np.ndarray]
    length_m: float

    @property
    def takes_s(self) -> float:
        return self.length_m / SPEED_M_S


def _circle(share: float) -> np.ndarray:
    return 0.1 * np.array([math.sin(2 * math.pi * share), 1 - math.cos(2 * math.pi * share), 0.0])


def _eight(share: float) -> np.ndarray:
    return np.array([0.05 * math.sin(4 * math.pi * share), 0.1 * math.sin(2 * math.pi * share), 0.0])


def _length(at: Callable[[float], np.ndarray]) -> float:
    points = np.array([at(share) for share in np.linspace(0.0, 1.0, 2001)])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


LOOPS = {"circle of 0.1 m": Loop(_circle, _length(_circle)), "figure of eight": Loop(_eight, _length(_eight))}


def before(chain: kinematics.Chain, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
    """The FR3's inverse kinematics as it was until issue 20.5: the closed form for what points straight down, wherever
    the robot stood, and the nearest joints for the rest.
    """
    if float(np.abs(poses[:, 5:]).max()) < 1e-6:
        return np.clip(fr3_downward(chain, poses), FR3_LOWER, FR3_UPPER)
    return kinematics.solve(chain, poses, q_seed, FR3_LOWER, FR3_UPPER)


def tilted(angle: float) -> np.ndarray:
    """The orientation (4,) of a tool that leans sideways by an angle from straight down."""
    x, _, _, w = DOWN
    c, s = math.cos(angle / 2), math.sin(angle / 2)
    return np.array([c * x + s * w, 0.0, 0.0, c * w - s * x])


def led(inverse: Inverse, poses: np.ndarray, q: np.ndarray) -> Iterator[np.ndarray]:
    """Joints (7,) for each of the poses (n, 7), each asked for alone and from the joints before it."""
    for pose in poses:
        q = inverse(FR3.chain, pose[None, :], q)[0]
        yield q


def leaning(inverse: Inverse, rows: int = 60) -> np.ndarray:
    """Joints (7,) of an FR3 that was led from home to PLACE while its tool was tilted by TILT_RAD."""
    first = np.array(kinematics.pose(FR3.chain, FR3.home.tolist()))[:3]
    shares = np.linspace(0.0, 1.0, rows)
    poses = np.array([[*(first + share * (np.array(PLACE) - first)), *tilted(share * TILT_RAD)] for share in shares])
    return list(led(inverse, poses, FR3.home))[-1]


def drift(inverse: Inverse, loop: Loop, q0: np.ndarray, rate_hz: float) -> np.ndarray:
    """How far (loops,) rad the joints are from where they began after each loop of a simulated minute, at rate_hz."""
    pose = np.array(kinematics.pose(FR3.chain, q0.tolist()))
    each = round(loop.takes_s * rate_hz)
    way = np.array([[*(pose[:3] + loop.at((i + 1) / each)), *pose[3:]] for i in range(each)])
    loops = round(60.0 / loop.takes_s)
    rows = np.array(list(led(inverse, np.tile(way, (loops, 1)), q0)))
    return np.abs(rows[each - 1 :: each] - q0).max(axis=1)
