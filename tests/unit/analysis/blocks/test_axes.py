"""Drops of axes: swaps against scipy's, the interval that goes with p, one weak axis among four, compositions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.blocks import axes
from labctl.analysis.blocks.axes import Perturbed, axis_drops, category_drops, compositions
from labctl.analysis.blocks.swaps import swapped
from labctl.errors import TableError

AXES = ("S-LANG", "V-SC", "VB-POSE", "VSB-NOBJ")


def campaign(rng: np.random.Generator, sets: int, weak: str = "", to: float = 0.35) -> list[Perturbed]:
    """One arm that succeeds at .85, at its weak axis at `to`; a set is a base and four axes, hard or easy for all."""
    rows = []
    for s in range(sets):
        hard = rng.normal(0, 0.7)
        for axis in ("", *AXES):
            chance = 1 / (1 + math.exp(-(stats.logistic.ppf(to if axis and axis == weak else 0.85) + hard)))
            rows.append(
                Perturbed("p", float(rng.random() < chance), axis or "base", "base" if axis else "", axis, f"{s}")
            )
    return rows


def test_p_is_that_of_all_swaps_written_out() -> None:
    d = np.array([0.4, -0.1, 0.25, 0.5, 0.0, 0.3, np.nan])
    found = swapped(d)
    assert found is not None
    own = stats.permutation_test((d[:-1],), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert (found.pairs, found.mean) == (6, pytest.approx(0.225))
    assert found.p == pytest.approx(own.pvalue) and found.error == 0 and found.smallest_p == 2 / 64


def test_an_interval_is_what_swaps_about_it_do_not_reject() -> None:
    rng = np.random.default_rng(2)
    d = rng.uniform(-1, 1, 10) + 0.2
    found = swapped(d)
    assert found is not None
    low, high = found.interval(0.9) or (math.nan, math.nan)
    for at, inside in ((low - 1e-6, False), (low + 1e-6, True), (high - 1e-6, True), (high + 1e-6, False)):
        about = swapped(d - at)
        assert about is not None and (about.p > 0.1) == inside
    few = swapped(d[:4])
    assert few is not None and few.interval(0.95) is None and few.smallest_p == 0.125
    assert swapped(np.array([np.nan])) is None


def test_random_swaps_say_what_all_of_them_say() -> None:
    d = np.random.default_rng(5).choice([-1.0, 0, 1], 14, p=[0.1, 0.3, 0.6])
    all_of_them, drawn = swapped(d, perm=2**14), swapped(d, perm=4999)
    assert all_of_them is not None and drawn is not None and drawn.error > 0 == all_of_them.error
    assert drawn.p == pytest.approx(all_of_them.p, abs=4 * drawn.error)
    assert drawn.interval() == pytest.approx(all_of_them.interval(), abs=0.08)


def test_a_drop_is_paired_in_its_set_and_by_base_condition() -> None:
    rows = [
        *(Perturbed("a", 1.0, "cup", "", "", "1"), Perturbed("a", 0.5, "cup dark", "cup", "V-LIGHT", "1")),
        *(
            Perturbed("a", 0.0, "box", "", "in-distribution", "1"),
            Perturbed("a", 0.0, "box dark", "box", "V-LIGHT", "1"),
        ),
        *(Perturbed("a", 0.8, "cup", "", "", "2"), Perturbed("a", 0.0, "cup dark", "cup", "V-LIGHT", "2")),
        *(Perturbed("a", 0.2, "cup dark", "cup", "V-LIGHT", "2"), Perturbed("a", 1.0, "cup odd", "cup", "S-LANG", "3")),
        *(Perturbed("a", 0.9, "cup dark", "cup", "V-LIGHT", ""), Perturbed("a", math.nan, "cup", "", "", "3")),
    ]
    (found,) = axis_drops(rows)
    assert (found.axis, found.category, found.pairs) == ("V-LIGHT", "visual", 3)
    assert found.base == pytest.approx(0.6) and found.drop == pytest.approx((0.5 + 0.0 + 0.7) / 3)
    assert found.perturbed == pytest.approx(0.6 - 0.4) and found.ci is None and found.smallest_p == 0.25


def test_a_category_counts_a_set_once_and_axes_together_are_of_all_their_senses() -> None:
    rows = [Perturbed("a", 1.0, "b", "", "", s) for s in "12"]
    rows += [
        Perturbed("a", v, x, "b", x, s) for s in "12" for v, x in ((0.0, "V-SC"), (0.5, "V-OBJ"), (0.2, "V-SC+S-LANG"))
    ]
    found = {one.category: one for one in category_drops(rows)}
    assert found["visual"].drop == pytest.approx(0.75) and found["visual"].pairs == 2 and found["visual"].axis == ""
    assert found["visual + semantic"].drop == pytest.approx(0.8)
    with pytest.raises(TableError, match="axis is 'dark'"):
        axis_drops([Perturbed("a", 1.0, "x", "b", "dark", "1")])


def test_a_composition_is_held_against_its_single_axes_of_the_same_set() -> None:
    rows = []
    for s in range(8):
        noise = 0.01 * s
        for axis, score in (("", 1.0), ("V-SC", 0.9 - noise), ("S-LANG", 0.8), ("S-LANG+V-SC", 0.2 + noise)):
            rows.append(Perturbed("a", score, axis or "b", "b" if axis else "", axis, str(s)))
    rows.append(Perturbed("a", 0.0, "x", "b", "V-SC+S-LANG", "alone"))
    (found,) = compositions(rows)
    assert found.axis == "S-LANG+V-SC" and found.pairs == 8
    assert found.drop == pytest.approx(0.765) and found.singles == pytest.approx(0.335)
    assert found.beyond == pytest.approx(0.43) and found.p == 2 / 2**8 and found.ci is not None and found.ci[0] > 0.3


def test_where_nothing_changed_in_eight_sets_a_drop_is_not_known_to_be_none() -> None:
    rows = [
        Perturbed("a", 1.0, axis or "b", "b" if axis else "", axis, str(s)) for s in range(8) for axis in ("", "V-SC")
    ]
    (found,) = axis_drops(rows)
    # Tango's interval of 0 of 8 discordant pairs is z^2 / (n + z^2) = 3.8415 / 11.8415 either way
    assert found.drop == 0 and found.p == 1 and found.ci == pytest.approx((-0.3244, 0.3244), abs=1e-4)


@pytest.mark.parametrize("graded", [False, True], ids=["success", "score"])
@pytest.mark.parametrize("sets", [8, 20])
def test_the_interval_of_one_axis_holds_a_small_drop_as_often_as_it_says(sets: int, graded: bool) -> None:
    """From .95 to .88 in unlike sets; most campaigns have few sets that differ, or none. 400 campaigns, one axis."""
    rng, held, runs = np.random.default_rng(sets + graded), 0, 400
    for _ in range(runs):
        rows = []
        for s in range(sets):
            for axis, chance in (("", 0.95), ("V-SC", 0.88)):
                n = 4 if graded else 1
                score = float(rng.binomial(n, chance)) / n
                rows.append(Perturbed("a", score, axis or "b", "b" if axis else "", axis, str(s)))
        (found,) = axis_drops(rows, perm=999)
        held += found.ci is not None and found.ci[0] <= 0.07 <= found.ci[1]
    assert held / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


def test_one_weak_axis_among_four_is_named_and_the_others_are_not() -> None:
    rng = np.random.default_rng(0)
    found_weak, wrong, runs = 0, 0, 40
    for _ in range(runs):
        drops = {one.axis: one for one in axis_drops(campaign(rng, 40, "S-LANG"), perm=999)}
        for one in drops.values():
            assert one.ci is not None and (one.ci[0] > 0 or one.ci[1] < 0) == (one.p_holm <= 0.05)
        found_weak += drops["S-LANG"].p_holm <= 0.05 and drops["S-LANG"].drop > 0
        wrong += any(drops[axis].p_holm <= 0.05 for axis in AXES[1:])
    assert found_weak / runs >= 0.8 and wrong / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_an_interval_keeps_the_farther_end_of_two_and_the_side_of_0_that_swaps_found() -> None:
    """Decision 0044."""
    assert axes._interval((0.10, 0.30), (0.05, 0.40)) == (0.05, 0.40)
    assert axes._interval((0.10, 0.30), (-0.05, 0.25)) == (0.10, 0.30)
    assert axes._interval((-0.30, -0.10), (-0.40, -0.05)) == (-0.40, -0.05)
    assert axes._interval((-0.30, -0.10), (-0.20, 0.05)) == (-0.30, -0.10)
