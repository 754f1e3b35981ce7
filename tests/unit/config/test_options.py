"""What an option of a driver may be is said in one line, whatever type its driver declares."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from labctl.config.options import Options, allowed, schema_of
from labctl.errors import OptionError


class Grip(StrEnum):
    """As a driver of somebody else's may have it."""

    SOFT = "soft"
    FIRM = "firm"


class Offset(BaseModel):
    """A table inside the options."""

    x_m: float = 0.0


class Given(Options):
    """Types that JSON Schema writes elsewhere and refers to."""

    grip: Grip = Field(default=Grip.SOFT, strict=False, description="how firmly")
    offset: Offset = Field(default_factory=Offset, description="where")
    other: Offset | None = Field(default=None, description="where else")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grip": "hard"}, 'own: grip must be one of "soft", "firm", found \'hard\''),
        ({"offset": 1}, "own: offset must be a table, found 1"),
        ({"other": 1}, "own: other must be a table, found 1"),
    ],
)
def test_an_option_of_a_type_with_a_name_is_refused_in_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as error:
        Given.read(given, "own")
    assert str(error.value) == said


def test_every_option_of_it_is_said_in_words() -> None:
    assert [allowed(one) for one in schema_of(Given).values()] == ['one of "soft", "firm"', "a table", "a table"]
