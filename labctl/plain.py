"""Plain values: what JSON and TOML can hold, and the forms of the tables that labctl's files give.

May not: check or convert anything. A cell file is checked by `labctl.config`, a driver's options by the driver's model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypeAlias, TypedDict

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


class Hand(TypedDict):
    """The device of a trial that a person drives (`labctl.devices.ByHand`). waits: what is missing, "" when nothing is;
    ramp: 0 to 1, the share of the device's motion that is let through; gap_rad: of each joint, leader to robot.
    """

    device: str
    waits: str
    engaged: bool
    fresh: bool
    ramp: float
    gap_rad: list[float] | None
    limit_rad: float


class SpecEntry(TypedDict):
    """A stream's declaration, as `labctl.devices.StreamSpec` has it."""

    name: str
    columns: Sequence[str]
    unit: str
    rate_hz: float
    dtype: NotRequired[str]
    clock: NotRequired[str]
    arm_dependent: NotRequired[bool]
    private_columns: NotRequired[Sequence[str] | None]
