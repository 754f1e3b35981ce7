"""Options of a camera that OpenCV reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field, field_validator, model_validator

from labctl.config.cell_schema import Cell
from labctl.config.options import CameraOptions, Contradiction
from labctl.config.values import Variable
from labctl.drivers.common.options import frozen_field, too_long
from labctl.drivers.opencv.source import Source, parse_source

OF_DEVICE = ("fourcc", "exposure_s", "gain", "white_balance_k", "focus")
FOREIGN = {"device": ("pace",), "url": ("pace", *OF_DEVICE), "file": ("frozen_s", *OF_DEVICE)}


class OpencvOptions(CameraOptions):
    """A USB camera, a network camera, or a video file. What is not set of a device stays as the camera has it."""

    source: int | str | None = Field(
        None,
        description='best "/dev/v4l/by-id/…", which does not change; this or source_env',
        json_schema_extra={"allowed": "an index, a device, a URL or a file"},
    )
    source_env: Variable | None = Field(
        None,
        description="environment variable that holds the URL, where that is a secret, as one with a password is",
        json_schema_extra={"allowed": "the name of an environment variable"},
    )
    frozen_s: float = frozen_field()
    pace: bool = Field(True, description="of a file: at its own times, or as fast as it is read")
    fourcc: str | None = Field(
        None,
        description="format of a device's pictures",
        pattern="^[ -~]{4}$",
        json_schema_extra={"allowed": 'four letters such as "MJPG"'},
    )
    exposure_s: float | None = Field(None, ge=1e-4, le=10, description="of a device, fixed")
    gain: float | None = Field(None, ge=0, le=1e4, description="of a device, in its own unit")
    white_balance_k: float | None = Field(None, ge=1000, le=12000, description="of a device, fixed")
    focus: float | None = Field(None, ge=0, le=1e4, description="of a device, fixed, in its own unit")

    @property
    def found(self) -> Source:
        """The source that is named, or the variable that holds its URL."""
        if self.source_env is not None:
            return Source("url", "", f"${self.source_env}", self.source_env)
        return parse_source(self.source if self.source is not None else "")

    def device(self) -> str | None:
        return f"source = {self.source}" if self.found.sort == "device" else None

    def contradictions(self, cell: Cell) -> Sequence[Contradiction]:
        return too_long("exposure_s", self.exposure_s or 0.0, self.exposure_s or 0.0, self.rate_hz)

    @field_validator("source")
    @classmethod
    def _is_a_source(cls, given: int | str | None) -> int | str | None:
        if given is not None:
            parse_source(given)
        return given

    @model_validator(mode="after")
    def _fits_its_source(self) -> Self:
        if (self.source is None) == (self.source_env is None):
            raise ValueError("give one of source and source_env")
        sort = self.found.sort
        for name in FOREIGN[sort]:
            if name in self.model_fields_set:
                raise ValueError(f"{name} means nothing for a {sort}; leave it out")
        return self
