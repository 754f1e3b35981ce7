"""What a design can resolve at best; the smallest p is proved by the test itself on every labelling of tiny designs."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.analysis.planning.interim_design import resolution, smallest_swap_p
from labctl.analysis.planning.spending import looks
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_p
from labctl.analysis.survival.resample import exchanges_of, smallest_by_design
from labctl.analysis.survival.verdicts import holm_by_family, pairs_of
from labctl.analysis.table import table_from_rows
from labctl.checks.protocol_size import squares
from labctl.core.design import arm_orders, words_of
from labctl.reporting.relabellings import relabellings


def p_of(times_a: list[float], times_b: list[float], perm: int) -> dict[str, float | None]:
    """p of a pair that met once in every block, one item an episode."""
    rows = [
        {
            "episode": f"{arm}{block}",
            "arm": arm,
            "object": "all",
            "kind": "success",
            "time_s": time,
            "block": str(block),
            "budget_s": 60.0,
            "end_s": time,
            "items_staged": 1,
        }
        for arm, times in (("a", times_a), ("b", times_b))
        for block, time in enumerate(times)
    ]
    cells = cells_of(table_from_rows(rows))
    return permutation_p(pair_of([cells["a", "all"]], [cells["b", "all"]], 60_000_000_000), 0, perm)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
def test_no_data_of_a_tiny_design_go_below_the_smallest_p_and_some_reach_it(blocks: int):
    # Every assignment of a fast and a slow time within every block: all the most extreme data there are.
    found = []
    for flips in itertools.product([False, True], repeat=blocks):
        fast, slow = [10.0 + b for b in range(blocks)], [40.0 + b for b in range(blocks)]
        a = [s if flip else f for f, s, flip in zip(fast, slow, flips, strict=True)]
        b = [f if flip else s for f, s, flip in zip(fast, slow, flips, strict=True)]
        p = p_of(a, b, 9999)
        found += [value for value in p.values() if value is not None]
    assert min(found) == pytest.approx(smallest_swap_p(blocks))


def test_when_swaps_are_drawn_the_smallest_p_is_one_in_as_many_and_one():
    p = p_of([1.0 + b for b in range(20)], [50.0] * 20, 99)
    assert p["log_rmst_ratio"] == smallest_swap_p(20, 99) == 1 / 100


def test_five_blocks_cannot_beat_one_sixteenth():
    # methodology 3.2: "five blocks cannot beat .0625 for one pair"
    assert smallest_swap_p(5) == 0.0625
    assert (smallest_swap_p(13), smallest_swap_p(15)) == (2 / 2**13, 1 / 10_000)


@given(st.integers(1, 5000))
def test_more_blocks_never_raise_the_smallest_p(blocks: int):
    assert 1 / 10_000 <= smallest_swap_p(blocks + 1) <= smallest_swap_p(blocks) <= 1


@pytest.mark.parametrize(
    ("arms", "reference", "pairs"),
    [(4, True, 3), (5, True, 6), (3, True, 2), (2, True, 1), (4, False, 6), (3, False, 3), (2, False, 1)],
)
def test_holm_counts_the_larger_family_of_pairs_as_the_report_makes_them(arms: int, reference: bool, pairs: int):
    """Pairs with the reference are a family of their own where the plan names one, whoever it is."""
    found = resolution(12, 4, arms=arms, reference=reference, alpha=0.05)
    names = [f"arm {i}" for i in range(arms)]
    p = dict.fromkeys(pairs_of(names, names[0] if reference else None), found["smallest_p"])
    adjusted = holm_by_family(p, names[0] if reference else None)
    assert found["family_pairs"] == pairs and found["resolvable"]["alpha"] == 0.05 / pairs
    assert found["smallest_holm_p"] == pytest.approx(max(adjusted.values()))


@settings(deadline=None, max_examples=8)
@given(blocks=st.integers(7, 100))  # the fewest of which a p of .05 / 3 is possible
def test_more_blocks_resolve_smaller_effects(blocks: int):
    less = resolution(blocks, 4, arms=4, reference=True, alpha=0.05)
    more = resolution(2 * blocks, 4, arms=4, reference=True, alpha=0.05)
    ratios = [found["resolvable"]["rmst_ratio"] for found in (more, less)]
    assert None not in ratios and ratios == sorted(ratios, key=float) and ratios[0] != ratios[1]
    assert more["half_width_items"] < less["half_width_items"] < less["half_width_success"]
    for few, many in zip(less["resolvable"]["success"], more["resolvable"]["success"], strict=True):
        assert few["difference"] is None or many["difference"] < few["difference"]


@pytest.mark.parametrize(("arms", "blocks"), [(2, 1), (2, 5), (4, 6), (50, 12)])
def test_no_ratio_of_times_is_resolvable_where_no_p_is_as_small_as_the_level(arms: int, blocks: int):
    """The normal formula knows no smallest p: five blocks, which cannot beat .0625, were promised a factor of 2.9."""
    found = resolution(blocks, 4, arms=arms, reference=True, alpha=0.05)
    assert found["smallest_holm_p"] > 0.05 and found["resolvable"]["rmst_ratio"] is None


@pytest.mark.parametrize(("arms", "blocks"), [(2, 6), (4, 7)])
def test_a_ratio_is_given_from_the_fewest_blocks_on_that_reach_the_level(arms: int, blocks: int):
    found = resolution(blocks, 4, arms=arms, reference=True, alpha=0.05)
    assert found["smallest_holm_p"] <= 0.05 and (found["resolvable"]["rmst_ratio"] or 0.0) > 1


def test_a_design_too_small_to_conclude_anything_says_so():
    (said,) = resolution(4, 4, arms=4, reference=True, alpha=0.05)["warnings"]
    assert said.startswith("4 blocks cannot reach p <= 0.05")


@pytest.mark.parametrize(
    ("arms", "blocks", "smallest"),
    [
        (2, 14, 2 / 2**14),  # swaps within blocks
        (2, 16, 2 / 2**8),  # both blocks of a square or none: docs/statistics.md, "Which labels could have been"
        (2, 24, 2 / 2**12),  # seen: a report of 24 blocks had .00049, and its plan .0001
        (2, 40, 1 / 10_000),
        (3, 18, 1 / 10_000),
        (3, 24, 2 / 8**4),
        (4, 40, 1 / 10_000),
        (4, 44, 2 / 2**11),
    ],
)
def test_the_smallest_p_of_a_report_by_operations_is_by_what_its_schedule_could_have_drawn(
    arms: int, blocks: int, smallest: float
):
    """As the report itself finds it for a schedule that was drawn, whichever that is."""
    found = resolution(blocks, 4, arms=arms, reference=False, alpha=0.05, drawn=partial(squares, arms))
    assert found["smallest_p"] == pytest.approx(smallest)
    names = [f"arm {i}" for i in range(arms)]
    orders = itertools.islice(arm_orders(names, words_of(bytes(range(32)), "orders")), blocks)
    schedule = [
        {"block": block, "position": place, "arm": arm}
        for block, order in enumerate(orders)
        for place, arm in enumerate(order)
    ]
    met = list(map(str, range(blocks)))
    by_design = exchanges_of(relabellings(schedule), *names[:2], met, found["family_pairs"], 0.05)
    reported = max(smallest_by_design(by_design), 1 / 10_000) if by_design else smallest_swap_p(blocks)
    assert found["smallest_p"] == pytest.approx(reported)


def test_looks_carry_their_levels_and_say_when_they_cannot_stop():
    found = resolution(40, 4, arms=5, reference=True, alpha=0.05, looks_after=[10, 20, 40])
    levels = [look.level for look in looks([10, 20, 40], 0.05)]
    assert [look["level"] for look in found["looks"]] == pytest.approx(levels)
    assert [look["can_stop"] for look in found["looks"]] == [False, True, True]
    assert found["warnings"][0].startswith("look 1 cannot stop: after 10 blocks there is no p below 0.012")
