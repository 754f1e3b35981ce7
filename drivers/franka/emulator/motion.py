"""From commands of a client in control to the joints of an emulated FR3, checked as the controller checks them.

May not: know sockets, messages or time of day: one call is one millisecond. Torques accelerate the rigid bodies of
`dynamics`, without friction.
"""

from __future__ import annotations

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import HAND_KG, RobotModel
from labctl.drivers.franka.emulator import wire
from labctl.drivers.franka.emulator.dynamics import Dynamics, hand
from labctl.drivers.franka.emulator.wire import RobotCommand

DT = 0.001
# FCI documentation, "Limits in the Cartesian space / Joint space limits" for the FR3; libfranka's rate_limiting.h.
ACCELERATION, JERK = 10.0, 5000.0
TOOL = {"velocity": (3.0, 2.5), "acceleration": (9.0, 17.0), "jerk": (4500.0, 8500.0)}  # translation, rotation
TOOL_GENERATORS = (wire.CARTESIAN_POSE, wire.CARTESIAN_VELOCITY)
MOST_LOST = 20  # commands missing in a row; then the robot stops itself (FCI documentation)
TORQUE_RATE = 1.0  # N m in a millisecond (FCI documentation); states are in single precision, so clients round
TORQUE_ROUNDING = 1e-3
REST_RAD_S = 0.05  # Assumption: slower than this is at rest when a motion is finished


class Motion:
    """The commanded joints. q, dq, ddq (7,): rad, rad/s, rad/s2; pose (16,) and twist are those of the last command of
    the tool, and stand still while joints are commanded: see `measured`.
    """

    def __init__(self, robot_model: RobotModel, tool_kg: float = HAND_KG) -> None:
        self.robot_model, self.dynamics = robot_model, Dynamics([hand(tool_kg)])
        self.q = robot_model.home.copy()
        self.dq, self.ddq, self.tau = np.zeros(7), np.zeros(7), np.zeros(7)
        self.pose = np.zeros(16)
        self.twist = np.zeros(6)
        self.twist_rate = np.zeros(6)
        self.generator = wire.NO_GENERATOR
        self.missed = 0
        self.beyond = ""  # which joint was how fast where it was too fast last, for those who look for the cause
        self._measured: tuple[np.ndarray, np.ndarray] = (np.empty(0), np.empty(0))  # joints, and the pose they make
        self.settle()

    @property
    def measured(self) -> np.ndarray:
        """The pose (16,) that the joints make now, whatever was commanded."""
        if self._measured[0] is not self.q:  # joints are replaced, never written into
            self._measured = (self.q, wire.matrix(kinematics.pose(self.robot_model.chain, self.q.tolist())))
        return self._measured[1]

    @property
    def held(self) -> np.ndarray:
        """The pose (16,) that is commanded: of the tool's own commands, or what commanded joints make."""
        return self.pose if self.generator in TOOL_GENERATORS else self.measured

    def settle(self) -> None:
        """The Cartesian values that belong to the joints."""
        self.pose = self.measured
        self.twist, self.twist_rate = np.zeros(6), np.zeros(6)

    def begin(self, generator: int) -> None:
        self.generator, self.missed = generator, 0
        self.settle()

    @property
    def standing(self) -> bool:
        return not self.dq.any()

    def rest_if_slow(self) -> None:
        """A motion was finished in order: what its filters left of the speed is gone."""
        if np.abs(self.dq).max() < REST_RAD_S:
            self.hold()

    def brake(self) -> None:
        """One millisecond of a stop: every joint slows down by what it may."""
        dq = np.sign(self.dq) * np.maximum(np.abs(self.dq) - ACCELERATION * DT, 0.0)
        self.ddq = (dq - self.dq) / DT if dq.any() else np.zeros(7)
        self.dq, self.q = dq, self.q + dq * DT
        self.settle()

    def hold(self) -> None:
        """Nothing was commanded yet."""
        self.dq, self.ddq = np.zeros(7), np.zeros(7)

    def miss(self) -> str:
        """A command did not come: go on with the same acceleration; too many in a row are an error."""
        self.missed += 1
        if self.missed >= MOST_LOST:
            return "communication_constraints_violation"
        if self.generator == wire.TORQUE:
            return self._push(self.tau)
        self.dq = self.dq + self.ddq * DT
        self.q = self.q + self.dq * DT
        return ""

    def follow(self, command: RobotCommand) -> str:
        """Apply a command; returns the name of the error it causes, or nothing."""
        self.missed = 0
        match self.generator:
            case wire.JOINT_POSITION:
                return self._to((command.q - self.q) / DT, command.q)
            case wire.JOINT_VELOCITY:
                return self._to(command.dq, self.q + command.dq * DT)
            case wire.CARTESIAN_POSE:
                return self._pose(command)
            case wire.CARTESIAN_VELOCITY:
                return self._twist(command)
        return self._push(command.tau)

    def _to(self, dq: np.ndarray, q: np.ndarray, prefix: str = "joint_motion_generator") -> str:
        joint = "" if prefix.startswith("joint") else "joint_"
        ddq = (dq - self.dq) / DT
        jerk = (ddq - self.ddq) / DT
        if self._too_fast(dq):
            return f"{prefix}_{joint}velocity_limits_violation"
        if (np.abs(ddq) > ACCELERATION).any():
            return f"{prefix}_{joint}velocity_discontinuity"
        if (np.abs(jerk) > JERK).any():
            return f"{prefix}_{joint}acceleration_discontinuity"
        if ((q < self.robot_model.lower) | (q > self.robot_model.upper)).any():
            return f"{prefix}_{joint}position_limits_violation"
        self.q, self.dq, self.ddq = np.array(q), np.array(dq), ddq
        return ""

    def _too_fast(self, dq: np.ndarray) -> bool:
        """Beyond a joint's limit, or what is left of it near its end?"""
        assert self.robot_model.ends is not None
        low, high = self.robot_model.ends.most(self.q)
        wrong = (np.abs(dq) > self.robot_model.velocity) | (dq < low) | (dq > high)
        if wrong.any():
            joint = int(np.argmax(wrong))
            where = f"joint {joint + 1} at {dq[joint]:.4f} rad/s where it stands at {self.q[joint]:.4f} rad"
            self.beyond = f"{where}: {low[joint]:.4f} to {high[joint]:.4f} rad/s are allowed there"
        return bool(wrong.any())

    def _pose(self, command: RobotCommand) -> str:
        wanted = command.pose.reshape(4, 4).T
        if abs(np.linalg.det(wanted[:3, :3]) - 1) > 1e-3:
            return "cartesian_position_motion_generator_invalid_frame"
        last = self.pose.reshape(4, 4).T
        twist = np.concatenate([wanted[:3, 3] - last[:3, 3], _spin(wanted[:3, :3] @ last[:3, :3].T)]) / DT
        return self._tool(twist, command, command.pose)

    def _twist(self, command: RobotCommand) -> str:
        return self._tool(command.twist, command, None)

    def _tool(self, twist: np.ndarray, command: RobotCommand, pose: np.ndarray | None) -> str:
        rate = (twist - self.twist) / DT
        jerk = (rate - self.twist_rate) / DT
        named = ("velocity_limits_violation", "velocity_discontinuity", "acceleration_discontinuity")
        for value, limit, name in zip((twist, rate, jerk), TOOL.values(), named, strict=True):
            if np.linalg.norm(value[:3]) > limit[0] or np.linalg.norm(value[3:]) > limit[1]:
                return f"cartesian_motion_generator_{name}"
        jacobian, tip, turn = kinematics.jacobian(self.robot_model.chain, self.q[None, :])
        step = twist * DT
        if pose is not None:  # correct what the last steps left over
            wanted = pose.reshape(4, 4).T
            step = np.concatenate([wanted[:3, 3] - tip[0], _spin(wanted[:3, :3] @ turn[0].T)])
        elbow = command.elbow[0] - self.q[2] if command.valid_elbow else 0.0
        rows = np.vstack([jacobian[0], np.eye(7)[2]])
        dq = np.linalg.solve(rows.T @ rows + 1e-8 * np.eye(7), rows.T @ np.append(step, elbow)) / DT
        problem = self._to(dq, self.q + dq * DT, "cartesian_motion_generator")
        if not problem:
            self.twist, self.twist_rate = twist, rate
            self.pose = wire.matrix(kinematics.pose(self.robot_model.chain, self.q.tolist())) if pose is None else pose
        return problem

    def _push(self, tau: np.ndarray) -> str:
        if (np.abs(tau - self.tau) > TORQUE_RATE + TORQUE_ROUNDING).any() and self.missed == 0:
            return "controller_torque_discontinuity"
        self.tau = np.array(tau)
        ddq = self.dynamics.acceleration(self.q, self.dq, tau)
        dq = self.dq + ddq * DT
        q = self.q + dq * DT
        if self._too_fast(dq):
            return "joint_velocity_violation"
        if ((q < self.robot_model.lower) | (q > self.robot_model.upper)).any():
            return "joint_position_limits_violation"
        self.q, self.dq, self.ddq = q, dq, ddq
        return ""


def _spin(turn: np.ndarray) -> np.ndarray:
    """The rotation vector of a small turn."""
    return np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
