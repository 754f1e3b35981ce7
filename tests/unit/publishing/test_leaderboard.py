"""A board is held against an anchor that all of its campaigns ran: a person's arm where there is one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from labctl.publishing.leaderboard import boards_of
from labctl.publishing.shown import Shown
from labctl.store.linking import Linked


class Campaign:
    """What a board asks of a campaign that is shown; no pair of arms was compared in it."""

    of_items, tau_s, rows = True, None, ()

    def __init__(self, name: str, arms: list[str], people: set[str], links: list[Linked]) -> None:
        self.name, self.people, self.links, self.hashes = name, frozenset(people), links, frozenset({f"head of {name}"})
        self.manifest = type("Manifest", (), {"kind": "sim"})()
        self.result: Any = {"arms": [{"arm": arm, "episodes": 4} for arm in arms], "pairs": []}


@pytest.mark.parametrize(("people", "reference"), [({"operator"}, "operator"), (set(), "a-policy")])
def test_the_reference_is_the_person_whatever_the_arm_is_called(people: set[str], reference: str) -> None:
    arms = ["a-policy", "operator"]
    one = Campaign("one", arms, people, [])
    two = Campaign("two", [*arms, "b-policy"], people, [Linked("one", "head of one", tuple(arms))])
    (board,) = boards_of(cast("list[Shown]", [one, two])).boards
    assert board.reference == reference


def test_a_campaign_that_is_linked_through_no_arm_stands_apart() -> None:
    one = Campaign("one", ["a-policy"], set(), [])
    two = Campaign("two", ["b-policy"], set(), [Linked("one", "head of one", ())])
    found = boards_of(cast("list[Shown]", [one, two]))
    assert not found.boards and found.apart["two"] == "it was linked to one through no arm"
