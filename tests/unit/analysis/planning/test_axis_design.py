"""How many sets a drop takes: its power is that of the test on tables, and of a sum written out."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from labctl.analysis.blocks.swaps import swapped
from labctl.analysis.planning.axis_design import needed, power_of


def test_power_is_the_sum_over_all_outcomes_of_whether_the_swaps_reject():
    base, to, level = 0.9, 0.3, 0.1
    total = 0.0
    for d in product((-1, 0, 1), repeat=6):
        found = swapped(np.array(d, dtype=float))
        assert found is not None
        chances = {1: base * (1 - to), -1: (1 - base) * to}
        chance = np.prod([chances.get(one, 1 - sum(chances.values())) for one in d])
        total += float(chance) * (found.p <= level + 1e-12)
    assert power_of(np.array([6]), base, to, level)[0] == pytest.approx(total)


def test_without_a_drop_power_is_the_error_and_at_most_the_level():
    assert (power_of(np.arange(2, 200), 0.9, 0.9, 0.0125) <= 0.0125).all()
    two_sided = 2 * 0.5**8 * comb(8, 8)
    assert power_of(np.array([8]), 1.0, 0.0, two_sided)[0] == pytest.approx(1.0), "eight of eight, p = 2 / 256"
    assert power_of(np.array([8]), 1.0, 0.0, two_sided - 1e-6)[0] == 0.0


def test_a_plan_names_the_sets_from_which_on_power_is_there():
    """From .9 among four axes: to .7, .5, .3; the second is what docs/tasks.md simulates."""
    found = needed(4, 0.05)
    assert [one["sets"] for one in found] == [97, 34, 18]
    assert power_of(np.array([33, 34]), 0.9, 0.5, 0.0125) == pytest.approx([0.8, 0.8], abs=0.03)
    one_axis = needed(1, 0.05)
    assert all((a["sets"] or 0) < (b["sets"] or 0) for a, b in zip(one_axis, found, strict=True))
