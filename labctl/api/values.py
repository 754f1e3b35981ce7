"""Values of results: an interval, and typed rows made of the objects that `labctl analyze --json` prints.

May not: compute, or drop a key: a row has a field for each, or making it fails.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter

from labctl.analysis.table import Value
from labctl.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Made = TypeVar("Made")
Printed = TypeVar("Printed")
STRICT = ConfigDict(extra="forbid")
"""Of a row's class, as `__pydantic_config__`: a key without a field is refused."""


UNSET = (math.nan, math.nan)
"""The ends of an interval that a table has no answer to, in a data frame, whose columns are of numbers."""

CURVE = "curve"
"""The field of a row that is no value of its own: its steps have a table, or stand in the row alone."""
ENDS = ("ci", "margin")
"""What has two ends among the values of a row's table, as `Pair.margin`."""


class Interval(NamedTuple):
    """A confidence interval, ends included."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """From low to high."""
        return self.high - self.low

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high

    def __repr__(self) -> str:
        return f"[{self.low:.4g}, {self.high:.4g}]"


def rows_of(form: type[Made], listed: Iterable[Printed]) -> tuple[Made, ...]:
    """Objects of a result as rows of a class: [low, high] an Interval, "inf" infinity."""
    adapter = TypeAdapter(form)
    return tuple(adapter.validate_python(one) for one in listed)


def named(known: Mapping[str, Made], name: str, what: str) -> Made:
    """What has this name. Raises InputError that lists what there is."""
    if name not in known:
        raise InputError(f"there is no {what} {name!r}; there are: {', '.join(known)}")
    return known[name]


def flat(row: DataclassInstance) -> dict[str, Value]:
    """A row for a data frame: an interval is two columns, `_low` and `_high`, both NaN where it is unset; what is
    nested is left out.
    """
    intervals, found = _intervals(type(row)), dict[str, Value]()
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if field.name == CURVE:
            continue
        if isinstance(value, Interval) or (value is None and field.name in intervals):
            found[f"{field.name}_low"], found[f"{field.name}_high"] = value or UNSET
        elif isinstance(value, Mapping):
            for key, one in value.items():
                name = f"{field.name}_{key}"
                if key in ENDS:
                    low, high = one or UNSET
                    found[f"{name}_low"], found[f"{name}_high"] = _number(low), _number(high)
                elif isinstance(one, str) or not isinstance(one, Sequence):
                    found[name] = one
        elif not isinstance(value, Sequence) or isinstance(value, str):
            found[field.name] = value
    return found


def _number(end: float | None) -> float:
    """An end of an interval in a data frame; one that is open is NaN, as one that is unset."""
    return math.nan if end is None else end


@cache
def _intervals(form: type) -> frozenset[str]:
    """Names of the fields that are intervals."""
    return frozenset(name for name, kind in get_type_hints(form).items() if Interval in get_args(kind))


def shown(value: float | None, digits: int = 3) -> str:
    """A number as a table of a notebook has it."""
    return "–" if value is None else f"{value:.{digits}g}"


def with_interval(value: float | None, interval: Interval | None) -> str:
    """A number and its interval as a table of a notebook has them."""
    return shown(value) + (f" [{shown(interval.low)}, {shown(interval.high)}]" if interval else "")
