"""Options of a Universal Robots arm, and of the emulated controllers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from labctl.config.cell_schema import Cell
from labctl.config.options import Contradiction, Options
from labctl.config.values import FlangePoint
from labctl.drivers.common.options import RobotOptions

Model = Literal["ur5", "ur3e", "ur5e", "ur7e", "ur10e", "ur15", "ur20"]
Servo = Literal["joint", "cartesian", "velocity"]
KICK_S = 0.05


class UrOptions(RobotOptions):
    """A UR5 (CB3) or an e-Series through ur_rtde."""

    DOF = 6
    GRIPPER = "robotiq_socket"

    model: Model = Field("ur5e", description="which robot")
    servo: Servo = Field("joint", description="servoJ, servoL or speedL")
    payload_kg: float = Field(0.0, ge=0, le=5, description="gripper with coupling; 0 leaves what is set at the pendant")
    payload_cog_m: FlangePoint = Field(
        (0.0, 0.0, 0.05),
        description="its centre of gravity, from the flange; [0, 0, 0] leaves the one that is set at the pendant",
    )
    # Of the smoothing that servoJ adds to setpoints that are smooth already; Universal Robots' own default is 0.1.
    lookahead_s: float = Field(0.05, ge=0.03, le=0.2, description="of servoJ and servoL")
    gain: float = Field(300.0, ge=100, le=2000, description="of servoJ and servoL")
    register_offset: Literal["lower", "upper"] = Field(
        "lower", description='"upper" where another fieldbus owns the lower registers'
    )
    power_on: bool = Field(
        False, description="an operator's acknowledgement may power the robot on and open its brakes"
    )
    robot_api_port: int = Field(80, ge=1, le=65535, description="of PolyScope X's Robot API, from 10.11 on")
    watchdog_hz: float = Field(4.0, ge=1, le=50, description="the robot stops when nothing came for one period")

    def kick_s(self) -> float:
        """How long a robot at rest may go without a word: half of the watchdog's period, and no longer than KICK_S."""
        return min(KICK_S, 0.5 / self.watchdog_hz)

    def contradictions(self, cell: Cell) -> Sequence[Contradiction]:
        found, control_hz = list(super().contradictions(cell)), float(cell.robot.control_hz)
        if control_hz < 2 * self.watchdog_hz:
            keys = f"watchdog_hz = {self.watchdog_hz:g} and robot.control_hz = {control_hz:g}"
            text = f"{keys}: setpoints come each {1e3 / control_hz:g} ms, and the robot stops itself where none comes"
            text += f" within {1e3 / self.watchdog_hz:g} ms"
            remedy = f"control_hz = {2 * self.watchdog_hz:g} or more, or watchdog_hz = {control_hz / 2:g} or less"
            found.append(Contradiction("watchdog", text, remedy))
        return found


class UrEmulatorOptions(Options):
    """An emulated UR."""

    start: Literal["running", "power_off"] = Field("running", description="the state it begins in")
    calibration: Literal["none", "said", "unsaid"] = Field(
        "none", description="none: the robot is as published; said: it is not, and says so; unsaid: it is not"
    )
    polyscope: str = Field(
        "", pattern=r"^(\d+\.\d+\.\d+)?$", description='its software, like "5.5.1" or "10.11.0"; "" for one of its kind'
    )
    robot_api_port: int = Field(
        80, ge=1, le=65535, description="of the Robot API of PolyScope X; below 1024 it may take root to serve it"
    )

    def version(self) -> tuple[int, int, int, int] | None:
        """Major, minor, bugfix and build of `polyscope`; None where that is of its kind."""
        if not self.polyscope:
            return None
        major, minor, bugfix = map(int, self.polyscope.split("."))
        return major, minor, bugfix, 0
