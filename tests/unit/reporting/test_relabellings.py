"""The relabellings that a schedule could have drawn, and the test that draws from them."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.survival.resample import design_labels, exchanges_of, smallest_by_design
from labctl.analysis.table import table_from_rows
from labctl.core.design import draw, williams
from labctl.reporting.relabellings import relabellings

SECRETS = [number.to_bytes(32, "big") for number in range(3000)]


def slots(arms: str, blocks: int, secret: bytes = b"s" * 32) -> list[dict]:
    drawn = draw(["o"], list(arms), blocks, secret).slots
    return [{"block": s.block, "position": s.position, "arm": s.arm, "trial": s.trial} for s in drawn]


@pytest.mark.parametrize(("arms", "blocks", "ways"), [("ab", 8, 2), ("abc", 6, 8), ("abcd", 8, 2), ("abcde", 10, 2)])
def test_how_many_ways_a_square_leaves_two_arms_once_the_others_stand(arms: str, blocks: int, ways: int) -> None:
    found = relabellings(slots(arms, blocks))
    assert set(found) == set(itertools.combinations(arms, 2))
    assert {len(options) for squares in found.values() for _, options in squares} == {ways}
    assert all(not any(options[0]) for squares in found.values() for _, options in squares), "as drawn is the first"


def test_every_way_is_drawn_and_equally_often_where_the_other_arm_stands_as_it_does() -> None:
    # of 3,000 schedules of three arms in six blocks, those with c at the places it has in the first
    own = slots("abc", 6, SECRETS[0])
    orders = {secret: _orders(slots("abc", 6, secret)) for secret in SECRETS}
    first = orders[SECRETS[0]]
    times: dict[tuple[str, ...], int] = defaultdict(int)
    for order in orders.values():
        if all(a.index("c") == b.index("c") for a, b in zip(order, first, strict=True)):
            times[tuple(order)] += 1
    ((_, options),) = relabellings(own)["a", "b"]
    swapped = {
        tuple(o.translate(str.maketrans("ab", "ba")) if turned else o for o, turned in zip(first, way, strict=True))
        for way in options
    }
    assert set(times) == swapped
    expected = sum(times.values()) / 8
    assert sum((n - expected) ** 2 / expected for n in times.values()) < 29.9  # chi-square on 7, 1 in 10,000


def _orders(found: list[dict]) -> list[str]:
    return ["".join(s["arm"] for s in found if s["block"] == b) for b in range(6)]


@given(st.integers(2, 6), st.integers(1, 9), st.binary(min_size=32, max_size=32))
@settings(max_examples=25, deadline=None)
def test_each_relabelling_is_a_schedule_of_the_design(arms: int, blocks: int, secret: bytes) -> None:
    names = "abcdef"[:arms]
    (_, squares) = next(iter(relabellings(slots(names, blocks, secret)).items()))
    orders = [[s["arm"] for s in slots(names, blocks, secret) if s["block"] == b] for b in range(blocks)]
    for drawn, options in squares:
        for way in options:
            rows = {tuple(_turned(orders[int(b)], turned)) for b, turned in zip(drawn, way, strict=True)}
            assert any(rows <= square for square in _squares(names))


def _turned(order: list[str], turned: int) -> list[str]:
    return [{"a": "b", "b": "a"}.get(arm, arm) for arm in order] if turned else order


def _squares(names: str) -> list[set[tuple[str, ...]]]:
    rows = williams(len(names))
    return [{tuple(label[i] for i in row) for row in rows} for label in itertools.permutations(names)]


def test_blocks_that_this_design_did_not_draw_leave_labels_to_free_swaps() -> None:
    same = [{"block": b, "position": p, "arm": arm} for b in range(4) for p, arm in enumerate("ab")]
    assert relabellings(same) == {}, "a opens every block: no Williams square"
    assert relabellings([s for s in slots("abc", 6) if s["trial"] != slots("abc", 6)[4]["trial"]]) == {}


def test_labels_are_drawn_from_all_ways_and_every_way_once_where_there_are_few() -> None:
    exchanges = relabellings(slots("ab", 8))["a", "b"]
    blocks = [str(b) for b in range(8)] * 2
    is_a = np.repeat([True, False], 8)
    every = design_labels(exchanges, blocks, is_a, np.uint64(0))
    assert len(every) == len(np.unique(every, axis=0)) == 16 and (every[0] == is_a).all()
    drawn = design_labels(exchanges, blocks, is_a, np.uint64(1), range(800))
    ways, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(w) for w in ways.tolist()} == {tuple(w) for w in every.tolist()}
    assert ((counts - 50) ** 2 / 50).sum() < 44.3  # chi-square on 15, 1 in 10,000
    assert (drawn.sum(axis=1) == 8).all()


def test_the_schedule_is_drawn_from_only_where_it_leaves_enough_ways() -> None:
    few, many = relabellings(slots("ab", 8)), relabellings(slots("ab", 20))
    assert smallest_by_design(few["a", "b"]) == 2 / 2**4 and smallest_by_design(many["a", "b"]) == 2 / 2**10
    met = [str(block) for block in range(20)]
    assert exchanges_of(few, "a", "b", met[:8], 1, 0.05) == ()
    assert exchanges_of(many, "b", "a", met, 1, 0.05) == tuple(many["a", "b"])
    assert exchanges_of(many, "a", "b", met, 6, 0.05) == (), "six pairs need a smaller p"
    assert exchanges_of(many, "a", "b", [*met, "elsewhere"], 1, 0.05) == ()
    assert exchanges_of(None, "a", "b", met, 1, 0.05) == ()


def test_of_a_campaign_that_ended_early_only_the_blocks_that_were_run_make_ways() -> None:
    # seen: 20 of 40 blocks of three arms, drawn from ways of all 40: the least p was .0014, above the look's level
    drawn, met = relabellings(slots("ab", 40)), [str(block) for block in range(40)]
    assert len(exchanges_of(drawn, "a", "b", met[:20], 1, 0.05)) == 10
    assert exchanges_of(drawn, "a", "b", met[:8], 1, 0.05) == ()
    cut = exchanges_of(drawn, "a", "b", met[:21], 1, 0.05)
    assert cut[-1] == (("20",), ((0,), (1,))) and smallest_by_design(cut) == 2 / 2**11


def test_a_result_says_where_its_labels_were_exchanged() -> None:
    rng = np.random.default_rng(2)
    drawn = slots("ab", 20)
    rows = [
        {"episode": s["trial"], "arm": s["arm"], "object": "o", "block": s["block"], "kind": "success",
         "time_s": float(rng.exponential(9)) + 0.1, "items_staged": 1, "budget_s": 60.0}
        for s in drawn
    ]  # fmt: skip
    table = table_from_rows(rows)
    for design, said, ways in ((relabellings(drawn), "schedule", 1024), (None, "free within blocks", 2000)):
        (pair,) = analyze(table, tau=60.0, boot=19, perm=1999, design=design)["pairs"]
        assert (pair["relabelled_by"], pair["relabellings"]) == (said, ways)


def test_extra_blocks_of_a_person_alone_are_of_no_square_and_change_no_relabelling() -> None:
    def of(alone: tuple[str, int] | None) -> tuple[list[dict], dict]:
        drawn = draw(["o"], list("abc"), 6, SECRETS[5], alone).slots
        made = [{"block": s.block, "position": s.position, "arm": s.arm, "trial": s.trial} for s in drawn]
        return made, relabellings(made)

    (_, plain), (made, found) = of(None), of(("a", 4))
    sizes = {s["block"]: sum(o["block"] == s["block"] for o in made) for s in made}
    whole = [str(block) for block in sorted(sizes) if sizes[block] == 3]
    assert len(sizes) == 10
    for pair, squares in found.items():
        assert [ways for _, ways in squares] == [ways for _, ways in plain[pair]]
        assert [block for blocks, _ in squares for block in blocks] == whole
