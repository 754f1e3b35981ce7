"""Options that every real robot has: where it is, its tool, where episodes begin, its gripper.

May not: know a robot.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from labctl.config.cell_schema import Cell
from labctl.config.options import OWN, Contradiction, Options, Wrapped, is_own, wrapped_driver
from labctl.config.values import FROM_FLANGE_M, FlangePlace, Lax, Text, Turn
from labctl.drivers.common.robot_tables import HAND_M, Tool
from labctl.errors import InputError

Home = Literal["default"] | Annotated[tuple[float, ...], Lax] | None

FEWEST_STATES = 5  # that may be missing before a robot is lost: one that came late is none


class RobotOptions(Options):
    """Base of a real robot's options."""

    DOF: ClassVar[int]  # 0: it depends on the model, and the driver's own options look
    GRIPPER: ClassVar[str]  # the driver of a gripper that is not named

    host: Text = Field(description="address of the robot's controller")
    tool_z_m: float = Field(HAND_M, ge=0, le=FROM_FLANGE_M, description="from the flange to the fingertips")
    tool_xy_m: FlangePlace = Field((0.0, 0.0), description="the fingertips, beside that axis")
    tool_rpy_rad: Turn = Field(
        (0.0, 0.0, 0.0), description="how the tool is turned on the flange: roll, pitch, yaw in URDF's order"
    )
    home_rad: Home = Field(
        None,
        description="where episodes begin; left out, the robot stays where it is",
        json_schema_extra={"allowed": '"default" or a list of finite numbers, one for each joint'},
    )
    home_speed_rad_s: float = Field(0.3, ge=0.01, le=1.0, description="how fast it goes there")
    silence_s: float = Field(0.5, ge=0.1, le=5.0, description="without a state for so long, the robot is lost")
    gripper: Mapping[str, Any] = Field(
        default_factory=dict, description="a table: `driver`, the gripper's driver, and that driver's options"
    )

    def controller_host(self) -> str | None:
        return self.host

    def wrapped(self) -> Sequence[Wrapped]:
        return (self.held(),)

    def tool(self) -> Tool:
        """The tool centre point in the frame of the flange."""
        return Tool((*self.tool_xy_m, self.tool_z_m), self.tool_rpy_rad)

    def held(self) -> Wrapped:
        """The gripper. Raises OptionError for a driver that is no name."""
        return wrapped_driver("gripper", self.gripper, self.GRIPPER)

    def contradictions(self, cell: Cell) -> Sequence[Contradiction]:
        found: list[Contradiction] = []
        slowest, states = min(cell.robot.limits.velocity_rad_s), self.silence_s * cell.robot.state_hz
        if self.home_speed_rad_s > slowest:
            keys = f"home_speed_rad_s = {self.home_speed_rad_s:g} and robot.limits.velocity_rad_s = {slowest:g}"
            remedy = f"home_speed_rad_s = {slowest:g} or less"
            found.append(Contradiction("speeds", f"{keys}: no joint goes home faster than it may turn", remedy))
        if states < FEWEST_STATES:
            keys = f"silence_s = {self.silence_s:g} and robot.state_hz = {cell.robot.state_hz:g}"
            text = f"{keys}: the robot counts as lost after {states:.1f} states that did not come"
            remedy = f"silence_s = {FEWEST_STATES / cell.robot.state_hz:g} or more"
            found.append(Contradiction("states", text, remedy))
        return found

    @field_validator("home_rad")
    @classmethod
    def _has_every_joint(cls, given: Home) -> Home:
        if isinstance(given, tuple) and cls.DOF and len(given) != cls.DOF:
            raise ValueError(f"must be a list of {cls.DOF} numbers, found {len(given)}")
        return given

    def home(self, default: np.ndarray) -> np.ndarray | None:
        """Where episodes begin, (dof,) rad, given what "default" means; None to stay."""
        if self.home_rad is None:
            return None
        return default if self.home_rad == "default" else np.array(self.home_rad)


def check_place(driver: str, cell: Cell, host: str) -> None:
    """Raises InputError for a cell that is neither real nor emulated, and in a real one for a host name that leads to
    this very computer: there is an emulator, if anything. A name that nobody knows is for the connection to say.
    """
    if cell.kind not in ("real", "emulated"):
        raise InputError(f"{driver} drives a real robot or an emulator; the cell's kind is {cell.kind!r}")
    if cell.kind == "real":
        try:
            found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
        except OSError:
            return
        except UnicodeError as error:
            raise InputError(f"{driver}: host {host!r} is no name of a computer ({error})") from error
        if any(is_own(address) for address in found):
            raise InputError(f'{driver}: {host} {OWN}, and the cell says kind = "real"')


def frozen_field() -> Any:
    """The option of a live camera that detects a picture which does not change."""
    return Field(2.0, ge=0, le=3600, description="the same picture for so long, and the camera is lost; 0: never")


def too_long(key: str, given: float, exposure_s: float, rate_hz: float) -> Sequence[Contradiction]:
    """The contradiction of an exposure, `given` in the key's own unit, that is longer than its camera's period."""
    if exposure_s * rate_hz <= 1.0:
        return ()
    keys = f"{key} = {given:g} ({1e3 * exposure_s:g} ms) and rate_hz = {rate_hz:g} ({1e3 / rate_hz:.3g} ms a picture)"
    remedy = f"{key} below {given / exposure_s / rate_hz:.3g}, or a lower rate_hz"
    return (Contradiction("exposure", f"{keys}: the camera gives fewer pictures than that", remedy),)
