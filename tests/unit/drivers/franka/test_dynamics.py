"""The emulated FR3's rigid bodies: energy is kept where no torque acts, a load makes the robot slower."""

from __future__ import annotations

import numpy as np

from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.franka.emulator.dynamics import MOTORS, Dynamics, hand

RNG = np.random.default_rng(0)


def test_an_arm_that_nothing_pushes_keeps_its_energy() -> None:
    """Gravity is out and friction is none: what Coriolis forces do to the joints comes from the mass matrix alone."""
    arm = Dynamics([hand(0.73)])
    start = np.concatenate([FR3.home + RNG.normal(size=7) * 0.3, RNG.normal(size=7)])

    def energy(at: np.ndarray) -> float:
        return float(at[7:] @ (arm.terms(at[:7], at[7:])[0] + np.diag(MOTORS)) @ at[7:]) / 2

    def rate(at: np.ndarray) -> np.ndarray:
        return np.concatenate([at[7:], arm.acceleration(at[:7], at[7:], np.zeros(7))])

    at, step = start, 1e-3
    for _ in range(300):  # Runge and Kutta's of fourth order
        a = rate(at)
        b = rate(at + step / 2 * a)
        c = rate(at + step / 2 * b)
        at = at + step / 6 * (a + 2 * b + 2 * c + rate(at + step * c))
    assert np.abs(at[:7] - start[:7]).max() > 0.2, "it moved"
    assert abs(energy(at) / energy(start) - 1) < 1e-9


def test_what_hangs_on_the_flange_is_carried() -> None:
    """A point of 2 kg 0.2 m before the flange: 2 kg times the square of its way in the first joint's turn (Steiner)."""
    bare, laden = Dynamics(), Dynamics([(2.0, (0.0, 0.0, 0.2), np.zeros((3, 3)))])
    q = np.array([0.0, 0.3, 0.0, -1.9, 0.0, 2.2, 0.0])
    turn, at = bare._frames(q)
    point = at[6] + turn[6] @ np.array([0.0, 0.0, 0.307])
    more = laden.terms(q, np.zeros(7))[0] - bare.terms(q, np.zeros(7))[0]
    assert np.isclose(more[0, 0], 2.0 * (point[0] ** 2 + point[1] ** 2), rtol=1e-12)
    assert (np.linalg.eigvalsh(more) > -1e-12).all()
