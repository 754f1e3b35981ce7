"""Strengths from preferences against a published table and the likelihood itself; preference against score by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from support.statistics.real_blocks import real_blocks

from labctl.analysis.blocks.preference import FIRST, SECOND, TIE, Davidson, agreement, davidson
from labctl.errors import QuestionError

# Davidson (1970), example 2: brands i, j of chocolate pudding, preferred i, preferred j, neither
PUDDING = [
    *((0, 1, 19, 22, 16), (0, 2, 16, 19, 12), (1, 2, 19, 19, 10), (0, 3, 18, 23, 13), (1, 3, 23, 19, 9)),
    *((2, 3, 19, 20, 15), (0, 4, 13, 19, 18), (1, 4, 16, 20, 12), (2, 4, 16, 15, 17), (3, 4, 17, 14, 16)),
    *((0, 5, 18, 21, 12), (1, 5, 22, 20, 12), (2, 5, 13, 18, 10), (3, 5, 14, 19, 18), (4, 5, 11, 21, 12)),
]


def comparisons(counts: list[tuple[int, int, int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [(i, j, s) for i, j, *n in counts for s, k in zip((FIRST, SECOND, TIE), n, strict=True) for _ in range(k)]
    first, second, said = np.array(rows).T
    return first, second, said


def compared_in_the_real_blocks() -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray]:
    """The arms, and of each of the 281 blocks the place of both that were compared and what was said."""
    real = real_blocks()
    at = {arm: i for i, arm in enumerate(real.arms)}
    first, second = (np.array([at[pair[side]] for pair in real.compared]) for side in (0, 1))
    said = [
        TIE if who == "tie" else FIRST if who == pair[0] else SECOND
        for who, pair in zip(real.preferred, real.compared, strict=True)
    ]
    return tuple(real.arms), first, second, np.array(said)


def test_strengths_of_the_puddings() -> None:
    # Davidson (1970), example 2. The vignette of R's PlackettLuce prints, at his number of iterations, 0.1388005
    # 0.1729985 0.1617420 0.1653930 0.1586805 0.2023855 and 0.7468147. Without an order: each is entered both ways.
    first, second, said = comparisons(PUDDING)
    twice = np.r_[np.arange(len(said)), np.arange(len(said))]
    found = davidson("123456", np.r_[first, second], np.r_[second, first], np.r_[said, -said], twice, boot=99)
    worth = {one.arm: one.strength for one in found.davidson}
    expected = {"1": 0.1388, "2": 0.1730, "3": 0.1617, "4": 0.1654, "5": 0.1587, "6": 0.2024}
    assert worth == pytest.approx(expected, abs=2e-4) and found.tie_parameter == pytest.approx(0.747, abs=5e-4)
    assert found.order_effect == pytest.approx(1.0, abs=1e-6) and found.words == () and found.davidson[0].arm == "6"


def test_the_estimates_are_where_the_likelihood_of_davidson_and_beaver_is_highest() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 300)
    second = (first + rng.integers(1, 4, 300)) % 4
    said = rng.choice([FIRST, TIE, SECOND], 300, p=[0.3, 0.2, 0.5])
    said[(first == 0) & (rng.random(300) < 0.5)] = FIRST

    def minus_likelihood(x: np.ndarray) -> float:
        worth, tie, order = np.exp(np.r_[x[:3], 0.0]), np.exp(x[3]), np.exp(x[4])
        a, b, t = worth[first], order * worth[second], tie * np.sqrt(worth[first] * worth[second])
        return -np.log(np.select([said == FIRST, said == SECOND], [a, b], t) / (a + b + t)).sum()

    best = optimize.minimize(minus_likelihood, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    worth = np.exp(np.r_[best[:3], 0.0])
    found = davidson("abcd", first, second, said, boot=199)
    own = {one.arm: one.strength for one in found.davidson}
    assert [own[arm] for arm in "abcd"] == pytest.approx(worth / worth.sum(), abs=1e-5)
    assert found.tie_parameter == pytest.approx(np.exp(best[3]), rel=1e-4)
    assert found.order_effect == pytest.approx(np.exp(best[4]), rel=1e-4) and found.order_effect > 1
    assert found.order_ci is not None and found.order_ci[0] > 1
    assert all(one.ci and one.strength and one.ci[0] < one.strength < one.ci[1] for one in found.davidson)


def test_same_seed_same_intervals_and_a_block_is_drawn_whole() -> None:
    first, second, said = comparisons(PUDDING)
    again = [davidson("123456", first, second, said, boot=49, seed=s).as_dict() for s in (1, 1, 2)]
    assert again[0] == again[1] != again[2]
    alone = davidson("123456", first, second, said, boot=499)
    copied = davidson(
        "123456",
        np.r_[first, first],
        np.r_[second, second],
        np.r_[said, said],
        np.r_[np.arange(len(said)), np.arange(len(said))],
        boot=499,
    )
    assert copied.tie_ci == pytest.approx(alone.tie_ci, rel=1e-4)  # a copy in the same block tells nothing new


def test_an_arm_that_never_loses_has_no_upper_bound_and_no_number() -> None:
    first, second = np.array([0, 1, 1, 2, 1, 2, 2]), np.array([1, 0, 2, 1, 2, 1, 0])
    said = np.array([FIRST, SECOND, FIRST, FIRST, TIE, SECOND, SECOND])
    found = davidson("abc", first, second, said, boot=99)
    assert found.davidson[0].arm == "a" and found.order_ci is None
    assert [(one.strength, one.ci) for one in found.davidson] == [(None, None)] * 3
    assert "a never lost nor tied: its strength has no upper bound" in found.words
    assert any("went one way" in words for words in found.words)


def test_arms_without_a_link_and_outcomes_that_never_came_are_said() -> None:
    apart = davidson("abcde", np.array([0, 2, 1, 3]), np.array([1, 3, 0, 2]), np.array([1, 1, 1, 1]), boot=49)
    assert "e was never compared" in apart.words and {one.arm: one.strength for one in apart.davidson}["e"] is None
    assert any(words.startswith("no comparison links these groups: a and b; c and d") for words in apart.words)
    assert any("tie parameter is 0" in words for words in apart.words) and apart.tie_ci is None
    assert any("effect of order has no bound" in words for words in apart.words)


def test_arms_that_were_compared_are_not_said_to_be_unlinked_though_one_won_each_time() -> None:
    """a beat b four times, c and d met each other alone, both ways."""
    first, second = np.array([0, 1, 0, 1, 2, 3]), np.array([1, 0, 1, 0, 3, 2])
    words = davidson("abcd", first, second, np.array([FIRST, SECOND, FIRST, SECOND, FIRST, FIRST]), boot=49).words
    assert "no comparison links these groups: a and b; c and d" in words
    (one_way,) = (line for line in words if "went one way" in line)
    assert sorted(one_way.rpartition(": ")[2].split("; ")) == ["a", "b"]


def among_ties(verdicts: list[int], *, turned: bool = True) -> Davidson:
    """Two arms, one comparison a verdict, the order `turned` after each."""
    first = np.arange(len(verdicts)) % 2 if turned else np.zeros(len(verdicts), dtype=np.int64)
    return davidson("ab", first, 1 - first, np.array(verdicts), boot=199)


def test_a_few_preferences_of_one_arm_among_ties_bound_no_strength() -> None:
    """a preferred 4 times, twice as the first, and 16 ties: with theta and v ~ exp(theta / 2) it only gets likelier."""
    found = among_ties([FIRST, SECOND, FIRST, SECOND, *[TIE] * 16])
    assert [(one.strength, one.ci) for one in found.davidson] == [(None, None)] * 2 and found.tie_parameter is None
    few = "too few preferences beside the ties leave without bound how far these are apart in strength (a; b)"
    assert any(words.startswith(few) for words in found.words)
    assert found.order_effect == pytest.approx(1.0, abs=1e-3) and found.order_ci is None
    assert any("in too many draws of the blocks" in words for words in found.words)


def test_one_preference_of_the_other_arm_in_the_same_order_bounds_strengths_again() -> None:
    found = among_ties([FIRST, SECOND, FIRST, SECOND, SECOND, FIRST, *[TIE] * 4])
    first = found.davidson[0]
    assert first.arm == "a" and first.strength is not None and 0.5 < first.strength < 0.8 and first.ci is not None
    assert first.ci[0] < 0.5 and found.order_effect is not None and found.tie_parameter is not None


@pytest.mark.parametrize("turned", [True, False])
def test_ties_alone_say_nothing_of_strength_or_order(turned: bool) -> None:
    found = among_ties([TIE] * 10, turned=turned)
    assert [(one.strength, one.ci) for one in found.davidson] == [(None, None)] * 2
    assert found.order_effect is None and found.order_ci is None and found.tie_parameter is None
    assert found.words == ("nobody preferred one of two: strengths and the effect of order are unknown",)


def test_an_arm_that_was_always_first_is_not_told_from_an_effect_of_order() -> None:
    found = among_ties([FIRST, FIRST, FIRST, SECOND, SECOND, TIE, TIE], turned=False)
    assert found.davidson[0].strength is None and found.order_effect is None
    (words,) = found.words
    assert words.startswith("the comparisons do not tell from each other how far these are apart in strength (a; b)")


def test_a_strength_with_a_number_does_not_rest_on_the_penalty() -> None:
    """Like arms, .76 ties, 12 blocks: where there is a number, the gradient of the likelihood alone is 0 there."""
    rng, known = np.random.default_rng(1), 0
    for _ in range(60):
        said = rng.choice([FIRST, TIE, SECOND], 12, p=[0.12, 0.76, 0.12])
        found = among_ties(said.tolist())
        own = {one.arm: one.strength for one in found.davidson}
        if own["a"] is None or own["b"] is None or found.tie_parameter is None or found.order_effect is None:
            assert found.words
            continue
        known += 1
        worth = np.array([own["a"], own["b"]])
        first = np.arange(12) % 2
        one, two = worth[first], found.order_effect * worth[1 - first]
        tie = found.tie_parameter * np.sqrt(worth.prod())
        share = np.stack([one, two, np.full(12, tie)]) / (one + two + tie)
        expected = [share[2].sum(), share[1].sum(), share[0][first == 0].sum() + share[1][first == 1].sum()]
        wins = (said[first == 0] == FIRST).sum() + (said[first == 1] == SECOND).sum()
        seen = [(said == TIE).sum(), (said == SECOND).sum(), wins + 0.5 * (said == TIE).sum()]
        expected[2] += 0.5 * expected[0]
        assert expected == pytest.approx(seen, abs=1e-3)
    assert 5 < known < 60


def test_preference_against_score_counts_what_is_decided() -> None:
    said = np.array([FIRST, FIRST, SECOND, TIE, TIE, FIRST, SECOND])
    first, second = np.array([1.0, 0.2, 0.0, 0.5, 0.5, 0.3, np.nan]), np.array([0.5, 0.4, 1.0, 0.5, 0.0, 0.3, 1.0])
    assert agreement(said, first, second) == pytest.approx(2 / 3)
    assert agreement(np.array([TIE]), np.zeros(1), np.zeros(1)) is None


def test_on_the_real_blocks_preference_goes_with_the_score() -> None:
    real, n = real_blocks(), np.arange(281)
    _, first, second, said = compared_in_the_real_blocks()
    found = davidson(real.arms, first, second, said, boot=199)
    assert (found.first, found.second, found.tie) == (111, 132, 38) and found.words == ()
    assert found.davidson[-1].arm == "paligemma_binning"
    ends = [one.ci for one in found.davidson]
    assert all(ci is not None for ci in ends) and ends[-1] is not None and ends[-2] is not None
    assert ends[-1][1] < ends[-2][0]
    assert agreement(said, real.score[n, first], real.score[n, second]) == 212 / 213


def test_strengths_ties_and_order_of_the_real_blocks_are_those_of_r() -> None:
    # R 4.2.2, BradleyTerry2 1.1.2 with gnm 1.1.2 (Debian's r-cran-bradleyterry2): of the 281 comparisons
    #   gnm(count ~ GenDavidson(win, tie, loss, first, second, home.adv = ~1, tie.max = ~1, at.home1 = 1, at.home2 = 0)
    #       - 1, eliminate = match, family = poisson, tolerance = 1e-10)
    # exp(abilities) over their sum; there the first has the advantage h and two equal ones without it tie by
    # 2 exp(tie.max), so that in our terms g = exp(-h) and v = 2 exp(tie.max - h / 2).
    of_r = {
        "paligemma_binning": 0.012308703,
        "paligemma_diffusion": 0.157328791,
        "paligemma_fast": 0.146534298,
        "paligemma_fast_specialist": 0.233407342,
        "paligemma_vq": 0.174218699,
        "pi0": 0.127559158,
        "pi0_fast": 0.148643009,
    }
    arms, first, second, said = compared_in_the_real_blocks()
    found = davidson(arms, first, second, said, boot=19)
    assert {one.arm: one.strength for one in found.davidson} == pytest.approx(of_r, abs=1e-6)
    assert (found.order_effect, found.tie_parameter) == pytest.approx((1.0844685, 0.38046049), abs=1e-6)


def test_what_is_no_comparison_is_refused() -> None:
    with pytest.raises(QuestionError, match="two different arms"):
        davidson("ab", np.array([0]), np.array([0]), np.array([1]))
    with pytest.raises(QuestionError, match="two different arms"):
        davidson("ab", np.array([], int), np.array([], int), np.array([], int))
