"""How an emulated FR3 is accelerated by torques: the rigid bodies of its links and of what is set in Desk, its motors.

May not: know gravity (the robot takes it out of the torques that a client commands), or friction: how much of it the
robot's own controller compensates is not published.

Masses, centres and inertias are those of libfranka's test/fr3.urdf, the description that a robot gives its clients; the
hand's those of the state that Franka's documentation prints; the motors', which that description leaves out, were
identified on an FR3 in torque control (mujoco_menagerie, franka_fr3/fr3.xml, pull request 168). All axes are of a
link's frame, modified Denavit-Hartenberg as in `robot_tables`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from labctl.drivers.common.robot_tables import FLANGE_M, FR3_CHAIN, HAND_KG

# mass kg; centre of mass m; inertia about it, kg m2: xx xy xz yy yz zz
LINKS: Sequence[tuple[float, tuple[float, float, float], tuple[float, float, float, float, float, float]]] = (
    (
        2.9274653454,
        (4.128e-7, -0.0181251324, -0.0386035970),
        (0.0239273165, 1.33179e-05, -0.0001140477, 0.0224821614, -0.0019950321, 0.0063500983),
    ),
    (
        2.9355370338,
        (0.0031828864, -0.0743221644, 0.0088146084),
        (0.0419389463, 0.0002025733, 0.0040777842, 0.0251451489, -0.0042252158, 0.0617021447),
    ),
    (
        2.2449013699,
        (0.0407015686, -0.0048200565, -0.0289730823),
        (0.0241014255, 0.0024046946, -0.0028562693, 0.0197405327, -0.0021042127, 0.0190444945),
    ),
    (
        2.6155955791,
        (-0.0459100965, 0.0630492960, -0.0085187868),
        (0.0345299832, 0.0132255227, 0.0101514300, 0.0288816219, -0.0009762834, 0.0412547117),
    ),
    (
        2.3271207594,
        (-0.0016039605, 0.0292536262, -0.0972965990),
        (0.0516102785, -0.0057151734, -0.0035673168, 0.0478772971, 0.0106739851, 0.0164236256),
    ),
    (
        1.8170376524,
        (0.0597131221, -0.0410294666, -0.0101692726),
        (0.0054123336, 0.0061934564, 0.0014219289, 0.0140583295, -0.0013140754, 0.0160808179),
    ),
    (
        0.6271432862,
        (0.0045225817, 0.0086261921, -0.0161633251),
        (0.0002109239, -2.4332991e-05, 4.5644804e-05, 0.0001771857, 8.7440702e-05, 5.9931906e-05),
    ),
)
MOTORS = np.array([0.195, 0.195, 0.195, 0.195, 0.074, 0.074, 0.074])  # kg m2, as each joint feels its own
HAND_COM_M = (-0.01, 0.0, 0.03)  # of the hand, in the flange's frame
HAND_INERTIA = (0.001, 0.0025, 0.0017)  # about it, of one that weighs HAND_KG

_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b (..., 3): a fifth of what numpy's own takes for so few."""
    return a[..., _NEXT] * b[..., _LAST] - a[..., _LAST] * b[..., _NEXT]


class Dynamics:
    """A robot with what hangs on its flange: bodies of mass kg, centre (3,) m in the flange's frame and inertia (3, 3)
    kg m2 about it.
    """

    def __init__(self, held: Sequence[tuple[float, Sequence[float], np.ndarray]] = ()) -> None:
        self._mass = np.array([mass for mass, _, _ in LINKS])
        self._centre = np.array([centre for _, centre, _ in LINKS])
        self._inertia = np.array([_symmetric(*row) for _, _, row in LINKS])
        for mass, centre, inertia in held:
            self._hang(mass, np.array([*centre[:2], centre[2] + FLANGE_M]), inertia)
        turns = np.array([[math.cos(alpha), math.sin(alpha)] for _, alpha, _ in FR3_CHAIN.rows])
        self._cos, self._sin = turns.T
        self._shift = np.array([(a, -d * s, d * c) for (a, _, d), (c, s) in zip(FR3_CHAIN.rows, turns, strict=True)])
        self._below = np.tril(np.ones((7, 7)))[:, :, None]  # body i is turned by the joints up to its own

    def _hang(self, mass: float, centre: np.ndarray, inertia: np.ndarray) -> None:
        """One more body on the last link (Steiner's theorem)."""
        total = self._mass[6] + mass
        middle = (self._mass[6] * self._centre[6] + mass * centre) / total
        parts = ((self._mass[6], self._centre[6], self._inertia[6]), (mass, centre, inertia))
        self._inertia[6] = sum(own + kg * _about(at - middle) for kg, at, own in parts)
        self._mass[6], self._centre[6] = total, middle

    def terms(self, q: np.ndarray, dq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mass matrix (7, 7) kg m2 and the torques (7,) N m of Coriolis and centrifugal forces, of links and load:
        what libfranka's model says too.
        """
        turn, at = self._frames(q)
        axis = turn[:, :, 2]
        centre = at + (turn @ self._centre[:, :, None])[:, :, 0]
        inertia = turn @ self._inertia @ turn.transpose(0, 2, 1)
        # what a joint (column) does to a body (row): its centre's speed, its turning
        push = cross(axis[None, :, :], centre[:, None, :] - at[None, :, :]) * self._below
        spin = axis[None, :, :] * self._below
        moves = np.concatenate([push, spin], axis=2)
        loads = np.concatenate([push * self._mass[:, None, None], spin @ inertia], axis=2)  # an inertia is symmetric
        # accelerations of the bodies while the joints turn evenly, from the base outwards
        own = axis * dq[:, None]
        rate = own.cumsum(axis=0)
        before = rate - own
        turns = cross(before, own)
        bend = turns.cumsum(axis=0)
        span, lever = at.copy(), centre - at
        span[1:] -= at[:-1]
        origin = (cross(bend - turns, span) + cross(before, cross(before, span))).cumsum(axis=0)
        pull = origin + cross(bend, lever) + cross(rate, cross(rate, lever))
        around = (inertia @ np.stack([bend, rate], axis=2)).transpose(2, 0, 1)
        force = np.concatenate([pull * self._mass[:, None], around[0] + cross(rate, around[1])], axis=1)
        flat = moves.transpose(1, 0, 2).reshape(7, 42)
        return flat @ loads.transpose(1, 0, 2).reshape(7, 42).T, flat @ force.reshape(42)

    def acceleration(self, q: np.ndarray, dq: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """Of the joints, (7,) rad/s2, by torques (7,) N m beyond those that hold the robot up."""
        mass, coriolis = self.terms(q, dq)
        return np.linalg.solve(mass + np.diag(MOTORS), torque - coriolis)

    def _frames(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turns (7, 3, 3) and origins (7, 3) of the links' frames, in the base frame."""
        c, s = np.cos(q), np.sin(q)
        own = np.zeros((7, 3, 3))
        own[:, 0, 0], own[:, 0, 1] = c, -s
        own[:, 1, 0], own[:, 1, 1], own[:, 1, 2] = s * self._cos, c * self._cos, -self._sin
        own[:, 2, 0], own[:, 2, 1], own[:, 2, 2] = s * self._sin, c * self._sin, self._cos
        turn, at = np.empty((7, 3, 3)), np.empty((7, 3))
        here, where = np.eye(3), np.zeros(3)
        for i in range(7):
            where = where + here @ self._shift[i]
            here = here @ own[i]
            turn[i], at[i] = here, where
        return turn, at


def hand(kg: float) -> tuple[float, tuple[float, float, float], np.ndarray]:
    """An end effector of that mass as a body on the flange: spread as Franka's hand is, whatever it is."""
    return kg, HAND_COM_M, np.diag(HAND_INERTIA) * (kg / HAND_KG)


def _symmetric(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> np.ndarray:
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _about(at: np.ndarray) -> np.ndarray:
    """The inertia (3, 3) of one kilogram at a point (3,)."""
    return float(at @ at) * np.eye(3) - np.outer(at, at)
