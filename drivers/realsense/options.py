"""Options of a RealSense camera, or of a recording of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from labctl.config.cell_schema import Cell
from labctl.config.options import CameraOptions, Contradiction
from labctl.config.values import Text
from labctl.drivers.common.options import frozen_field, too_long

OF_CAMERA = ("serial", "frozen_s", "color_sensor", "depth_sensor")
COLOUR_UNIT_S = 1e-4  # of a D400's exposure of colour (librealsense's option EXPOSURE; its depth counts in 1e-6 s)
Settings = Annotated[
    dict[str, bool | int | float], Field(json_schema_extra={"allowed": "a table of librealsense's options by name"})
]


class RealsenseOptions(CameraOptions):
    """A camera, or with `file` a recording of one."""

    serial: Text | None = Field(None, description="on its label; may be left out when one camera is connected")
    depth: bool = Field(True, description="record depth beside colour")
    frozen_s: float = frozen_field()
    color_sensor: Settings = Field(default_factory=dict, description="set before streaming and read back")
    depth_sensor: Settings = Field(default_factory=dict, description="set before streaming and read back")
    file: Text | None = Field(None, description="a .db3 recording to play in place of a camera")
    pace: bool = Field(True, description="of a recording: at its own times, or as fast as it is read")

    def device(self) -> str | None:
        return None if self.serial is None else f"serial = {self.serial}"

    def contradictions(self, cell: Cell) -> Sequence[Contradiction]:
        exposure = float(self.color_sensor.get("exposure", 0.0))
        return too_long("color_sensor.exposure", exposure, exposure * COLOUR_UNIT_S, self.rate_hz)

    @model_validator(mode="after")
    def _fits_its_source(self) -> Self:
        sort, foreign = ("recording", OF_CAMERA) if self.file is not None else ("camera", ("pace",))
        for name in foreign:
            if name in self.model_fields_set:
                raise ValueError(f"{name} means nothing for a {sort}; leave it out")
        return self
