"""Is the end effector that is set on a Franka robot the one that the cell says?

May not: talk to a robot. Both are in the frame of the flange (libfranka: F_T_EE, m_ee).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.drivers.common.robot_tables import Tool

NEAR_M, NEAR_RAD, NEAR_KG = 1e-3, 0.01, 0.05


def unlike(found: np.ndarray, found_kg: float, tool: Tool, kg: float) -> str:
    """What differs between a pose (4, 4) in m with a mass in kg and the cell's tool, and what to do, in one line; "" if
    nothing does. The values are written as the cell's keys have them.
    """
    from scipy.spatial.transform import Rotation

    turn, wanted = Rotation.from_matrix(found[:3, :3]), Rotation.from_euler("xyz", tool.rpy)
    off = np.abs(found[:3, 3] - tool.xyz)
    parts: list[tuple[str, str, str]] = []
    if off[:2].max() > NEAR_M:
        parts.append(("tool_xy_m", _list(found[:2, 3]), _list(tool.xyz[:2])))
    if off[2] > NEAR_M:
        parts.append(("tool_z_m", f"{found[2, 3]:.4f}", f"{tool.xyz[2]:.4f}"))
    if (turn * wanted.inv()).magnitude() > NEAR_RAD:
        parts.append(("tool_rpy_rad", _list(turn.as_euler("xyz")), _list(tool.rpy)))
    if abs(found_kg - kg) > NEAR_KG:
        parts.append(("tool_kg", f"{found_kg:.3f}", f"{kg:.3f}"))
    if not parts:
        return ""
    text = "; ".join(f"{key} is {there} on the robot, {here} in the cell" for key, there, here in parts)
    return (
        f"the robot's end effector is not the cell's tool: {text}; correct the one that is wrong: "
        "Desk, Settings, End effector, or the cell's [robot.options]"
    )


def _list(values: Sequence[float] | np.ndarray) -> str:
    return f"[{', '.join(f'{value + 0.0:.4f}' for value in np.round(values, 4))}]"
