"""The kinds of single values that files of a lab may hold, for every schema and every driver's options.

May not: define a table. What imports this alone starts quickly: a controller's process does so for each trial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, StringConstraints

Positive = Annotated[float, Field(gt=0)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
PlainName = Annotated[
    str, StringConstraints(pattern=r"^[^/\s]([^/]*[^/\s])?$")
]  # no slash: a condition is "<object>/<layout>"
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]  # of the environment
Lax = Strict(False)  # TOML knows arrays, not tuples; the items stay strict
Texts = Annotated[tuple[Text, ...], Lax]
StopCause = Literal["danger", "contact", "mistaken_key"]  # what a person says of a stop by hand
Point = Annotated[tuple[float, float, float], Lax]
Size = Annotated[tuple[Positive, Positive, Positive], Lax]
Vector = Annotated[tuple[Positive, ...], Lax]
Share = Annotated[float, Field(ge=0, le=1)]
Interval = Annotated[tuple[float, float], Lax]
Box = Annotated[tuple[Share, Share, Share, Share], Lax]
FROM_FLANGE_M = 0.5  # the furthest that anything on a flange is from it, along any axis


def refuse_beyond(given: Sequence[float], most: float, unit: str) -> None:
    """Raises ValueError for a list with a number further from 0 than any is in this unit, as one in mm or degrees is
    where m or rad are asked for.
    """
    if any(abs(value) > most for value in given):
        raise ValueError(f"is in {unit}, each number from {-most:g} to {most:g}, found {list(given)}")


def _from_flange(given: tuple[float, ...]) -> tuple[float, ...]:
    refuse_beyond(given, FROM_FLANGE_M, "m")
    return given


def _turn(given: tuple[float, ...]) -> tuple[float, ...]:
    refuse_beyond(given, 2 * math.pi, "rad")
    return given


FlangePoint = Annotated[Point, AfterValidator(_from_flange)]  # m, in the flange's frame
FlangePlace = Annotated[tuple[float, float], Lax, AfterValidator(_from_flange)]  # x and y of one
Turn = Annotated[Point, AfterValidator(_turn)]  # rad: roll, pitch, yaw
