"""Options of the devices that a person drives a robot with."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from labctl.config.options import Options
from labctl.config.values import Lax, Text

ServoId = Annotated[int, Field(ge=0, le=252)]


class KeyboardOptions(Options):
    """A keyboard in a terminal."""

    terminal: Text | None = Field(
        None,
        description='the path that `tty` prints in that terminal, such as "/dev/pts/3"; left out, `labctl teleop` '
        "reads its own, and `labctl run --hand-terminal` names one",
    )


class GamepadOptions(Options):
    """A gamepad by SDL."""

    number: int = Field(0, ge=0, le=16, description="counted from 0, as SDL does")


class SpaceMouseOptions(Options):
    """A 3Dconnexion SpaceMouse."""

    path: Text | None = Field(None, description='such as "/dev/hidraw3"; left out, the one that is plugged in')


class GelloOptions(Options):
    """A GELLO leader arm. Signs and offsets come from its calibration."""

    port: Text = Field(description='its serial adapter; best a "/dev/serial/by-id/…", which does not change')
    baud: int = Field(57600, ge=9600, le=4_500_000, description="of the bus")
    ids: Annotated[tuple[ServoId, ...], Lax] = Field(tuple(range(1, 8)), description="of the servos, joint by joint")
    signs: Annotated[tuple[float, ...], Lax] = Field(description="1 or -1 for each joint")
    offsets_rad: Annotated[tuple[float, ...], Lax] = Field(description="added to each joint's signed angle")
    trigger_id: ServoId | None = Field(None, description="of the trigger's servo; left out, the one after the joints")
    trigger_rad: Annotated[tuple[float, float], Lax] = Field((0.0, 0.7), description="released, pressed")

    def device(self) -> str | None:
        return f"port = {self.port}"

    @model_validator(mode="after")
    def _has_every_joint(self) -> Self:
        count = len(self.ids)
        whole = len(self.signs) == count and len(self.offsets_rad) == count
        if not whole or {abs(sign) for sign in self.signs} != {1.0}:
            raise ValueError(f"signs (1 or -1) and offsets_rad must be {count} each, from its calibration")
        return self
