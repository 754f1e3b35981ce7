"""What every result object can do: print itself in a line, give its arrays for plotting, and serialise.

May not: compute. A result is a frozen dataclass of numbers, names and arrays.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

Form = TypeVar("Form")
Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"
"""What JSON can hold."""
Bounds = list[float] | None
"""An interval, [low, high]; None where there is none."""
Unbounded = float | str
"""A number, or "inf" for infinity."""
Computed: TypeAlias = """(
    bool | int | float | str | np.generic | np.ndarray | Result | Sequence[Computed] | Mapping[str, Computed]
    | Mapping[tuple[str, ...], Computed] | None
)"""
"""What a result's fields hold."""


def bounds(interval: tuple[float, float] | None) -> Bounds:
    """An interval as JSON holds it."""
    return None if interval is None else [*interval]


@dataclasses.dataclass(frozen=True)
class Result:
    """Base of result dataclasses: `str(result)` is one line, `result.as_dict()` holds what JSON can.

    Arrays stay numpy arrays as attributes, ready to be drawn; infinities are the string "inf" in a dictionary and NaN
    is null, as in `labctl analyze`.
    """

    def as_dict(self) -> dict[str, Plain]:
        """Every field by name, as plain Python values."""
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    def __str__(self) -> str:
        shown = [f"{name} {_shown(value)}" for name, value in self.as_dict().items() if value is not None]
        return f"{type(self).__name__}: {', '.join(shown)}"


def plain(value: Computed) -> Plain:
    """A value as JSON holds it."""
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {_name(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [plain(v) for v in value]


def plain_in(value: Computed, form: type[Form]) -> Form:
    """`plain` of a value that has this form as JSON, unchecked."""
    made: Any = plain(value)  # the one door from results to forms
    return made


def _name(key: str | tuple[str, ...]) -> str:
    return " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _shown(value: Plain) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in list(value.items())[:6]) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        inner = [_shown(v) for v in value[:6]]
        return f"[{', '.join(inner)}{', …' if len(value) > 6 else ''}]"
    return str(value)
