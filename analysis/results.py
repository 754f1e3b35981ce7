"""What every result object can do: print itself in a line, give its arrays for plotting, and serialise.

May not: compute. A result is a frozen dataclass of numbers, names and arrays.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np


class Result:
    """Base of result dataclasses: `str(result)` is one line, `result.as_dict()` holds what JSON can.

    Arrays stay numpy arrays as attributes, ready to be drawn; infinities are the string "inf" in a dictionary and NaN
    is null, as in `labctl analyze`.
    """

    def as_dict(self) -> dict[str, Any]:
        """Every field by name, as plain Python values."""
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        shown = [f"{name} {_shown(value)}" for name, value in self.as_dict().items() if value is not None]
        return f"{type(self).__name__}: {', '.join(shown)}"


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {_name(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _name(key: Any) -> str:
    return " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        inner = [_shown(v) for v in value[:6]]
        return f"[{', '.join(inner)}{', …' if len(value) > 6 else ''}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in list(value.items())[:6]) + "}"
    return str(value)
