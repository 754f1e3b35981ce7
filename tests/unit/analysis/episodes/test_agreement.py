"""Agreement of people: kappa and Bang's index on published tables."""

from __future__ import annotations

import numpy as np
import pytest

from labctl.analysis.blocks.agreement import weighted_kappa
from labctl.analysis.episodes.agreement import bang_index, cohens_kappa


def table(counts: list[list[int]]) -> tuple[list[int], list[int]]:
    pairs = [(i, j) for i, r in enumerate(counts) for j, n in enumerate(r) for _ in range(n)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def test_kappa_of_fleiss_cohen_and_everitt() -> None:
    # Fleiss, Cohen & Everitt (1969), table 1 as proportions of 200: kappa .429, its se from their formula .054
    first, second = table([[106, 10, 4], [22, 28, 10], [2, 12, 6]])
    found = cohens_kappa([str(x) for x in first], [str(x) for x in second])
    assert found.kappa == pytest.approx(0.429, abs=5e-4)
    assert found.interval is not None
    assert (found.interval[1] - found.interval[0]) / 2 / 1.959964 == pytest.approx(0.0536, abs=5e-4)
    assert found.same == pytest.approx(0.7) and len(found.disagreements) == 60 and found.weighted is None


def test_kappa_two_by_two_by_hand() -> None:
    # 20 both yes, 15 both no, 5 and 10 apart: same .7, chance .5 · .6 + .5 · .4 = .5 (a standard textbook table)
    found = cohens_kappa(*table([[20, 5], [10, 15]]))
    assert (found.n, found.same, found.kappa) == (50, pytest.approx(0.7), pytest.approx(0.4))


def test_one_label_throughout_says_nothing_beyond_chance() -> None:
    assert cohens_kappa(["ok"] * 5, ["ok"] * 5).kappa is None
    assert cohens_kappa(["a", "b"], ["a", "b"]).kappa == 1.0
    with pytest.raises(ValueError, match="3 and 2 labels"):
        cohens_kappa([1, 2, 3], [1, 2])


@pytest.mark.parametrize("kappa", [lambda *both: cohens_kappa(*both).interval, lambda *both: weighted_kappa(*both).ci])
def test_a_few_like_labels_are_no_certainty(kappa) -> None:
    truth = [2] * 8 + [1] * 4
    # Clopper and Pearson of 12 of 12: .025 ** (1 / 12) = .73535; chance (8/12)^2 + (4/12)^2 = 5/9
    assert kappa(truth, truth) == pytest.approx(((0.73535 - 5 / 9) / (4 / 9), 1.0), abs=1e-4)
    assert kappa([2, 2, 1], [2, 2, 1]) == pytest.approx(((0.29240 - 5 / 9) / (4 / 9), 1.0), abs=1e-4)
    assert kappa([1, 1, 1, 2], [1, 1, 1, 1]) is None, "kappa 0 without any spread"
    assert kappa([1, 2], [2, 1]) is None


def test_where_most_counts_are_alike_the_interval_of_kappa_holds_it() -> None:
    # right with .95, else another of three values; 12 episodes: of 400 runs .95 less four Monte-Carlo errors; [1, 1]
    # where all were alike had held in .46
    share, right, rng = np.array([0.1, 0.2, 0.7]), 0.95, np.random.default_rng(0)
    said = right * np.eye(3) + (1 - right) / 2 * (1 - np.eye(3))
    columns = share @ said
    truth = (right - share @ columns) / (1 - share @ columns)
    held = 0
    for _ in range(400):
        first = rng.choice(3, 12, p=share)
        second = [int(rng.choice(3, p=said[label])) for label in first]
        found = cohens_kappa(first.tolist(), second)
        held += found.interval is None or found.interval[0] <= truth <= found.interval[1]
    assert held / 400 > 0.95 - 4 * (0.95 * 0.05 / 400) ** 0.5


def test_counts_that_are_off_by_one_weigh_less_than_by_three() -> None:
    near = cohens_kappa([3, 4, 0], [3, 3, 0])
    far = cohens_kappa([3, 4, 0], [3, 1, 0])
    assert near.n == 3 and near.same == far.same and near.disagreements == (1,)
    assert near.weighted is not None and far.weighted is not None and near.weighted > far.weighted


def test_bangs_index_by_hand() -> None:
    # two arms: (right - wrong) / n. Bang et al. (2004): variance (p1 (1 - p1) + p2 (1 - p2) + 2 p1 p2) / n
    guesses = [("a", "a")] * 6 + [("a", "b")] * 2 + [("a", None)] * 2 + [("b", "a")] * 5 + [("b", "b")] * 5
    found = bang_index(guesses, ["a", "b"])
    assert (found["a"].index, found["b"].index) == (pytest.approx(0.4), 0.0)
    assert (found["a"].right, found["a"].unknown, found["a"].said) == (6, 2, 10)
    reach = 1.959964 * ((0.6 * 0.4 + 0.2 * 0.8 + 2 * 0.6 * 0.2) / 10) ** 0.5
    assert found["a"].interval == pytest.approx((0.4 - reach, 0.4 + reach), abs=1e-6)


def test_guesses_that_were_all_wrong_have_no_interval_whatever_rounding_leaves() -> None:
    found = bang_index([("a", "b")] * 5, ["a", "b", "c", "d"])["a"]
    assert (found.index, found.interval) == (pytest.approx(-1 / 3), None)


def test_guessing_at_random_among_three_is_zero() -> None:
    guesses = [("a", g) for g in "abc"] * 4
    assert bang_index(guesses, ["a", "b", "c"])["a"].index == pytest.approx(0.0)
    assert bang_index([("a", "a")], ["a", "b"])["a"].interval is None
    with pytest.raises(ValueError, match="guess 'z' is no arm"):
        bang_index([("a", "z")], ["a", "b"])
    with pytest.raises(ValueError, match="one arm cannot be guessed"):
        bang_index([], ["a"])
