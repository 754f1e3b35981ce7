"""Swapping labels within blocks is exact; statistics are what they say; the family is one question."""

from __future__ import annotations

import numpy as np
import pytest

from labctl.analysis.survival import permutation
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.ks import Pair, bootstrap_p, observed_statistics, pair_of
from labctl.analysis.survival.permutation import permutation_p, permutation_test, relabelled
from labctl.analysis.table import table_from_rows

NS = 1_000_000_000


def pair(rows: list[tuple[str, str, str, float]], *, tau: float = 60) -> Pair:
    """(arm, object, block, time) of one-success episodes."""
    table = table_from_rows(
        dict(episode=str(i), arm=a, object=o, kind="success", time_s=t, block=b) for i, (a, o, b, t) in enumerate(rows)
    )
    cells = cells_of(table)
    objects = sorted({o for _, o in cells})
    return pair_of([cells["a", o] for o in objects], [cells["b", o] for o in objects], round(tau * NS))


def test_the_four_statistics_by_hand() -> None:
    rows = [("a", "cup", "", 1.0), ("b", "cup", "", 2.0), ("a", "pan", "", 4.0), ("b", "pan", "", 2.0)]
    found = observed_statistics(pair(rows))
    assert found["ks_macro"] == 1.0
    # mean of F_a - F_b: 1/2 on [1, 2), (0 - 1)/2 on [2, 4)
    assert found["ks_sup_mean"] == pytest.approx(0.5)
    assert found["log_rmst_ratio"] == pytest.approx((np.log(1 / 2) + np.log(4 / 2)) / 2)
    assert found["uph"] == pytest.approx(((3600 - 1800) + (900 - 1800)) / 2)


def test_tied_times_make_no_gap() -> None:
    rows = [(arm, "cup", "", t) for arm in "ab" for t in (1.0, 1.0, 2.0, 2.0, 2.0)]
    assert observed_statistics(pair(rows))["ks_macro"] == 0.0


def test_few_blocks_are_enumerated_and_five_cannot_beat_one_in_sixteen() -> None:
    # methodology §3, 2: five blocks cannot beat .0625 for one pair
    rows = [(arm, "cup", str(b), t + b / 100) for b in range(5) for arm, t in (("a", 1.0), ("b", 30.0))]
    found = permutation_p(pair(rows), 0, 9999)
    assert {k: found[k] for k in ("log_rmst_ratio", "uph", "ks_macro", "family")} == pytest.approx(
        {"log_rmst_ratio": 0.0625, "uph": 0.0625, "ks_macro": 0.0625, "family": 0.0625}
    )


def test_random_swaps_agree_with_all_of_them() -> None:
    rng = np.random.default_rng(2)
    rows = [(arm, "cup", "", float(t)) for arm, shift in (("a", 8), ("b", 12)) for t in rng.exponential(shift, 7) + 0.1]
    exact = permutation_p(pair(rows), 0, 3432)  # C(14, 7) relabellings
    drawn = permutation_p(pair(rows), 0, 3000)
    for name, p in exact.items():
        assert p is not None
        assert drawn[name] == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 3000) + 1e-3)


def test_labels_that_mean_nothing_are_rejected_as_often_as_asked() -> None:
    rng = np.random.default_rng(8)
    hits = {"ks_macro": 0, "ks_sup_mean": 0, "log_rmst_ratio": 0, "uph": 0, "family": 0}
    for _ in range(200):
        rows = [(arm, o, "", float(t)) for o in ("cup", "pan") for arm in "ab" for t in rng.exponential(20, 5) + 0.01]
        for name, p in permutation_p(pair(rows), 0, 99).items():
            hits[name] += p is not None and p <= 0.2
    for name, count in hits.items():
        assert count / 200 == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 200)), name


def test_an_undefined_statistic_is_left_out_of_the_family() -> None:
    table = table_from_rows(
        dict(episode=f"{a}{i}", arm=a, object="o", kind="ghost" if i else "success", time_s="" if i else t)
        for a, t in (("a", 1), ("b", 9))
        for i in range(3)
    )
    cells = cells_of(table)
    found = permutation_p(pair_of([cells["a", "o"]], [cells["b", "o"]], 60 * NS), 0, 99)
    assert found["uph"] is None and found["family"] is not None


def test_the_papers_bootstrap_separates_what_differs_and_not_what_does_not() -> None:
    rng = np.random.default_rng(4)

    def p(slow: float) -> float:
        rows = [(arm, "cup", "", float(t)) for arm, s in (("a", 5), ("b", slow)) for t in rng.exponential(s, 20)]
        return bootstrap_p(pair(rows), 0, 500)

    assert p(60) < 0.01 and p(5) > 0.05


def test_who_leads_at_each_object_is_tested_with_the_same_swaps() -> None:
    rng = np.random.default_rng(9)
    rows = [
        (arm, o, "", float(t))
        for o, a, b in (("cup", 5, 30), ("pan", 30, 5))
        for arm, scale in (("a", a), ("b", b))
        for t in rng.exponential(scale, 25) + 0.1
    ]
    found = permutation_test(pair(rows), 0, 1999)
    assert found.object_ratio["cup"] < 0 < found.object_ratio["pan"]
    assert found.opposed(0.05) and not found.opposed(1e-9)
    assert found.relabellings == 2000 and all(found.error.values())
    assert found.as_dict()["p"]["ks_macro"] == found.p["ks_macro"] and "family" in str(found)


def test_two_arms_without_any_event_are_alike() -> None:
    table = table_from_rows(
        dict(episode=f"{a}{i}", arm=a, object="o", kind="censored", time_s=60) for a in "ab" for i in range(4)
    )
    cells = cells_of(table)
    found = permutation_p(pair_of([cells["a", "o"]], [cells["b", "o"]], 60 * NS), 0, 99)
    assert set(found.values()) == {1.0}


SQUARES = 30


def squares() -> Pair:
    """Two arms in 60 blocks on one object, whose labels were drawn two blocks together."""
    rng = np.random.default_rng(5)
    exchanges = [((str(2 * n), str(2 * n + 1)), ((0, 0), (0, 1), (1, 0), (1, 1))) for n in range(SQUARES)]
    table = table_from_rows(
        dict(episode=f"{arm}{block}", arm=arm, object="cup", kind="success", time_s=float(time), block=str(block))
        for block in range(2 * SQUARES)
        for arm, time in zip("ab", rng.exponential((8.0, 12.0)) + 0.1, strict=True)
    )
    cells = cells_of(table)
    return pair_of([cells["a", "cup"]], [cells["b", "cup"]], 60 * NS, exchanges=exchanges)


def test_labels_laid_out_a_few_at_a_time_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    laid, worth = squares(), np.arange(4.0 * SQUARES)[:, None]
    at_once = permutation_test(laid, 3, 499), *relabelled(laid, worth, 3, 499)
    monkeypatch.setattr(permutation, "FITTING", 1)
    monkeypatch.setattr(permutation, "FEWEST", 48)
    by_pieces = permutation_test(laid, 3, 499), *relabelled(laid, worth, 3, 499)
    assert by_pieces[0] == at_once[0]
    assert [sums.tobytes() for sums in by_pieces[1:]] == [sums.tobytes() for sums in at_once[1:]]


def test_so_many_labels_are_in_memory_however_many_episodes_there_are() -> None:
    for units in (100, 1_000, 20_000):
        sizes = []
        pieces = permutation._pieces(lambda part: np.ones((len(part), 2), dtype=bool), range(9999), units)
        for labels, part, _ in pieces:
            assert isinstance(labels, permutation.Given) and len(labels.a) == len(part)
            sizes.append(len(part))
        assert sum(sizes) == 9999
        assert max(sizes) <= max(permutation.FEWEST, permutation.FITTING // units)
