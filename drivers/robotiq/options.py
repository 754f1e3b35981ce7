"""Options of a Robotiq 2F-85. Ranges are of Robotiq's data sheet."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labctl.config.options import Options
from labctl.config.values import Text

SPEED_M_S = (0.02, 0.15)
FORCE_N = (20.0, 235.0)


class RobotiqOptions(Options):
    """A 2F-85 through the URCap's socket."""

    speed_m_s: Annotated[float, Field(ge=SPEED_M_S[0], le=SPEED_M_S[1])] = Field(0.1, description="of the fingers")
    force_n: Annotated[float, Field(ge=FORCE_N[0], le=FORCE_N[1])] = Field(50.0, description="of a grasp")
    open_position: int = Field(3, ge=0, le=100, description="what POS reads with the fingers open")
    closed_position: int = Field(228, ge=150, le=255, description="what POS reads with the fingers closed")


class RobotiqSerialOptions(RobotiqOptions):
    """A 2F-85 on RS-485."""

    port: Text = Field(description='the adapter; best a "/dev/serial/by-id/…", which does not change')

    def device(self) -> str | None:
        return f"port = {self.port}"
