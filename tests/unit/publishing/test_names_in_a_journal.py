"""What a stranger's journal names, before a report or a page makes names of files of it."""

from __future__ import annotations

from typing import Any

from labctl.core.events import Event, Kind
from labctl.publishing.names import name_problems


def opening(**body: Any) -> Event:
    return Event(1, Kind.CAMPAIGN_OPENED, 0, "boot", "2026-11-26T10:00:00+00:00", "lee", body=body)


def test_a_cell_of_a_joint_campaign_has_a_plain_name() -> None:
    """Videos of several cells lie in a folder for each on a page of their episodes."""
    assert name_problems([opening(joint={"cell": "fr3.left_2"})]) == []
    for name in ("../../elsewhere", "a/b", "", ".."):
        (problem,) = name_problems([opening(joint={"cell": name})])
        assert problem.what == "no plain name" and f"cell {name!r}" in str(problem)
    assert name_problems([opening()]) == [], "a campaign by itself has none"
