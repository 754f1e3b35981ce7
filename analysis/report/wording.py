"""Every sentence of a report that claims something: which arm won, what stayed open, what was blind.

May not: say "better" or "faster" without a verdict and p_holm <= alpha. No other module or template says it at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from labctl.analysis.numerals import interval, listing, number, p_equals, percent
from labctl.analysis.survival.result import AnalysisResult, ArmResult, PairResult

Standing = Literal["resolved", "crossing", "depends", "unresolved", "untested"]

SIMULATED = "Every episode on this page ran in simulation. Nothing here is a measurement of a real robot."
NOT_REAL = "No episode on this page is a measurement of a real robot doing its task."


@dataclass(frozen=True)
class Claim:
    """One sentence for the first page, and how firmly it stands."""

    standing: Standing
    text: str


class ArmStops(TypedDict):
    """Episodes of an arm that a person stopped: how many of which cause, those of them that do not count against it,
    and how many were voided.
    """

    arm: str
    by_cause: dict[str, int]
    not_counted: dict[str, int]
    void: int


class Repeated(TypedDict):
    """The analysis with every stop by hand counted."""

    arms: list[ArmResult]
    pairs: list[PairResult]


class Stops(TypedDict):
    """Stops by hand. counted: the causes that the protocol lists; `repeated` where some stops were not counted."""

    counted: list[str] | None
    arms: list[ArmStops]
    repeated: NotRequired[Repeated]


def standing(pair: PairResult, rmst: Mapping[str, float | None], *, alpha: float) -> Standing:
    """How firmly a pair stands: a direction only for verdict "better" with p_holm <= alpha and two different RMSTs.

    `rmst` maps arm to macro RMST in seconds; the direction comes from it, never from the sign of a KS statistic
    (PhAIL, arXiv 2605.29710). Where the mean log RMST ratio points the other way, the pair is not ranked.
    """
    p = pair.get("p_holm")
    if p is None:
        return "untested"
    verdict = str(pair.get("verdict") or "").lower()
    if p > alpha or not verdict or verdict.startswith("not resolved"):
        return "unresolved"
    if "depends" in verdict:
        return "depends"
    a, b, ratio = rmst.get(pair["a"]), rmst.get(pair["b"]), pair.get("log_rmst_ratio")
    if not verdict.startswith("better") or a is None or b is None or a == b:
        return "crossing"
    return "resolved" if ratio is None or (a < b) == (ratio < 0) else "crossing"


def winner(pair: PairResult, rmst: Mapping[str, float | None], *, alpha: float) -> str | None:
    """The arm with the smaller macro RMST of a resolved pair; None for every other pair."""
    if standing(pair, rmst, alpha=alpha) != "resolved":
        return None
    return min((pair["a"], pair["b"]), key=lambda arm: rmst[arm] or 0.0)


def verdict_words(pair: PairResult, rmst: Mapping[str, float | None], *, alpha: float) -> str:
    """The verdict of a pair in a few words, for a table cell."""
    match standing(pair, rmst, alpha=alpha):
        case "resolved":
            return f"{winner(pair, rmst, alpha=alpha)} faster"
        case "crossing":
            return "different, crossing"
        case "depends":
            return "depends on object"
        case "unresolved":
            return "not resolved at this N"
        case "untested":
            return "not tested"


def matrix_words(pair: PairResult, row: str, rmst: Mapping[str, float | None], *, alpha: float) -> str:
    """How arm `row` of a pair stands against the other arm, in two words for a cell of the pair matrix."""
    match standing(pair, rmst, alpha=alpha):
        case "resolved":
            return "less time" if winner(pair, rmst, alpha=alpha) == row else "more time"
        case "crossing" | "depends":
            return "no order"
        case "unresolved":
            return "open"
        case "untested":
            return "not tested"


def summary(result: AnalysisResult, *, alpha: float) -> list[Claim]:
    """The claims of the first page: one sentence per winning arm, one per mixed pair, one for all that stayed open."""
    arms = result.get("arms") or []
    rmst = {arm["arm"]: arm.get("rmst") for arm in arms}
    episodes = {arm["arm"]: arm.get("episodes") for arm in arms}
    pairs = result.get("pairs") or []
    kinds = [standing(pair, rmst, alpha=alpha) for pair in pairs]
    claims = [
        _won(arm, [pair for pair in pairs if winner(pair, rmst, alpha=alpha) == arm], rmst, result.get("tau"))
        for arm in sorted(rmst, key=lambda name: (rmst[name] is None, rmst[name] or 0.0))
        if any(winner(pair, rmst, alpha=alpha) == arm for pair in pairs)
    ]
    claims += [_mixed(pair, kind) for pair, kind in zip(pairs, kinds, strict=True) if kind in ("crossing", "depends")]
    still_open = [pair for pair, kind in zip(pairs, kinds, strict=True) if kind == "unresolved"]
    if still_open:
        claims.append(Claim("unresolved", _open(still_open, episodes)))
    untested = [f"{pair['a']} and {pair['b']}" for pair, kind in zip(pairs, kinds, strict=True) if kind == "untested"]
    if untested:
        claims.append(
            Claim(
                "untested", f"Not tested: {'; '.join(untested)}. The table below describes them; the warnings say why."
            )
        )
    if not pairs:
        claims.append(Claim("untested", "No pair of arms was compared. The table below describes, it does not rank."))
    return claims


def _won(arm: str, pairs: Sequence[PairResult], rmst: Mapping[str, float | None], tau: float) -> Claim:
    losers = [pair["b"] if pair["a"] == arm else pair["a"] for pair in pairs]
    times = listing([f"{number(rmst[name])} s" for name in losers])
    worst = max(p for pair in pairs if (p := pair["p_holm"]) is not None)
    adjusted = f"{'' if len(pairs) == 1 else 'largest '}Holm-adjusted {p_equals(worst)}"
    return Claim(
        "resolved",
        f"{arm} was faster per item than {listing(losers)}: mean time per item, capped at {number(tau, 0)} s, "
        f"{number(rmst[arm])} s against {times} ({adjusted}).",
    )


def _mixed(pair: PairResult, kind: Standing) -> Claim:
    why = (
        "which one leads depends on the object, so they are not ranked"
        if kind == "depends"
        else "their curves cross or their measures disagree, so they are not ranked"
    )
    return Claim(kind, f"{pair['a']} and {pair['b']} differ (Holm-adjusted {p_equals(pair['p_holm'])}), but {why}.")


def _open(pairs: Sequence[PairResult], episodes: Mapping[str, int]) -> str:
    def one(pair: PairResult) -> str:
        n = [episodes.get(pair[side]) for side in ("a", "b")]
        size = "" if None in n else f"{n[0]} and {n[1]} episodes, "
        return f"{pair['a']} and {pair['b']} ({size}Holm-adjusted {p_equals(pair['p_holm'])})"

    question = "This is an open question" if len(pairs) == 1 else "These are open questions"
    return f"Not resolved at this N: {'; '.join(map(one, pairs))}. {question}: the data do not rank the arms."


def floor_caution(arm: ArmResult, *, reference: str | None) -> str | None:
    """A sentence when an arm's HRT interval reaches its floor, what a robot that never moves would score; else None."""
    bounds, floor = arm.get("hrt_ci") or arm.get("hrt_ci_percentile"), arm.get("hrt_floor")
    if reference is None or arm["arm"] == reference or floor is None or not bounds or bounds[0] is None:
        return None
    if bounds[0] > floor:
        return None
    return (
        f"The HRT interval of {arm['arm']}, {interval(bounds, scale=100)} %, reaches the floor of {percent(floor)} %: "
        "by this measure it is not told apart from a robot that never moves."
    )


def stops(found: Stops | None, result: AnalysisResult, *, alpha: float) -> str | None:
    """A sentence when stops by hand were not counted against an arm: how many of which cause, and what becomes of each
    verdict when they are; None when each counts. found: as `stop_sections.section` has it.
    """
    again = found.get("repeated") if found else None
    if not found or not again:
        return None
    spared: dict[str, int] = {}
    for arm in found["arms"]:
        for cause, n in arm["not_counted"].items():
            spared[cause] = spared.get(cause, 0) + n
    n, one = sum(spared.values()), sum(spared.values()) == 1
    listed = " or ".join(cause.replace("_", " ") for cause in found["counted"] or ())
    causes = ", ".join(f"{cause.replace('_', ' ')} {k}" for cause, k in sorted(spared.items()))
    rule = (
        f"The protocol counts a stop by hand against an arm where its cause is {listed}; {n} stop{'' if one else 's'} "
        f"of another cause ({causes})"
        if listed
        else f"The protocol counts no stop by hand against an arm; {n} stop{'' if one else 's'} ({causes})"
    )
    return f"{rule} {'counts as an end' if one else 'count as ends'} by the operator. {_repeated(result, again, alpha)}"


def _repeated(result: AnalysisResult, again: Repeated, alpha: float) -> str:
    verdicts = []
    for one in (result, again):
        rmst = {arm["arm"]: arm.get("rmst") for arm in one["arms"]}
        verdicts.append({(pair["a"], pair["b"]): verdict_words(pair, rmst, alpha=alpha) for pair in one["pairs"]})
    before, after = verdicts
    changed = [
        f"the verdict of {a} and {b} changes from “{words}” to “{after[a, b]}”"
        for (a, b), words in before.items()
        if after[a, b] != words
    ]
    return f"With every stop counted {listing(changed) if changed else 'each verdict stands'}."


def provisional(why: Sequence[str]) -> str:
    """Why this report may still change."""
    reasons = "; ".join(why) or "the campaign was not reviewed and frozen"
    return f"Not final: {reasons}. Numbers may change until the campaign is reviewed and frozen."


def blinding(facts: Mapping[str, Any] | None) -> list[str]:
    """What was blind, each limit beside it. A bare table claims nothing; slots that can be deduced are not blind."""
    if not facts:
        return ["A bare table carries no record of blinding, so none is claimed."]
    lines = [str(facts["statement"])] if facts.get("statement") else []
    share = facts.get("deducible_share")
    if share is None:
        lines.append("The share of slots whose arm could be deduced was not recorded; no share is called blind.")
    elif share >= 1:
        lines.append("The arm of every slot could be deduced from the rest of its block: no slot is called blind.")
    elif share > 0:
        lines.append(
            f"The arm of {percent(share)} % of slots could be deduced by elimination, since a person at the controls "
            "is visible and fixes the rest of a small block. Those slots are not called blind."
        )
    if facts.get("shared_uid"):
        lines.append(
            "The operator and the run process shared one user account, so the sealed schedule was kept from the "
            "operator by convention, not by the operating system."
        )
    if facts.get("early_unblinding"):
        lines.append(f"Unblinded early. Reason given: {facts['early_unblinding']}")
    lines.append("A person who teleoperates is never blind to being the human arm.")
    return lines
