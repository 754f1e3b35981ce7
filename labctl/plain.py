"""Plain values: what JSON and TOML can hold, the forms of the tables that labctl's files give, how a count is said.

May not: check or convert anything. A cell file is checked by `labctl.config`, a driver's options by the driver's model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypeAlias, TypedDict

# How long a question to a controller may go unanswered before it ends the episode, where nothing else is said.
GIVE_UP_S = 10.0
# The longest that an episode, a trial or a step of one is planned for: eleven days.
LONGEST_S = 1e6

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def count(n: float, noun: str, many: str = "") -> str:
    """1 trial, 2 trials, 1.5 evenings; many: the plural where it is not made by an s."""
    return f"{n:g} {noun}" if n == 1 else f"{n if isinstance(n, int) else f'{n:g}'} {many or f'{noun}s'}"


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


class Lens(TypedDict):
    """Of a picture, in pixels from the middle of its upper left one: focal lengths, principal point, distortion."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: str
    coefficients: Sequence[float]


class Placed(TypedDict):
    """rotation (3 x 3, rows) and translation_m of x_to = rotation x_from + translation."""

    rotation: Sequence[Sequence[float]]
    translation_m: Sequence[float]


class CameraAbout(TypedDict):
    """What is kept beside a camera's pictures (`labctl.devices.Camera`). settings: as read back; extrinsics: by
    "A_from_B"; counts: of all frames so far. What a driver knows besides has a name of its own here.
    """

    model: str | None
    serial: str | None
    settings: Mapping[str, Json]
    intrinsics: Lens | None
    extrinsics: Mapping[str, Placed] | None
    depth_scale_m: float | None
    firmware: NotRequired[str | None]
    usb: NotRequired[str | None]
    software: NotRequired[str]
    source: NotRequired[str]
    format: NotRequired[str]
    depth_intrinsics: NotRequired[Lens | None]
    counts: NotRequired[Mapping[str, int]]


class DeviceAbout(TypedDict):
    """What a gripper is, or a robot: as it or its controller says, null where it does not. firmware: of the device or
    its controller; client: what drives it, and its version; limits: in force, whoever set them.
    """

    model: str | None
    serial: str | None
    firmware: str | None
    client: str
    limits: NotRequired[Mapping[str, Json]]


class RobotAbout(DeviceAbout):
    """What is kept of a robot beside the software (`labctl.devices.Robot`). tool: as set on the controller, or as the
    cell has it where the controller does not say.
    """

    gripper: NotRequired[DeviceAbout]
    tool: NotRequired[Mapping[str, Json]]


class SpecEntry(TypedDict):
    """A stream's declaration, as `labctl.streams.StreamSpec` has it."""

    name: str
    columns: Sequence[str]
    unit: str
    rate_hz: float
    dtype: NotRequired[str]
    clock: NotRequired[str]
    arm_dependent: NotRequired[bool]
    private_columns: NotRequired[Sequence[str] | None]
    public_columns: NotRequired[Sequence[str]]
