"""Forward kinematics and a numerical inverse for serial arms in modified Denavit-Hartenberg form.

May not: know limits, time or any particular robot (`robot_tables` holds the tables).

Row i of a table is (a_{i-1}, alpha_{i-1}, d_i); joint i contributes Rx(alpha) Tx(a) Rz(q_i) Tz(d)
(Craig, Introduction to Robotics, ch. 3). A table in the standard form is the same list shifted by one row.
Poses are x y z qx qy qz qw in metres, base frame, scalar last, unit norm. Quaternions follow the joints continuously:
the sign is not normalised, so a pose stream never jumps between q and -q while the robot moves.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from labctl import rotations

SAME_TURN = 1e-5  # half a turn's sine: what states in single precision differ by


@dataclass(frozen=True, slots=True)
class Chain:
    """A serial chain: rows (a, alpha, d) in m and rad, then the tool in the frame of the last row: a shift (tool_xy,
    tool_z) in m, then a turn `tool_rpy` in rad, roll, pitch and yaw as in URDF: R = Rz(yaw) Ry(pitch) Rx(roll).

    Every alpha is a multiple of a quarter turn between -90 and 90 degrees, which keeps the products exact.
    """

    rows: tuple[tuple[float, float, float], ...]
    tool_z: float
    tool_rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tool_xy: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if any(math.sin(alpha) not in (-1.0, 0.0, 1.0) for _, alpha, _ in self.rows):
            raise ValueError("alpha must be 0 or a quarter turn")

    @property
    def dof(self) -> int:
        return len(self.rows)

    @property
    def on_axis(self) -> bool:
        """Does the tool lie on the last axis and point along it, however it is turned about it?"""
        return not any(self.tool_xy) and not any(self.tool_rpy[:2])


@lru_cache(maxsize=64)
def _tool_turn(rpy: tuple[float, float, float]) -> tuple[complex, complex]:
    """A and B (see `_turn`) of a tool's turn."""
    roll, pitch, yaw = (0.5 * angle for angle in rpy)
    a, b = cmath.exp(1j * yaw), 0j
    if roll or pitch:
        about_y, about_x = math.cos(pitch), math.cos(roll)
        up, side = 1j * math.sin(pitch), math.sin(roll)  # the parts B of a turn about y and of one about x
        b = a * (about_y * side + up * about_x)
        a = a * (about_y * about_x - up * side)
    return a, b


def tool_quaternion(chain: Chain) -> np.ndarray:
    """The tool's turn (4,), scalar last, in the frame of the chain's last row."""
    a, b = _tool_turn(chain.tool_rpy)
    return np.array([b.real, b.imag, a.imag, a.real])


def without_tool(chain: Chain, poses: np.ndarray) -> tuple[Chain, np.ndarray]:
    """The chain that ends at its last row, and where that has to be (n, 7) for the tool to be at `poses` (n, 7)."""
    turn = tool_quaternion(chain)
    last = rotations.product(poses[:, 3:], np.broadcast_to(turn * rotations.INVERSE, (len(poses), 4)))
    reach = np.array([*chain.tool_xy, chain.tool_z])
    bare = replace(chain, tool_z=0.0, tool_rpy=(0.0, 0.0, 0.0), tool_xy=(0.0, 0.0))
    return bare, np.column_stack([poses[:, :3] - rotations.matrix(last) @ reach, last])


def _position(chain: Chain, spin: Sequence[complex] | np.ndarray) -> tuple[Any, Any, Any]:
    """Tool position from exp(i q) per joint, from the tool back to the base. One code for numbers and for (n,) arrays.

    The point's x + i y is one complex number: a joint turns it by one product, a quarter turn about x swaps y and z.
    """
    u: Any = complex(*chain.tool_xy)
    z: Any = chain.tool_z
    for i in range(chain.dof - 1, -1, -1):
        a, alpha, d = chain.rows[i]
        if not (isinstance(u, complex) and u == 0):  # a tool on the last axis is not moved by it
            u = u * spin[i]
        if d:
            z = z + d
        if not alpha:
            u = u + a if a else u
            continue
        x = u.real + a if a else u.real
        if alpha > 0:
            u, z = x - 1j * z, u.imag
        else:
            u, z = x + 1j * z, -u.imag
    return u.real, u.imag, z


def _turn(chain: Chain, spin: Sequence[complex] | np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Tool orientation x, y, z, w from exp(i q / 2) per joint; numbers or (n,) arrays alike.

    With A = w + i z and B = x + i y a turn about z is A e^(i q/2), B e^(-i q/2), and a quarter turn about x is (A -
    B, B + A) / sqrt 2.
    """
    a: Any = 1 + 0j
    b: Any = 0j
    scale = 1.0
    for i in range(chain.dof):
        alpha = chain.rows[i][1]
        if alpha > 0:
            a, b = a - b, b + a
        elif alpha < 0:
            a, b = a + b, b - a
        if alpha:
            scale *= math.sqrt(0.5)
        a, b = a * spin[i], b * spin[i].conjugate()
    along, across = _tool_turn(chain.tool_rpy)
    if across:
        a, b = a * along - b * across.conjugate(), a * across + b * along.conjugate()
    elif along != 1:
        a, b = a * along, b * along.conjugate()
    return b.real * scale, b.imag * scale, a.imag * scale, a.real * scale


def positions(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Tool positions (3, n) in m for joint angles (n, dof) in rad: some 30 us for a few samples."""
    out = np.empty((3, q.shape[0]))
    out[0], out[1], out[2] = _position(chain, np.exp(1j * q.T))
    return out


def poses(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Tool poses (n, 7) for joint angles (n, dof) in rad."""
    out = np.empty((q.shape[0], 7))
    half = np.exp(0.5j * q.T)
    out[:, 0], out[:, 1], out[:, 2] = _position(chain, half * half)
    out[:, 3], out[:, 4], out[:, 5], out[:, 6] = _turn(chain, half)
    return out


def pose(chain: Chain, q: Sequence[float]) -> tuple[float, ...]:
    """Tool pose (7 floats) of one configuration, without numpy: some 5 us."""
    half = [cmath.exp(0.5j * angle) for angle in q]
    return (*_position(chain, [turn * turn for turn in half]), *_turn(chain, half))


def carried(poses: np.ndarray, origin: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Poses (n, 7) that lie from `to` (7,) as the given ones lie from `origin` (7,), differences in the base frame.

    With the same arm's tool as a model and as its controller sees it, this leads from one to the other: what does not
    differ from where the tool is stays where the tool is, however far the two are apart.
    """
    moved = poses[:, :3] - origin[:3] + to[:3]
    turn = rotations.product(to[None, 3:], origin[None, 3:] * rotations.INVERSE)
    if float(np.abs(turn[0, :3]).max()) < SAME_TURN:
        return np.column_stack([moved, poses[:, 3:]])
    turned = rotations.product(turn, poses[:, 3:])
    side = np.where((turned * poses[:, 3:]).sum(axis=1) < 0, -1.0, 1.0)[:, None]
    return np.column_stack([moved, side * rotations.unit(turned)])


def jacobian(chain: Chain, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Geometric Jacobians (n, 6, dof; linear rows first), tool positions (n, 3), rotations (n, 3, 3) for q (n, dof)."""
    n = q.shape[0]
    x, y, z = (np.broadcast_to(row, (n, 3)) for row in np.eye(3))  # the axes of the link, and where it begins
    origin = np.zeros((n, 3))
    cosine, sine = np.cos(q)[:, :, None], np.sin(q)[:, :, None]
    axis, base = np.empty((n, 3, chain.dof)), np.empty((n, 3, chain.dof))
    for i, (a, alpha, d) in enumerate(chain.rows):
        origin = origin + a * x
        ca, sa = math.cos(alpha), math.sin(alpha)
        y, z = ca * y + sa * z, ca * z - sa * y
        origin = origin + d * z
        x, y = cosine[:, i] * x + sine[:, i] * y, cosine[:, i] * y - sine[:, i] * x
        axis[:, :, i], base[:, :, i] = z, origin
    last = np.stack([x, y, z], axis=2)
    tip = origin + last @ np.array([*chain.tool_xy, chain.tool_z])
    turn = last @ rotations.matrix(tool_quaternion(chain)[None, :])[0]
    out = np.empty((n, 6, chain.dof))
    lever = tip[:, :, None] - base
    for k, (u, v) in enumerate(((1, 2), (2, 0), (0, 1))):
        out[:, k] = axis[:, u] * lever[:, v] - axis[:, v] * lever[:, u]
    out[:, 3:] = axis
    return out, tip, turn


def solve(chain: Chain, wanted: np.ndarray, q_seed: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Joint angles (n, dof) within lower..upper whose tool poses approach `wanted` (n, 7), all from q_seed (dof,).

    `wanted` (n, 3) asks for positions alone and leaves the orientation free.

    Damped least squares with Levenberg's damping that shrinks with the error (Nakamura and Hanafusa 1986), all poses at
    once; 60 iterations at most. The caller checks the residual: an unreachable pose ends at the nearest configuration
    found.
    """
    goal = turns(wanted) if wanted.shape[1] > 3 else None
    q = np.repeat(np.clip(q_seed, lower, upper)[None, :], wanted.shape[0], axis=0)
    for _ in range(60):
        jac, tip, turn = jacobian(chain, q)
        if goal is None:
            jac, error = jac[:, :3], wanted - tip
        else:
            error = pose_error(wanted, goal, tip, turn)
        size = np.linalg.norm(error, axis=1)
        if float(size.max()) < 1e-7:
            break
        q = np.clip(q + np.clip(damped_step(jac, error, size), -0.3, 0.3), lower, upper)
    return q


def damped_step(jac: np.ndarray, error: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Steps of the joints (n, dof) that lessen errors (n, k) of those sizes (n,), by Jacobians (n, k, dof)."""
    damping = (np.minimum(1e-2, 0.1 * size * size) + 1e-10)[:, None, None] * np.eye(error.shape[1])
    back = np.swapaxes(jac, 1, 2)
    return (back @ np.linalg.solve(jac @ back + damping, error[:, :, None]))[:, :, 0]


def turns(poses: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) of poses (n, 7) whose quaternions need not be of unit length."""
    return rotations.matrix(poses[:, 3:] / np.linalg.norm(poses[:, 3:], axis=1, keepdims=True))


def pose_error(wanted: np.ndarray, goal: np.ndarray, tip: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """From tools at tip (n, 3), turn (n, 3, 3) to poses wanted (n, 7), whose `turns` are goal: (n, 6) m and rad."""
    return np.concatenate([wanted[:, :3] - tip, rotation_vector(goal @ np.swapaxes(turn, 1, 2))], axis=1)


def rotation_vector(turn: np.ndarray) -> np.ndarray:
    """Axis times angle (n, 3), rad, of rotation matrices (n, 3, 3)."""
    axis = np.stack(
        [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], axis=1
    )
    sine = np.linalg.norm(axis, axis=1) / 2
    angle = np.arctan2(sine, (np.trace(turn, axis1=1, axis2=2) - 1) / 2)
    return axis * (np.where(sine > 1e-9, angle / np.maximum(2 * sine, 1e-18), 0.5))[:, None]
