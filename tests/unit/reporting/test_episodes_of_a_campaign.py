"""An operations campaign as an episodes table: the rows of an episode become one, and the reader takes it."""

from __future__ import annotations

import pytest

from labctl.analysis.episodes_table.columns import MEASURES, OPTIONAL, REQUIRED
from labctl.analysis.episodes_table.table import table_from_rows
from labctl.core.trial import Trial
from labctl.reporting.episodes_table import columns_of, episodes, places_of
from labctl.reporting.operations_table import Row


def row(episode: str, arm: str, kind: str, time_s: float | None, **more: object) -> Row:
    base = {"block": 1, "session": "s1", "trial": f"t-{episode}", "condition": "c", "operator": "p1", "axis": ""}
    whole = {"items_staged": 2, "end_s": 60.0, "budget_s": 60.0, "object": "spoon", "interventions": 0, **base}
    return {"episode": episode, "arm": arm, "kind": kind, "time_s": time_s, **whole, **more}


ROWS = [
    row("e1", "x", "success", 10.0, end_s=25.5),
    row("e1", "x", "success", 15.25, end_s=25.5),
    row("e2", "y", "success", 20.0),
    row("e2", "y", "censored", 40.0),
    row("e3", "x", "ghost", None, block=2, end_s=12.0),
]


def test_who_judged_and_what_was_asked_are_there_where_the_campaign_says_so() -> None:
    found = episodes(ROWS, {}, "move the spoons", evaluators={"e1": "ann", "e2": None})
    assert [(r["evaluator"], r["instruction"]) for r in found] == [
        ("ann", "move the spoons"),
        (None, "move the spoons"),
        (None, "move the spoons"),
    ]


def test_items_moved_are_the_score_and_all_of_them_success() -> None:
    found = episodes(ROWS, {"e1": "all_done", "e2": "budget"}, "move the spoons")
    assert [(r["success"], r["score"], r["time_s"], r["position"], r["moved"], r["staged"]) for r in found] == [
        (1, 1.0, 25.25, 1, 2, 2),
        (0, 0.5, 60.0, 2, 1, 2),
        (0, 0.0, 12.0, 1, 0, 2),
    ]
    assert [r["end_reason"] for r in found] == ["all_done", "budget", None]
    assert {tuple(r) for r in found} == {(*REQUIRED, *MEASURES, *OPTIONAL)} == {tuple(columns_of(found))}
    assert table_from_rows(found).grid("score").tolist()[0] == [1.0, 0.5]


def test_a_void_that_counts_stands_beside_the_episode_of_its_trial() -> None:
    found = episodes([*ROWS, row("e9", "x", "censored", 5.0, trial="t-e1", end_s=5.0)], {}, "")
    assert [(r["void"], r["position"]) for r in found] == [(0, 1), (0, 2), (0, 1), (1, None)]
    assert table_from_rows(found).voids == {"x": 1}


def test_a_place_is_that_of_the_schedule_wherever_the_rows_stand_and_whichever_are_left() -> None:
    """A void that counts stands behind the scored ones, also where it ran first and was not run again."""
    rows = [row("e2", "y", "success", 20.0), row("e3", "x", "ghost", None, block=2), row("e1", "x", "censored", 5.0)]
    trials = {
        name: Trial(name, block, at, "c", "", max_voids=3)
        for name, block, at in (("t-e1", 1, 0), ("t-e2", 1, 1), ("t-e3", 2, 1))
    }
    places = places_of(rows, trials)
    found = {r["episode"]: r["position"] for r in episodes(rows, {}, "", places)}
    assert found == {"e1": 1, "e2": 2, "e3": 1}
    assert [r["position"] for r in episodes(rows[:1], {}, "", places)] == [2]


def test_a_void_that_counts_is_marked_also_where_the_episode_of_its_trial_was_filtered_away() -> None:
    """With --where outcome=failure it was void 0 and had the place of the success: `analyze` counted it."""
    rows = [*ROWS, row("e9", "x", "censored", 5.0, trial="t-e1", end_s=5.0)]
    found = episodes([one for one in rows if one["kind"] == "censored"], {}, "", places_of(rows))
    assert [(r["episode"], r["void"], r["position"]) for r in found] == [("e2", 0, 2), ("e9", 1, None)]


def test_before_unblinding_there_is_no_arm() -> None:
    found = episodes([{k: v for k, v in r.items() if k != "arm"} for r in ROWS], {}, "")
    assert all("arm" not in r for r in found) and "arm" not in columns_of(found)


@pytest.mark.parametrize("staged", [None, 0])
def test_without_items_staged_nothing_succeeds_by_itself(staged: int | None) -> None:
    (found,) = episodes([row("e1", "x", "censored", 60.0, items_staged=staged)], {}, "")
    assert (found["success"], found["score"], found["time_s"]) == (0, None, 60.0)
