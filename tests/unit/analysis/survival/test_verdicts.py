"""Adjusted p-values, letters, attainable p and verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.analysis.survival.verdicts import InView, compact_letters, holm, holm_by_family, smallest_p, verdict


def test_holm_by_hand() -> None:
    # R: p.adjust(c(.01, .04, .03), "holm")
    p = {("a", "b"): 0.01, ("a", "c"): 0.04, ("b", "c"): 0.03}
    assert holm(p) == pytest.approx({("a", "b"): 0.03, ("a", "c"): 0.06, ("b", "c"): 0.06})
    apart = holm_by_family({**p, ("human", "a"): 0.04}, "human")
    assert apart["human", "a"] == 0.04 and apart["a", "c"] == pytest.approx(0.06)


LESS, NONE, MORE = (0.1, 0.5), (-0.2, 0.3), (-0.5, -0.1)


@pytest.mark.parametrize(
    ("p", "seen", "opposed", "kind", "leads"),
    [
        (0.01, InView(LESS, [3.0, 0.1], [LESS, NONE]), False, "better", "x"),
        (0.01, InView(MORE, [-3.0, -0.1], [NONE, NONE]), False, "better", "y"),
        (0.01, InView(LESS, [None, 0.0], [None]), False, "better", "x"),
        (0.01, InView(NONE, [3.0, 0.1], [LESS, LESS]), False, "different, not ranked", None),
        (0.01, InView(None, [3.0, 0.1], [None]), False, "different, not ranked", None),
        (0.01, InView((0.0, 0.4), [3.0, 0.1]), False, "different, not ranked", None),
        (0.01, InView(LESS, [-0.1, 0.1], [NONE]), False, "different, crossing", None),
        (0.01, InView(LESS, [3.0, 0.1], [MORE]), False, "different, crossing", None),
        (0.01, InView(NONE, [3.0, 0.1], [LESS, MORE]), False, "different, crossing", None),
        (0.01, InView(LESS, [3.0, 0.1]), True, "depends on object", None),
        (0.2, InView(LESS, [3.0, 0.1]), False, "not resolved at this N", None),
        (0.2, InView(LESS, [3.0, 0.1]), True, "not resolved at this N", None),
    ],
)
def test_a_direction_needs_a_pair_that_differs_and_an_interval_that_nothing_in_view_contradicts(
    p: float, seen: InView, opposed: bool, kind: str, leads: str | None
) -> None:
    found = verdict(("x", "y"), p, seen, opposed=opposed)
    assert found is not None and (found.kind, found.leads) == (kind, leads)
    assert verdict(("x", "y"), None, seen) is None, "what was not tested has no verdict"


def test_alpha_is_the_line_itself() -> None:
    seen = InView(LESS)
    kinds = [v.kind for alpha in (0.05, 0.2) if (v := verdict(("x", "y"), 0.094, seen, alpha=alpha))]
    assert kinds == ["not resolved at this N", "better"]


def test_letters_by_hand() -> None:
    # only the fastest and the slowest differ: the two in between belong to both groups
    assert compact_letters(["a", "b", "c", "d"], {("d", "a")}) == {"a": "a", "b": "ab", "c": "ab", "d": "b"}
    assert compact_letters(["a", "b"], set()) == {"a": "a", "b": "a"}


@given(st.sets(st.sampled_from([(a, b) for a in "pqrst" for b in "pqrst" if a < b])))
def test_two_arms_share_a_letter_exactly_if_they_are_not_resolved(resolved: set[tuple[str, str]]) -> None:
    letters = compact_letters(list("pqrst"), resolved)
    for a in "pqrst":
        for b in "pqrst":
            if a < b:
                assert bool(set(letters[a]) & set(letters[b])) == ((a, b) not in resolved)


def test_five_blocks_cannot_beat_one_in_sixteen() -> None:
    # methodology §3, 2
    assert smallest_p([(1, 1)] * 5) == 0.0625
    assert smallest_p([(1, 1)] * 6) == 0.03125
    assert smallest_p([(2, 1)]) == pytest.approx(1 / 3)
    assert smallest_p([(1, 1)] * 40, perm=9999) == pytest.approx(1e-4)
    assert smallest_p([(3, 0)]) == 1.0
