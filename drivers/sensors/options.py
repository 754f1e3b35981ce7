"""Options of the sensors, and what each of them records."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labctl.config.options import SensorOptions
from labctl.config.values import Text
from labctl.drivers.common.scale import scale_stream
from labctl.streams import StreamSpec

WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")


class SerialScaleOptions(SensorOptions):
    """A scale on a serial line that speaks MT-SICS."""

    port: Text = Field(description='its adapter; best a "/dev/serial/by-id/…", which does not change')
    baud: Annotated[int, Field(ge=300, le=115200)] = Field(9600, description="as it is set at the scale; 8N1")

    def device(self) -> str | None:
        return f"port = {self.port}"

    def stream(self) -> StreamSpec:
        return scale_stream(self.rate_hz)


class RobotWrenchOptions(SensorOptions):
    """The wrench that the cell's robot measures, or estimates, itself. Its rate_hz is that of the observations at most:
    what [robot] observe_hz says, in real time at least 50.
    """

    def stream(self) -> StreamSpec:
        # how hard a policy pushes, and how often it corrects, tells it from another
        return StreamSpec("wrench", WRENCH, "N N N N.m N.m N.m", self.rate_hz, private_columns=WRENCH)
