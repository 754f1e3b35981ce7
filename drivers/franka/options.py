"""Options of an FR3, of its hand, and of the emulated controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from labctl.config.cell_schema import Cell
from labctl.config.options import Contradiction, Options
from labctl.config.values import FlangePoint, Turn
from labctl.drivers.common.options import RobotOptions
from labctl.drivers.common.robot_tables import HAND_KG, HAND_M, HAND_RPY, Tool

Servo = Literal["velocity", "cartesian", "impedance"]
StateSource = Literal["auto", "network", "client"]
# At 1.0 franky 2.0.0 requests more acceleration than an FR3 allows (measured).
FACTOR_CAP = 0.5
CONNECT_S = 5.0  # robot and hand answer in milliseconds; with another client they may take the connection and be silent
# What the wheel of franky 2.0.0 limits joints to (a test asks it). The factor is of accelerations; a velocity that is
# asked for is not scaled by it (measured).
FRANKY_RAD_S = (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)
LEADERS = ("gello",)
FRANKY_RAD_S2 = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)


class FrankaOptions(RobotOptions):
    """An FR3 or its forerunner, the FER (Panda), through franky."""

    DOF = 7
    GRIPPER = "franka_hand"

    model: Literal["fr3", "fer"] = Field(
        "fr3", description="which robot; an FER (Panda) needs franky with another libfranka, and is untried"
    )
    # No streamed positions: replaced every 10 ms, franky's position motions break the FR3's jerk limit (measured).
    servo: Servo = Field("velocity", description="how setpoints are handed to the 1 kHz loop")
    realtime: Literal["ignore", "enforce"] = Field(
        "ignore", description='"enforce" on a PREEMPT_RT kernel: franky then refuses to run without one'
    )
    dynamics_factor: float = Field(FACTOR_CAP, ge=0.01, le=FACTOR_CAP, description="of franky's accelerations")
    tool_rpy_rad: Turn = Field(
        HAND_RPY, description="how the tool is turned on the flange: roll, pitch, yaw in URDF's order"
    )
    tool_kg: float = Field(HAND_KG, ge=0, le=5, description="mass of the end effector that is set in Desk")
    load_kg: float = Field(0.0, ge=0, le=5, description="of a load beside the end effector set in Desk; 0: none")
    load_com_m: FlangePoint = Field((0.0, 0.0, 0.0), description="its centre of mass, from the flange")
    collision_torque_nm: float = Field(20.0, ge=1, le=100, description="above it, in any joint, the robot stops itself")
    collision_force_n: float = Field(30.0, ge=1, le=150, description="above it, along any axis, the robot stops itself")
    states: StateSource = Field(
        "auto", description="network: every state, needs CAP_NET_RAW; client: franky's newest; auto: network if allowed"
    )

    def contradictions(self, cell: Cell) -> Sequence[Contradiction]:
        given, factor = cell.robot.limits, self.dynamics_factor
        fast = _first_above(given.velocity_rad_s, FRANKY_RAD_S)
        led = cell.teleop is not None and cell.teleop.device in LEADERS
        sharp = _first_above(given.acceleration_rad_s2, [factor * most for most in FRANKY_RAD_S2])
        found = list(super().contradictions(cell))
        if led and self.servo == "cartesian" and cell.teleop is not None:
            text = (
                f'servo = "cartesian" and teleop.device = "{cell.teleop.device}": a leader turns seven joints, and of '
            )
            text += (
                "these only the tool's motion is sent: an elbow that is moved is not followed, and the robot stopped"
            )
            found.append(Contradiction("servo", text, 'servo = "velocity"'))
        if fast is not None:
            joint, requested, most = fast
            text = (
                f"robot.limits.velocity_rad_s = {requested:g} of joint {joint}: franky lets it turn at {most:g} rad/s"
            )
            found.append(Contradiction("limits", text, f"velocity_rad_s = {most:g} or less for joint {joint}"))
        if sharp is not None:
            joint, requested, most = sharp
            keys = f"robot.limits.acceleration_rad_s2 = {requested:g} of joint {joint} and dynamics_factor = {factor:g}"
            text = f"{keys}: franky then accelerates it by {most:.4g} rad/s2, and the robot lags behind its setpoints"
            higher = (
                f", or dynamics_factor = {wanted:.2g}" if (wanted := factor * requested / most) <= FACTOR_CAP else ""
            )
            remedy = f"acceleration_rad_s2 = {most:.4g} or less for joint {joint}{higher}"
            found.append(Contradiction("limits", text, remedy))
        return found


def _first_above(requested: Sequence[float], most: Sequence[float]) -> tuple[int, float, float] | None:
    """The number, from 1, of the joint that is asked for most beyond what it may have; what is asked; what it may."""
    over = [(one / least, i) for i, (one, least) in enumerate(zip(requested, most, strict=False)) if one > least]
    worst = max(over, default=None)
    return None if worst is None else (worst[1] + 1, requested[worst[1]], most[worst[1]])


class FrankaHandOptions(Options):
    """The Franka Hand; ranges are of its data sheet."""

    speed_m_s: float = Field(0.1, ge=0.01, le=0.2, description="of the fingers")
    force_n: float = Field(20.0, ge=1, le=70, description="of a grasp")


class Fr3EmulatorOptions(Options):
    """An emulated FR3. Its tool is both what is mounted and what is set in Desk."""

    echo_s: float = Field(0.2, ge=0.02, le=5, description="without an answer for so long, it stops a motion")
    paced: bool = Field(True, description="one cycle in a millisecond; false: as fast as it is answered")
    ahead: bool = Field(
        False, description="before other programs of this machine, if allowed: a real controller has its own computer"
    )
    tool_x_m: float = Field(0.0, ge=-0.5, le=0.5, description="of the tool, in the flange's frame")
    tool_y_m: float = Field(0.0, ge=-0.5, le=0.5, description="of the tool, in the flange's frame")
    tool_z_m: float = Field(HAND_M, ge=0, le=0.5, description="of the tool, in the flange's frame")
    tool_roll_rad: float = Field(
        HAND_RPY[0], ge=-6.3, le=6.3, description="how the tool is turned there, in URDF's order"
    )
    tool_pitch_rad: float = Field(HAND_RPY[1], ge=-6.3, le=6.3, description="likewise")
    tool_yaw_rad: float = Field(HAND_RPY[2], ge=-6.3, le=6.3, description="likewise")
    tool_kg: float = Field(HAND_KG, ge=0, le=5, description="its mass")

    def tool(self) -> Tool:
        """The tool in the frame of the flange."""
        turn = (self.tool_roll_rad, self.tool_pitch_rad, self.tool_yaw_rad)
        return Tool((self.tool_x_m, self.tool_y_m, self.tool_z_m), turn)
