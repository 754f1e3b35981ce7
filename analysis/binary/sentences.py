"""Sentences about compared success rates: what the counts show, what they leave open, what they rest on.

May not: rank two arms without a verdict, or call two rates equal; absence of a difference is never claimed.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis.binary.compare import ComparedArms, Comparison, Paired, Stratified
from labctl.analysis.numerals import confidence, counted, p_equals, p_value, percent
from labctl.analysis.survival.verdicts import OPEN

TESTS = {
    "boschloo": "Boschloo's exact test",
    "score": "the score test (too many trials for the exact one)",
    "mcnemar_mid": "McNemar's mid-p test",
    "mcnemar_exact": "McNemar's exact test",
    "cmh_mid": "the exact Cochran-Mantel-Haenszel test, mid-p",
}
PREMISE = "Every trial counts as independent: use episodes, not items, since items of one episode are not."
Found = Comparison | Paired | Stratified | ComparedArms
INTERVALS = {"independent": "Newcombe", "paired": "Tango", "stratified": "Mantel-Haenszel, Sato"}


def sentences(found: Found, first: str = "the first", second: str = "the second") -> list[str]:
    """The sentences on a comparison of `compare`, most important first."""
    return [_claim(found, first, second), _evidence(found), *_limits(found, first, second), _premise(found)]


def points(fraction: float) -> str:
    """A difference of rates in percentage points with its sign, `+15.0`."""
    text = percent(fraction)
    return text if fraction <= 0 or not text.strip("0.") else f"+{text}"


def span(found: Found) -> str:
    """The interval of the difference in percentage points, or that there is none."""
    return "no interval" if found["ci"] is None else _span(found["ci"])


def _span(bounds: Sequence[float]) -> str:
    return f"[{', '.join(points(bound) for bound in bounds)}]"


def _turned(found: Found) -> str:
    """The interval as the lead of whichever is ahead."""
    if found["ci"] is None or found["difference"] > 0:
        return span(found)
    low, high = found["ci"]
    return _span((-high, -low))


def _claim(found: Found, first: str, second: str) -> str:
    gap = found["difference"]
    size = f"{percent(abs(gap))} points"
    if found["verdict"] == OPEN:
        none = f"neither {first} nor {second} succeeded more often"
        seen = none if gap == 0 else f"{_higher(found, first, second)} by {size}"
        return f"Not resolved at this N: {seen}, and {_open(found, first, second)}."
    return f"Resolved: {_higher(found, first, second)}, by {size} {_turned(found)}."


def _higher(found: Found, first: str, second: str) -> str:
    ahead, behind = (first, second) if found["difference"] > 0 else (second, first)
    within = " within strata" if found["design"] == "stratified" else ""
    return f"{ahead} succeeded more often than {behind}{within}"


def _open(found: Found, first: str, second: str) -> str:
    if found["ci"] is None:
        return "these counts show no spread to judge it by"
    low, high = found["ci"]
    level = confidence(found["alpha"])
    ends = [_end(bound, first, second) for bound in (low, high)]
    return f"the counts go with anything from {ends[0]} to {ends[1]} ({level} % interval)"


def _end(bound: float, first: str, second: str) -> str:
    ahead = first if bound > 0 else second
    return f"{percent(abs(bound))} points in favour of {ahead}"


def _evidence(found: Found) -> str:
    text = f"By {TESTS[found['test']]}, two-sided, {p_equals(found['p_value'], None)}"
    if found["test"] == "mcnemar_mid":
        text += f"; by the exact conditional test, which is conservative, {p_equals(found['p']['mcnemar_exact'], None)}"
    if found["test"] == "mcnemar_exact":
        text += (
            f"; its mid-p form, {p_equals(found['p']['mcnemar_mid'], None)}, rejects too often when most pairs disagree"
        )
    if "cmh_exact" in found["p"]:
        text += f"; without the mid-p, {p_equals(found['p']['cmh_exact'], None)}"
    if "p_holm" in found:
        text += f"; after Holm's correction for all pairs, {p_equals(found['p_holm'], None)}"
    return f"{text}; alpha {found['alpha']:g}."


def _limits(found: Found, first: str, second: str) -> list[str]:
    out = []
    resolved = found["verdict"] != OPEN
    if found["ci"] is not None and resolved == (found["ci"][0] < 0 < found["ci"][1]):
        relation = "includes" if resolved else "excludes"
        out.append(
            f"The interval ({INTERVALS[found['design']]}) {relation} 0, by another method than the test: borderline."
        )
    if "discordant" in found:
        b, c = found["discordant"]
        out.append(
            f"Only the {b + c} of {found['pairs']} pairs that disagree count: {b} for {first}, {c} for {second}."
        )
        if found["smallest_p"] > found["alpha"]:
            out.append(
                f"{counted(b + c, 'discordant pair')} cannot give a p below {p_value(found['smallest_p'], None)} "
                "whatever they say; "
                "run more pairs."
                if b + c
                else "No pair disagrees, so nothing can be told apart; run more pairs."
            )
    if "strata" in found:
        signs = {(s["difference"] > 0) - (s["difference"] < 0) for s in found["strata"]} - {0}
        if len(signs) == 2:
            out.append("Strata point both ways, which chance alone can do: read them one by one before the sum.")
        left = found.get("missing", [])
        if left:
            out.append(f"Left out, since only one of the two was tried there: {', '.join(left)}.")
    return out


def _premise(found: Found) -> str:
    if found["design"] == "paired":
        return "A pair is one condition staged once for each of the two; pairs count as independent of each other."
    if found["design"] == "independent":
        return f"{PREMISE} If trials were run in pairs, say so with --paired b,c; it usually resolves more."
    return PREMISE
