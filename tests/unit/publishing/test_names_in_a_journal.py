"""What a stranger's journal names, before a report or a page makes names of files of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labctl.core.events import Event, Kind
from labctl.publishing.names import is_time, name_problems


def opening(**body: Any) -> Event:
    return Event(1, Kind.CAMPAIGN_OPENED, 0, "boot", "2026-11-26T10:00:00+00:00", "lee", body=body)


def test_a_cell_of_a_joint_campaign_has_a_plain_name() -> None:
    """Videos of several cells lie in a folder for each on a page of their episodes."""
    assert name_problems([opening(joint={"cell": "fr3.left_2"})]) == []
    for name in ("../../elsewhere", "a/b", "", ".."):
        (problem,) = name_problems([opening(joint={"cell": name})])
        assert problem.what == "no plain name" and f"cell {name!r}" in str(problem)
    assert name_problems([opening()]) == [], "a campaign by itself has none"


@pytest.mark.parametrize(
    "wall", ["2026-11-26T10:00:00+00:00", "2026-01-01T00:58:31.697074+00:00", "1970-01-01T00:00:00+00:00"]
)
def test_a_time_as_labctl_writes_it_is_one(wall: str) -> None:
    assert name_problems([replace(opening(), wall=wall)]) == []


@pytest.mark.parametrize(
    "wall",
    [
        *("2026-W48-6T00:00:00Z", "99991231T000000+00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        *(
            "9999-12-31T23:59:59+00:00",
            "2026-11-26T10:00:00Z",
            "2026-11-26 10:00:00+00:00",
            "2026-13-26T10:00:00+00:00",
        ),
        *("2026-11-26T10:00:00", "2026-11-26T10:00:00+00:00\n", "soon", ""),
    ],
)
def test_a_time_that_no_feed_takes_or_of_another_age_is_none(wall: str) -> None:
    """RFC 4287 3.3: a date of a feed conforms to RFC 3339, which has no weeks and no dates without hyphens."""
    (problem,) = name_problems([replace(opening(), wall=wall)])
    assert problem.what == "no time" and "entry 1 was written at" in str(problem) and not is_time(wall)
