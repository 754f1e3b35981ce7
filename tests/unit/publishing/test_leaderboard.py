"""A board is held against an anchor that all of its campaigns ran: a person's arm where there is one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from labctl.publishing.leaderboard import Boards, boards_of
from labctl.publishing.shown import Shown
from labctl.store.linking import Linked

OPENED = {"instruction": "Move it.", "items_staged": 1, "process_lost": "void", "void_reasons": ()}


class Campaign:
    """What a board asks of a campaign that is shown. leads: pairs that its report resolves, the faster first."""

    of_items, tau_s, rows = True, None, ()

    def __init__(
        self,
        name: str,
        arms: list[str],
        people: set[str],
        links: list[Linked],
        leads: list[tuple[str, str]] | None = None,
        treatments: dict[str, tuple[str, str]] | None = None,
    ) -> None:
        self.treatments = treatments or {}
        self.name, self.people, self.links, self.hashes = name, frozenset(people), links, frozenset({f"head of {name}"})
        self.manifest = type("Manifest", (), {"kind": "sim"})()
        self.opened: dict[str, Any] = {**OPENED, "campaign": name}
        pairs = [
            {"a": a, "b": b, "leads": a, "log_rmst_ratio": -0.5, "log_rmst_ratio_ci": None} for a, b in leads or ()
        ]
        self.result: Any = {"arms": [{"arm": arm, "episodes": 4} for arm in arms], "pairs": pairs}


def link(to: str, *anchors: str) -> Linked:
    return Linked(to, f"head of {to}", anchors)


def boards(*campaigns: Campaign) -> Boards:
    return boards_of(cast("list[Shown]", campaigns))


def ranges(found: Boards) -> list[dict[str, tuple[int, int]]]:
    """Of each board each arm's places; an arm stands on a board once."""
    for board in found.boards:
        assert len({place.arm for place in board.places}) == len(board.places), "an arm has one place"
        assert sum(place.reference for place in board.places) == 1
    return [{place.arm: (place.first, place.last) for place in board.places} for board in found.boards]


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
    assert not found.boards and found.apart == {
        "two": "it was opened linked to one, but through no arm",
        "one": "two was opened linked to it, but through no arm",
    }


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("tau_s", 50.0, "the horizon of one is None s and that of two 50.0 s"),
        ("of_items", False, "their tasks are not all counted in items, of which alone linked campaigns are compared"),
        ("manifest", type("Manifest", (), {"kind": "real"})(), "one is sim and two is real"),
    ],
)
def test_both_ends_of_a_link_that_is_not_followed_have_the_reason(field: str, value: object, why: str) -> None:
    one, two = Campaign("one", ["x", "p"], set(), []), Campaign("two", ["x", "q"], set(), [link("one", "x")])
    setattr(two, field, value)
    found = boards(one, two, Campaign("three", ["x"], set(), []))
    assert not found.boards and found.apart == {
        "one": f"two was opened linked to it, but {why}",
        "two": f"it was opened linked to one, but {why}",
        "three": "linked to no other campaign of this site",
    }


def test_campaigns_that_count_otherwise_share_a_board_that_says_so() -> None:
    one, two = Campaign("one", ["x", "p"], set(), []), Campaign("two", ["x", "q"], set(), [link("one", "x")])
    assert not any("rules" in note for note in boards(one, two).boards[0].notes)
    two.opened |= {"estimand": {"help": "no_success"}, "items_staged": 4}
    said = [note for note in boards(one, two).boards[0].notes if "take out" in note]
    assert [note.partition("out: ")[2] for note in said] == [
        "items_staged: 1 in one, 4 in two",
        "estimand.help: as_it_went in one, no_success in two",
    ]
    assert all(note.startswith("one and two: they ") for note in said)


def test_an_anchor_that_is_another_policy_by_the_two_records_joins_nothing() -> None:
    """A record that was forged may call any policy by an anchor's name and say that nothing was changed."""
    before, now = ({"x": ("policy", of), "y": ("policy", "as it was")} for of in ("as it was", "another"))
    one = Campaign("one", ["x", "y"], set(), [], treatments=before)
    only = Campaign("two", ["x"], set(), [link("one", "x")], treatments=now)
    found = boards(one, only)
    assert not found.boards
    said = "x of two is not the x of one: its kind, controller, options or card differ, although its link does not say"
    assert said in found.apart["two"] and said in found.apart["one"]
    both = Campaign("two", ["x", "y"], set(), [link("one", "x", "y")], treatments=now)
    (board,) = boards_of(cast("list[Shown]", [one, both])).boards
    assert board.reference == "y" and any(said in note for note in board.notes)
    assert {(place.arm, place.campaign) for place in board.places} == {("x", "one"), ("x", "two"), ("y", "one")}
    told = Campaign("two", ["x"], set(), [Linked("one", "head of one", ("x",), ("x",))], treatments=now)
    assert boards(one, told).boards[0].reference == "x", "on its opener's word, which the board says"


def test_verdicts_that_contradict_one_another_place_nobody_and_are_said() -> None:
    one = Campaign("one", ["x", "y", "z"], set(), [], leads=[("x", "y"), ("y", "z"), ("x", "z")])
    two = Campaign("two", ["x", "y"], set(), [link("one", "x", "y")], leads=[("y", "x")])
    found = boards(one, two)
    assert ranges(found) == [{"x": (1, 2), "y": (1, 2), "z": (3, 3)}]
    assert "none of them counts for a place: x before y by one; y before x by two" in found.boards[0].notes[-1]


def test_verdicts_in_a_circle_over_three_campaigns_place_nobody() -> None:
    one = Campaign("one", ["x", "y", "z"], set(), [], leads=[("x", "y")])
    two = Campaign("two", ["x", "y", "z"], set(), [link("one", "x", "y", "z")], leads=[("y", "z")])
    three = Campaign(
        "three", ["x", "y", "z", "last"], set(), [link("two", "x", "y", "z")], leads=[("z", "x"), ("x", "last")]
    )
    assert ranges(boards(one, two, three)) == [{"x": (1, 3), "y": (1, 4), "z": (1, 4), "last": (2, 4)}]


def test_an_arm_of_two_earlier_campaigns_that_one_is_linked_to_has_one_place() -> None:
    one, two = Campaign("one", ["x", "p"], set(), []), Campaign("two", ["x", "q"], set(), [])
    both = Campaign("both", ["x", "r"], set(), [link("one", "x"), link("two", "x")], leads=[("x", "r")])
    found = boards(one, two, both)
    assert ranges(found) == [{"x": (1, 3), "p": (1, 4), "q": (1, 4), "r": (2, 4)}]
    (x,) = (place for place in found.boards[0].places if place.arm == "x")
    assert (x.campaign, x.also) == ("one", ("two", "both"))


def test_every_campaign_that_an_anchor_leads_to_is_on_its_board_and_the_others_reason_is_true() -> None:
    one, two = Campaign("one", ["x", "p"], set(), []), Campaign("two", ["x", "q"], set(), [link("one", "x")])
    three = Campaign("three", ["x", "y"], set(), [link("two", "x")])
    four = Campaign("four", ["y", "z"], set(), [link("three", "y")])
    found = boards(one, two, three, four)
    assert [board.campaigns for board in found.boards] == [("one", "two", "three")]
    assert found.apart == {"four": "it is linked to three through y, whose arms are held against x"}


def test_campaigns_that_the_first_anchor_does_not_reach_have_a_board_of_their_own() -> None:
    one, two = Campaign("one", ["x", "y"], set(), []), Campaign("two", ["x", "y", "z"], set(), [link("one", "x")])
    three = Campaign("three", ["z", "w"], set(), [link("two", "z")])
    four = Campaign("four", ["w", "v"], set(), [link("three", "w")])
    found = boards(one, two, three, four)
    assert {board.campaigns: board.reference for board in found.boards} == {("one", "two"): "x", ("three", "four"): "w"}
    assert not found.apart


def test_an_arm_that_one_campaign_between_never_ran_has_one_place() -> None:
    one, two = Campaign("one", ["x", "h"], set(), []), Campaign("two", ["h", "q"], set(), [link("one", "x", "h")])
    three = Campaign("three", ["x", "h"], set(), [link("two", "x", "h")])
    assert set(*ranges(boards(one, two, three))) == {"x", "h", "q"}
