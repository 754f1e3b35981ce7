"""What every driver does with an option that it does not have.

May not: know a driver. A test class names its driver by a fixture `driver`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pytest

from labctl.devices import load
from labctl.errors import InputError
from labctl.plain import Json
from labctl.testing.given import Given

Driver: TypeAlias = tuple[str, Mapping[str, Json], Given]


class OptionsConformance:
    """A misspelt option is refused before anything connects."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Name, options it takes, and what else it is built with (cell, fixture). Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `driver`: (name, options, given)")

    def test_an_unknown_option_is_refused_by_name(self, driver: Driver) -> None:
        name, options, given = driver
        with pytest.raises(InputError, match="haste"):
            load(name, {**options, "haste": 1}, **given)
