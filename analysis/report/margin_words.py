"""What a registered margin shows of arms: the sentences of the first page and the table. Nothing else in a report says
that arms are equivalent, and nothing is said without a margin.

May not: call a pair different because a margin was not shown to hold, or say of a bare table that it was registered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from labctl.analysis.numerals import (
    MOST_DIGITS,
    confidence,
    factor_digits,
    interval,
    listing,
    number,
    p_equals,
    p_value,
    percent,
    ratio,
)
from labctl.analysis.report.tables import Column, Table
from labctl.analysis.report.wording import Claim, few, margin_words, standing, verdict_words, winner
from labctl.analysis.survival.result import AnalysisResult, Margin, MarginVerdict, PairResult

MarginPair = tuple[PairResult, MarginVerdict]
Otherwise = Sequence[tuple[str, Sequence[PairResult]]]
"""The pairs again under every other way to count, each with its way in words."""
TITLE = "Against the margin"
UNABLE = {
    "no_spread": "no spread to judge it by",
    "floor": "an arm that never moves would be within it too",
}


def claims(result: AnalysisResult, *, protocol: bool, otherwise: Otherwise = ()) -> list[Claim]:
    """A sentence of the pairs that are shown to be within the margin and one of those that are not; none without one.
    protocol: whether a protocol registered it. otherwise: what takes back what is shown is said.
    """
    margin = result.get("margin")
    asked = [(pair, one) for pair in result["pairs"] if (one := pair.get("margin")) is not None]
    if margin is None or not asked:
        return []
    by = "that the protocol registered" if protocol else "given with the table, which no record says was chosen before"
    whole = f"the margin {by}, {_margin(margin)}"
    to = margin["non_inferior_to"]
    what = "equivalent in time per item" if to is None else f"non-inferior to {to} in time per item"
    shown, not_shown = ([one for one in asked if one[1]["shown"] == side] for side in (True, False))
    found: list[Claim] = []
    if shown:
        more = [*map(_all_the_same, shown), *_changes(shown, otherwise)]
        text = " ".join([f"Shown to be {what}, within {whole}: {_listed(shown)}.", *filter(None, more)])
        found.append(Claim("resolved", text + few([pair for pair, _ in shown], result)))
    if not_shown:
        within = "that margin" if shown else whole
        still_open = [one for one in not_shown if not _apart(one[0])]
        apart = [f"{pair['a']} – {pair['b']}" for pair, _ in not_shown if _apart(pair)]
        parts = [f"{_listed(still_open)}. By itself that is no sign of a difference"] if still_open else []
        if apart:
            parts.append(f"{'Nor of ' if still_open else ''}{listing(apart)}, which are told apart above")
        text = f"Not shown to be {what}, within {within}: {'. '.join(parts)}."
        found.append(Claim("unresolved", text + few([pair for pair, _ in not_shown], result)))
    return found


def table(result: AnalysisResult) -> Table | None:
    """A row for each pair that the margin asks about; None where it asks about none."""
    columns = (
        Column("Pair", "text"), Column("Asked", "text"), Column("Time per item, ratio"), Column("Interval"),
        Column("its level %"), Column("Margin"), Column("p"), Column("p Holm"), Column("Within the margin", "text"),
    )  # fmt: skip
    rows = tuple(
        (
            f"{pair['a']} – {pair['b']}",
            found["claim"] if found["arm"] is None else f"{found['arm']} {found['claim']}",
            ratio(pair["log_rmst_ratio"], None),
            _interval(found),
            _level(found),
            _ends(found),
            p_value(found["p"], found["p_error"]),
            p_value(found["p_holm"], found["p_holm_error"]),
            margin_words(pair) if found["unable"] is None else f"{margin_words(pair)}: {UNABLE[found['unable']]}",
        )
        for pair in result["pairs"]
        if (found := pair.get("margin")) is not None
    )
    if not rows:
        return None
    note = (
        "The ratio of RMST, the first of a pair over the second, as a mean over the objects both met: at one object "
        "alone they may be further apart. p: the larger of two one-sided tests (Schuirmann 1987), or the one at the "
        "worse side where non-inferiority is asked; Holm over the pairs of a family. Shown where that is at most alpha "
        f"= {result['alpha']:g}: there the interval, at the level of Holm’s step, lies within the margin at the sides "
        "that are asked (the worse end of a 90 % interval is a one-sided 95 % bound). A rare failure that no episode "
        "showed is in no interval. Not shown: these data do not tell, nothing more."
    )
    return Table(columns, rows, note)


def _margin(margin: Margin) -> str:
    digits = _digits(margin["rmst_ratio"])
    low, high = number(1 / margin["rmst_ratio"], digits), number(margin["rmst_ratio"], digits)
    return f"a ratio from {low} to {high}" if margin["non_inferior_to"] is None else f"a ratio below {high}"


def _listed(asked: Sequence[MarginPair]) -> str:
    def one(pair: PairResult, found: MarginVerdict) -> str:
        turned = found["arm"] == pair["b"]
        first, second = (pair["b"], pair["a"]) if turned else (pair["a"], pair["b"])
        names = f"{first} and {second}" if found["arm"] is None else first
        if found["unable"] is not None:
            return f"{names} ({UNABLE[found['unable']]})"
        limits = [1 / end for end in _limits(found)] if turned else _limits(found)
        effect = ratio(pair["log_rmst_ratio"], found["ci"], turned=turned, against=[1.0, *limits])
        text = f"{effect} of {first} over {second}, {_level(found)} % interval"
        return f"{names} ({text}; Holm-adjusted {p_equals(found['p_holm'], found['p_holm_error'])})"

    return "; ".join(one(pair, found) for pair, found in asked)


def _level(found: MarginVerdict) -> str:
    shown = percent(found["level"]).removesuffix(".0")
    return shown if shown != "100" else confidence(1 - found["level"])


def _ends(found: MarginVerdict) -> str:
    digits = _digits(max(max(end, 1 / end) for end in _limits(found)))
    low, high = (None if end is None else number(math.exp(end), digits) for end in found["margin"])
    return f"above {low}" if high is None else f"below {high}" if low is None else f"{low} to {high}"


def _limits(found: MarginVerdict) -> list[float]:
    """The margin's ends that are asked about, as ratios."""
    return [math.exp(end) for end in found["margin"] if end is not None]


def _digits(margin: float) -> int:
    """The decimals, 2 or more, that a margin is printed with as it was registered."""
    return next((n for n in range(2, MOST_DIGITS) if math.isclose(round(margin, n), margin)), MOST_DIGITS)


def _interval(found: MarginVerdict) -> str:
    ends = [math.exp(end) for end in found["ci"] or () if end is not None]
    return interval(ends or None, digits=factor_digits(ends, [1.0, *_limits(found)]))


def _apart(pair: PairResult) -> bool:
    """Whether the verdict says that the two differ, in whatever way."""
    return standing(pair) not in ("unresolved", "untested")


def _all_the_same(asked: MarginPair) -> str:
    """That a pair differs too, where it does: by less than the margin; nothing of an arm that is ahead."""
    pair, found = asked
    if not _apart(pair) or (found["arm"] is not None and winner(pair) == found["arm"]):
        return ""
    differ = f"{pair['a']} and {pair['b']} differ all the same ({verdict_words(pair)})"
    ratio, ends = pair["log_rmst_ratio"], [abs(end) for end in found["margin"] if end is not None]
    less = ratio is not None and abs(ratio) < max(ends, default=0.0)
    return f"{differ}: in the mean by less than that." if less else f"{differ}."


def _changes(shown: Sequence[MarginPair], otherwise: Otherwise) -> list[str]:
    """What is no longer shown when something is counted another way."""
    found: list[str] = []
    for way, pairs in otherwise:
        again = {(pair["a"], pair["b"]): pair.get("margin") for pair in pairs}
        for pair, _ in shown:
            then = again.get((pair["a"], pair["b"]))
            if then is None or not then["shown"]:
                found.append(f"With {way}, that is not shown of {pair['a']} and {pair['b']}.")
    return found
