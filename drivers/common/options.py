"""Reads a driver's options table: known names only, numbers within what is allowed, one clear line otherwise.

May not: know a driver; defaults and ranges come with each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labctl.errors import InputError


class Options:
    """The options of one driver. Every reading raises InputError naming the option, what was found and is allowed."""

    def __init__(self, driver: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
        self._driver, self._given = driver, given
        for name in given:
            if name not in known:
                raise InputError(f"{driver} has no option {name!r}; known options: {', '.join(known)}")

    def refusal(self, name: str, allowed: str) -> InputError:
        """The error for an option whose value is not allowed."""
        return InputError(f"{self._driver}: {name} must be {allowed}, found {self._given.get(name)!r}")

    def text(self, name: str, default: str | None = None) -> str:
        """A text that is not empty; without a default it must be there."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or not value.strip():
            raise self.refusal(name, "a text")
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number from low to high."""
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self.refusal(name, f"a number from {low:g} to {high:g}")
        return float(value)

    def numbers(self, name: str, default: Sequence[float] | None, length: int) -> np.ndarray | None:
        """A list of `length` finite numbers, or the default."""
        value = self._given.get(name)
        if value is None:
            return None if default is None else np.array(default, dtype=float)
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != length:
            raise self.refusal(name, f"a list of {length} numbers")
        if not all(isinstance(x, int | float) and not isinstance(x, bool) and np.isfinite(x) for x in value):
            raise self.refusal(name, f"a list of {length} finite numbers")
        return np.array(value, dtype=float)

    def row(self, name: str, default: Sequence[float]) -> list[float]:
        """A list of as many finite numbers as the default has."""
        found = self.numbers(name, default, len(default))
        return list(default) if found is None else found.tolist()

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        """One of a few words."""
        value = self._given.get(name, default)
        if value not in allowed:
            raise self.refusal(name, f"one of {', '.join(map(repr, allowed))}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise self.refusal(name, "true or false")
        return value

    def table(self, name: str) -> dict[str, Any]:
        """A table of its own, empty when it is not there."""
        value = self._given.get(name, {})
        if not isinstance(value, Mapping):
            raise self.refusal(name, "a table")
        return dict(value)
