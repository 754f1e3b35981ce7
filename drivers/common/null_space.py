"""The inverse kinematics of a robot with one joint more than a pose needs: what that leaves open keeps a posture, so
that the same tool pose ends in the same joints.

May not: know time, a cell or a driver.

Of all joints that reach a pose, those are taken where a cost has its least: half the square of the joint that rests at
zero, and of how far the joints that the elbow's swing turns are within MARGIN_RAD of their ends (DROID's solver keeps
0.3 rad too: droid/robot_ik/robot_ik_solver.py, minimum_distance_from_joint_position_limit, whose posture are zeros as
well). A robot that stands elsewhere, led by hand, does not swing its elbow for that: what the cost's slope is at the
seed it stays where the tool stays, and it falls off with the way of the tool, to 1/e after SETTLE_M. A closed loop of
the tool therefore ends in the joints that it began in.

A pose that cannot be reached from where the robot is, or only with joints that turn much further than the tool goes, is
answered by those of the pose before it: the robot stays, on its branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.kinematics import Chain

MARGIN_RAD = 0.3
PUSH = 4.0  # how much more a joint's end counts than the posture
SETTLE_M = 0.3
TURN_M = 0.2  # a turn of the tool by one radian counts as a way of so much
FLAT = 0.05  # a cost that hardly bends along the elbow's swing bends by so much: steps stay small
BRANCH_RAD_M, BRANCH_RAD = 20.0, 0.01  # so far no joint turns for a way of the tool; at 0.3 m one turns by 3.3 rad/m
REACHED = 1e-3  # m and rad
STEPS, STEP_RAD, ENOUGH = 60, 0.3, 1e-7
STUCK = 5  # steps that came no nearer are enough
NEAR = 1e-5  # rad: a posture this near is good enough; the rest goes with the next poses


@dataclass(frozen=True, slots=True)
class Posture:
    """`rests`: the joint, from 0, that rests at zero; swings: those that the elbow turns; their ends (dof,), rad."""

    rests: int
    swings: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray

    def roomy(self, q: np.ndarray) -> bool:
        """Are the joints that swing all further than the margin from their ends, in every row of q (n, dof)?"""
        at = list(self.swings)
        inside = (q[:, at] >= self.lower[at] + MARGIN_RAD) & (q[:, at] <= self.upper[at] - MARGIN_RAD)
        return bool(inside.all())

    def slope(self, q: np.ndarray, swing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cost's slope (n,) and bend (n,) along the elbow's swing (n, dof) at q (n, dof)."""
        pull, bend = np.zeros_like(q), np.zeros_like(q)
        pull[:, self.rests], bend[:, self.rests] = q[:, self.rests], 1.0
        for i in self.swings:
            over = np.maximum(q[:, i] - self.upper[i] + MARGIN_RAD, 0.0)
            under = np.maximum(self.lower[i] + MARGIN_RAD - q[:, i], 0.0)
            pull[:, i] += PUSH * (over - under)
            bend[:, i] += PUSH * ((over > 0) | (under > 0))
        return (pull * swing).sum(axis=1), np.maximum((bend * swing * swing).sum(axis=1), FLAT)


def joints(chain: Chain, wanted: np.ndarray, q_seed: np.ndarray, posture: Posture) -> np.ndarray:
    """Joint angles (n, 7) within their ends whose tool poses approach `wanted` (n, 7), continuing from q_seed (7,).

    Damped least squares as `kinematics.solve`, all rows at once, with the posture in what that leaves open (Liegeois
    1977). The caller checks what is missed.
    """
    lower, upper = posture.lower, posture.upper
    seed = np.clip(q_seed, lower, upper)[None, :]
    goal = kinematics.turns(wanted)
    jac, tip, turn = kinematics.jacobian(chain, seed)
    first, way = _swing(jac)[0], _way(tip, turn, wanted, goal)
    slope = posture.slope(seed, first[None, :])[0] * np.exp(-way / SETTLE_M)
    q = np.repeat(seed, len(wanted), axis=0)
    nearest, stuck, size = np.inf, 0, np.empty(0)
    for _ in range(STEPS):
        jac, tip, turn = kinematics.jacobian(chain, q)
        error = kinematics.pose_error(wanted, goal, tip, turn)
        swing = _swing(jac)
        swing = swing * np.where(swing @ first < 0, -1.0, 1.0)[:, None]
        now, bend = posture.slope(q, swing)
        along = (slope - now) / bend
        size = np.linalg.norm(error, axis=1)
        left = float(size.max())
        stuck = stuck + 1 if left > ENOUGH and left > 0.99 * nearest else 0
        nearest = min(nearest, left)
        if stuck >= STUCK or (left < ENOUGH and float(np.abs(along).max()) < NEAR):
            break
        step = kinematics.damped_step(jac, error, size) + along[:, None] * swing
        q = np.clip(q + np.clip(step, -STEP_RAD, STEP_RAD), lower, upper)
    return _on_the_branch(q, seed[0], way, size < REACHED)


def _on_the_branch(q: np.ndarray, at: np.ndarray, way: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Rows (n, dof), each that was not reached, or lies on another branch, replaced by the one before it; the first
    comes after `at` (dof,). way (n,): how far the tool goes until each.
    """
    gone, found = 0.0, np.empty_like(q)
    for i, (row, far) in enumerate(zip(q, way, strict=True)):
        if reached[i] and float(np.abs(row - at).max()) <= BRANCH_RAD + BRANCH_RAD_M * (far - gone):
            at, gone = row, float(far)
        found[i] = at
    return found


def _swing(jac: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 7) along which the joints turn while the tool stays, of Jacobians (n, 6, 7)."""
    return np.linalg.svd(jac)[2][:, -1, :]


def _way(tip: np.ndarray, turn: np.ndarray, wanted: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """How far the tool goes from tip (1, 3) and turn (1, 3, 3) to each of the poses (n,), along them, in m."""
    places, turns = np.concatenate([tip, wanted[:, :3]]), np.concatenate([turn, goal])
    far = np.linalg.norm(np.diff(places, axis=0), axis=1)
    angles = np.linalg.norm(kinematics.rotation_vector(turns[1:] @ np.swapaxes(turns[:-1], 1, 2)), axis=1)
    return np.cumsum(far + TURN_M * angles)
