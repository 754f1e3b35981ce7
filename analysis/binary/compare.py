"""Two arms' success counts compared: which test and interval fit the design, and the result as one plain object.

May not: put into words what it means (`sentences` does), or print.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from labctl.analysis.binary.paired import exact_decides, mcnemar, tango
from labctl.analysis.binary.pooling import Group, pool
from labctl.analysis.binary.rates import Rate, rate
from labctl.analysis.binary.tables_2x2 import Count, boschloo_p, newcombe, score_p, stratified
from labctl.analysis.numerals import counted
from labctl.analysis.survival.verdicts import ALPHA, OPEN, holm
from labctl.errors import QuestionError, TableError

SCHEMA = "labctl.compare/1"
LARGEST_EXACT = 250_000
"""Tables of more possible outcomes than this are compared by the score test: Boschloo's takes minutes there."""


class Judged(TypedDict):
    """What a test says: every p by its name, of which the first (`test`) decides."""

    p: dict[str, float | None]
    test: str
    p_value: float
    verdict: str


class Comparison(Judged):
    """Two arms compared. design: "independent", "paired" or "stratified"; difference: of the rates, first - second, as
    a fraction, `ci` its interval [low, high] at 1 - alpha. analysed_by: the labctl that computed it, of whoever prints
    it.
    """

    schema: str
    design: str
    alpha: float
    first: Rate
    second: Rate
    difference: float
    ci: list[float] | None
    analysed_by: NotRequired[str]


class Paired(Comparison):
    """With pairs: how many, in how many only the first and only the second succeeded, and the least p that so many
    discordant ones can give.
    """

    pairs: int
    discordant: list[int]
    smallest_p: float


class Stratum(TypedDict):
    """Both arms, [successes, trials], and the difference of their rates within one stratum."""

    stratum: str
    first: list[int]
    second: list[int]
    difference: float


class Stratified(Comparison):
    """Within strata, and over all of them."""

    strata: list[Stratum]


class ComparedArms(Comparison):
    """Two values of a column. p_holm: the p after Holm's correction over all pairs; missing: strata that only one of
    them has.
    """

    a: str
    b: str
    strata: NotRequired[list[Stratum]]
    missing: list[str]
    p_holm: float


def independent(first: Count, second: Count, alpha: float = ALPHA) -> Comparison:
    """Compare k of n with k of n, all trials independent: Boschloo's test, Newcombe's interval at 1 - alpha.

    Raises QuestionError for what is no count.
    """
    exact = (first[1] + 1) * (second[1] + 1) <= LARGEST_EXACT
    p = {"boschloo": boschloo_p(first, second)} if exact else {"score": score_p(first, second)}
    return {
        "schema": SCHEMA,
        "design": "independent",
        "alpha": alpha,
        "first": rate(*first, 1 - alpha),
        "second": rate(*second, 1 - alpha),
        "difference": first[0] / first[1] - second[0] / second[1],
        "ci": [*newcombe(first, second, 1 - alpha)],
        **_judged(p, alpha, first[0] / first[1] - second[0] / second[1]),
    }


def paired(first: Count, second: Count, b: int, c: int, alpha: float = ALPHA) -> Paired:
    """Compare two arms run in pairs, `b` pairs with success of the first only, `c` of the second only.

    McNemar's mid-p test decides, or the exact one where most pairs disagree; Tango's interval at 1 - alpha. Raises
    QuestionError where the counts contradict each other.
    """
    pairs = first[1]
    if second[1] != pairs:
        raise QuestionError(f"{pairs} and {second[1]} trials cannot be pairs; a pair has one of each")
    if first[0] - second[0] != b - c:
        found = f"{first[0]} and {second[0]} successes differ by {first[0] - second[0]}, {b} and {c} by {b - c}"
        raise QuestionError(f"{found}; b - c must be the difference of the successes")
    if min(b, c) < 0 or b > first[0] or b + c > pairs - (first[0] - b):
        raise QuestionError(
            f"b = {b} and c = {c} cannot come from {first[0]} and {second[0]} successes in "
            f"{counted(pairs, 'pair')}; b counts pairs in which only the first "
            "succeeded, c those in which only the second did"
        )
    test, least = mcnemar(b, c), mcnemar(b + c, 0)
    p: dict[str, float | None] = {"mcnemar_mid": test.p_mid, "mcnemar_exact": test.p_exact}
    exact = exact_decides(b + c, pairs)
    if exact:
        p = dict(reversed(p.items()))
    return {
        "schema": SCHEMA,
        "design": "paired",
        "alpha": alpha,
        "first": rate(*first, 1 - alpha),
        "second": rate(*second, 1 - alpha),
        "pairs": pairs,
        "discordant": [b, c],
        "difference": (b - c) / pairs,
        "ci": [*tango(b, c, pairs, 1 - alpha)],
        **_judged(p, alpha, b - c),
        "smallest_p": least.p_exact if exact else least.p_mid,
    }


def within_strata(strata: Sequence[tuple[Count, Count]], alpha: float = ALPHA, names: Sequence[str] = ()) -> Stratified:
    """Compare two arms within strata such as objects: Cochran–Mantel–Haenszel, judged by its exact mid-p.

    The difference is Mantel and Haenszel's, with Sato's interval. Raises QuestionError for what is no count.
    """
    found = stratified(strata, 1 - alpha)
    sums = [(sum(s[i][0] for s in strata), sum(s[i][1] for s in strata)) for i in (0, 1)]
    p = {"cmh_mid": found.p_mid, "cmh_exact": found.p_exact, "cmh_chi2": found.p_chi2}
    labels = names or [str(i + 1) for i in range(len(strata))]
    return {
        "schema": SCHEMA,
        "design": "stratified",
        "alpha": alpha,
        "first": rate(*sums[0], 1 - alpha),
        "second": rate(*sums[1], 1 - alpha),
        "strata": [
            {"stratum": label, "first": [*a], "second": [*b], "difference": a[0] / a[1] - b[0] / b[1]}
            for label, (a, b) in zip(labels, strata, strict=True)
        ],
        "difference": found.difference,
        "ci": None if found.interval is None else [*found.interval],
        **_judged(p, alpha, found.difference),
    }


def compare_counts(
    path: str | Path, between: str, within: Sequence[str] = (), alpha: float = ALPHA
) -> list[ComparedArms]:
    """Compare every pair of values of the column `between` in a counts table, within strata of the columns `within`.

    Each entry has `a`, `b`, the comparison, `p_holm` over all pairs, and `missing`: strata that only one of them has.
    The verdict is the one after Holm's correction. Raises `TableError`.
    """
    pooled = pool(path, [between, *within])
    named: dict[str, dict[Group, Count]] = {}
    for (value, *stratum), counts in pooled.items():
        named.setdefault(value, {})[tuple(stratum)] = counts
    if len(named) < 2:
        raise TableError(str(path), f"{between} has only the value {next(iter(named))!r}; a comparison needs two")
    rows = [_pair(named, a, b, alpha, str(path)) for a, b in itertools.combinations(named, 2)]
    adjusted = holm({(row["a"], row["b"]): row["p_value"] for row in rows})
    for row in rows:
        row["p_holm"] = adjusted[row["a"], row["b"]]
        row["verdict"] = verdict(row["p_holm"], alpha, row["difference"])
    return rows


def verdict(p: float, alpha: float, difference: float) -> str:
    """`first higher`, `second higher`, or `not resolved at this N`."""
    if p > alpha or difference == 0:
        return OPEN
    return "first higher" if difference > 0 else "second higher"


def _pair(named: dict[str, dict[Group, Count]], a: str, b: str, alpha: float, where: str) -> ComparedArms:
    """Before Holm's correction."""
    shared = [s for s in named[a] if s in named[b] and named[a][s][1] and named[b][s][1]]
    missing = [s for s in dict.fromkeys((*named[a], *named[b])) if s not in shared]
    if not shared:
        raise TableError(where, f"{a!r} and {b!r} have no stratum with trials of both; pool by fewer columns")
    counts = [(named[a][s], named[b][s]) for s in shared]
    left = [" / ".join(s) for s in missing]
    if not shared[0]:
        alone = independent(*counts[0], alpha)
        return {"a": a, "b": b, **alone, "missing": left, "p_holm": alone["p_value"]}
    found = within_strata(counts, alpha, [" / ".join(s) for s in shared])
    return {"a": a, "b": b, **found, "missing": left, "p_holm": found["p_value"]}


def _judged(p: Mapping[str, float | None], alpha: float, difference: float) -> Judged:
    decides, value = next(iter(p.items()))
    assert value is not None, decides
    return {"p": {**p}, "test": decides, "p_value": value, "verdict": verdict(value, alpha, difference)}
