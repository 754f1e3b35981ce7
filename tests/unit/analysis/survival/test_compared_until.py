"""Claims about how far two curves are compared: nowhere that one of the two arms could not be seen to get to."""

from __future__ import annotations

import pytest

from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.ks import observed_statistics, pair_of
from labctl.analysis.table import table_from_rows

NS = 1_000_000_000
STOPPED, WENT_ON = [("success", 5.0), ("censored", 20.0)], [("success", 5.0), ("success", 30.0)]


def gap(arms: dict[str, tuple[float | str, list[tuple[str, float]]]]) -> float:
    """The largest gap between two arms' curves up to 60 s; of each its budget, and one operation an episode."""
    table = table_from_rows(
        dict(episode=f"{arm}{i}", arm=arm, object="cup", kind=kind, time_s=t, budget_s=budget)
        for arm, (budget, operations) in arms.items()
        for i, (kind, t) in enumerate(operations)
    )
    cells = cells_of(table)
    found = observed_statistics(pair_of([cells["a", "cup"]], [cells["b", "cup"]], 60 * NS))
    assert found["ks_macro"] == pytest.approx(found["ks_sup_mean"]), "there is one object"
    return found["ks_macro"]


@pytest.mark.parametrize("shorter", ["a", "b"])
def test_nothing_is_compared_beyond_the_shorter_of_two_budgets(shorter: str) -> None:
    assert gap({arm: (20.0, STOPPED) if arm == shorter else (40.0, WENT_ON) for arm in "ab"}) == 0.0


def test_an_arm_that_states_no_budget_does_not_lengthen_the_others() -> None:
    assert gap({"a": (20.0, STOPPED), "b": ("", WENT_ON)}) == 0.0


def test_what_happens_as_the_shorter_budget_ends_still_counts() -> None:
    assert gap({"a": (20.0, [("success", 5.0), ("success", 20.0)]), "b": (40.0, WENT_ON)}) == 0.5
