"""Every sentence of a report that claims something: which arm won, what stayed open, what was blind.

May not: say "better" or "faster" without the verdict "better" of the analysis and its interval, which excludes 1. No
other module or template says it at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from labctl.analysis.numerals import MISSING, confidence, interval, listing, number, p_equals, percent, ratio
from labctl.analysis.report import cell_words
from labctl.analysis.report.lab_facts import Blinding, Disputed, Repeated, Stops
from labctl.analysis.survival import verdicts
from labctl.analysis.survival.result import AnalysisResult, ArmResult, PairResult

Standing = Literal["resolved", "crossing", "depends", "unranked", "unresolved", "untested"]
T = TypeVar("T", int, float)
FEW = 5

SIMULATED = "Every episode on this page ran in simulation. Nothing here is a measurement of a real robot."
MADE_OF_EPISODES = (
    "Here it is Wang and Chang’s, in which every episode counts once however many of its operations ended; HRT and "
    "ratios of time per item are made of it, success curves pool all operations."
)
FAULTS = "Faults were put into these episodes on purpose. Nothing here measures a robot, a policy or a person."
NOT_REAL = "No episode on this page is a measurement of a real robot doing its task."


@dataclass(frozen=True)
class Claim:
    """One sentence for the first page, and how firmly it stands."""

    standing: Standing
    text: str


def standing(pair: PairResult) -> Standing:
    """How firmly a pair stands, by the verdict of the analysis; a direction only where its interval excludes 1."""
    verdict, bounds = pair.get("verdict"), pair.get("log_rmst_ratio_adjusted_ci")
    if pair.get("p_holm") is None:
        return "untested"
    match verdict:
        case None | "":
            return "untested"
        case verdicts.DEPENDS:
            return "depends"
        case verdicts.CROSSING:
            return "crossing"
        case verdicts.UNRANKED:
            return "unranked"
        case verdicts.BETTER if pair.get("leads") and bounds and bounds[0] * bounds[1] > 0:
            return "resolved"
        case verdicts.BETTER:
            return "unranked"
    return "unresolved"


def winner(pair: PairResult) -> str | None:
    """The arm that took less time per item; None unless the pair is resolved."""
    return pair["leads"] if standing(pair) == "resolved" else None


def verdict_words(pair: PairResult) -> str:
    """The verdict of a pair in a few words, for a table cell."""
    match standing(pair):
        case "resolved":
            return f"{winner(pair)} faster"
        case "untested":
            return "not tested"
        case "unranked":
            return verdicts.UNRANKED
    return pair["verdict"] or ""


def matrix_words(pair: PairResult, row: str) -> str:
    """How arm `row` of a pair stands against the other arm, in two words for a cell of the pair matrix."""
    match standing(pair):
        case "resolved":
            return "less time" if winner(pair) == row else "more time"
        case "crossing" | "depends" | "unranked":
            return "no order"
        case "unresolved":
            return "open"
        case "untested":
            return "not tested"


def margin_words(pair: PairResult) -> str:
    """Whether a pair is shown to be within the registered margin, for a table cell; a dash where it is not asked."""
    found = pair.get("margin")
    return MISSING if found is None else "shown" if found["shown"] else "not shown"


def time_ratio(pair: PairResult, *, adjusted: bool, of: str | None = None) -> str:
    """Time per item of arm `of` (the first) over the other's, `0.85 [0.76, 0.96]`: 95 % for this pair alone, or the
    interval adjusted over the pairs of its family, which a direction rests on.
    """
    ends = pair.get("log_rmst_ratio_adjusted_ci" if adjusted else "log_rmst_ratio_ci")
    return ratio(pair.get("log_rmst_ratio"), ends, turned=of == pair["b"])


def at_once(pairs: Sequence[PairResult], result: AnalysisResult) -> str:
    """What adjusted intervals and p of these pairs hold for: "95 % for all 3 pairs with human at once". The pairs with
    the reference are a family of their own, so that nothing holds for both families together.
    """
    reference, level = result.get("reference"), f"{confidence(result['alpha'])} %"
    tested = [{pair["a"], pair["b"]} for pair in result.get("pairs") or [] if pair.get("p_holm") is not None]
    sentences: list[str] = []
    families = sorted({reference in (pair["a"], pair["b"]) for pair in pairs}, reverse=True)
    for with_reference in families:
        n = sum((reference in both) == with_reference for both in tested)
        which = f" {'with' if with_reference else 'without'} {reference}" if reference else ""
        several, one = f"{'both' if n == 2 else f'all {n}'} pairs", "this pair" if len(families) == 1 else "the pair"
        sentences.append(f"for {several}{which} at once" if n > 1 else f"for {one}{which if len(families) > 1 else ''}")
    return f"{level} {' and, apart, '.join(dict.fromkeys(sentences))}"


def summary(result: AnalysisResult) -> list[Claim]:
    """The claims of the first page: one sentence per winning arm, one per mixed pair, one for all that stayed open."""
    arms, pairs = result.get("arms") or [], result.get("pairs") or []
    by_time = [arm["arm"] for arm in sorted(arms, key=lambda arm: (arm.get("rmst") is None, arm.get("rmst") or 0.0))]
    kinds = [standing(pair) for pair in pairs]
    won = {arm: [pair for pair in pairs if winner(pair) == arm] for arm in by_time}
    claims = [_won(arm, found, result) for arm, found in won.items() if found]
    mixed = zip(pairs, kinds, strict=True)
    claims += [_mixed(pair, kind, result) for pair, kind in mixed if kind in ("crossing", "depends", "unranked")]
    still_open = [pair for pair, kind in zip(pairs, kinds, strict=True) if kind == "unresolved"]
    if still_open:
        claims.append(Claim("unresolved", _open(still_open, result)))
    untested = [f"{pair['a']} and {pair['b']}" for pair, kind in zip(pairs, kinds, strict=True) if kind == "untested"]
    if untested:
        claims.append(
            Claim(
                "untested", f"Not tested: {'; '.join(untested)}. The table below describes them; the warnings say why."
            )
        )
    if len(arms) == 1:
        text = f"One arm, {arms[0]['arm']}: its own numbers, and nothing to compare them with."
        claims.append(Claim("untested", text))
    elif not pairs:
        claims.append(Claim("untested", "No pair of arms was compared. The table below describes, it does not rank."))
    return claims


def _won(arm: str, pairs: Sequence[PairResult], result: AnalysisResult) -> Claim:
    def one(pair: PairResult) -> str:
        mine, theirs, other = pair["rmst_a"], pair["rmst_b"], pair["b"]
        if other == arm:
            mine, theirs, other = theirs, mine, pair["a"]
        times = f"{number(mine)} s against {number(theirs)} s"
        return f"{time_ratio(pair, adjusted=True, of=arm)} times as long as {other}, {times}{_where(pair, result)}"

    losers = [pair["b"] if pair["a"] == arm else pair["a"] for pair in pairs]
    worst = max(pairs, key=lambda pair: pair["p_holm"] or 0.0)
    held = f"intervals {at_once(pairs, result)}"
    adjusted = f"{'' if len(pairs) == 1 else 'largest '}Holm-adjusted {_p(worst)}"
    return Claim(
        "resolved",
        f"{_of_cells(result)}{arm} was faster per item than {listing(losers)}: it took {'; '.join(map(one, pairs))} "
        f"(mean time per item, capped at {number(result['tau'], 0)} s; {held}; {adjusted}).{_helped(arm, result)}"
        f"{few(pairs, result)}",
    )


def _of_cells(result: AnalysisResult) -> str:
    """Which cells a claim of several is of."""
    return f"In {these}, " if (these := cell_words.in_these(result)) else ""


def _p(pair: PairResult) -> str:
    return p_equals(pair["p_holm"], pair.get("p_holm_error"))


def _helped(name: str, result: AnalysisResult) -> str:
    """A caution beside a claim for an arm that people touched."""
    arm = next(arm for arm in result["arms"] if arm["arm"] == name)
    n = arm.get("helped")
    return f" A person helped {name} in {n} of its {arm['episodes']} episodes." if n else ""


def _where(pair: PairResult, result: AnalysisResult) -> str:
    """The objects a pair was tested on, where they are not all."""
    every = {cell["object"] for cell in result.get("cells") or []}
    shared = pair.get("objects") or []
    return f" (on {listing(shared)}, which both met)" if shared and set(shared) != every else ""


def few(pairs: Sequence[PairResult], result: AnalysisResult) -> str:
    """A caution beside a claim that rests on fewer than five episodes of an arm at an object; "" where none is due."""
    resting = {(pair[side], obj) for pair in pairs for side in ("a", "b") for obj in pair.get("objects") or []}
    known = ((c["episodes"], (c["arm"], c["object"])) for c in result.get("cells") or [])
    counts = [n for n, cell in known if n is not None and cell in resting]
    if not counts or min(counts) >= FEW:
        return ""
    return f" This rests on as few as {min(counts)} episode{'s' * (min(counts) > 1)} of an arm at an object."


def _mixed(pair: PairResult, kind: Standing, result: AnalysisResult) -> Claim:
    effect = f"time per item {time_ratio(pair, adjusted=True)} of {pair['a']} over {pair['b']}"
    known = bool(pair.get("log_rmst_ratio_adjusted_ci"))
    effect = f"{effect}{_where(pair, result)}{f', {at_once([pair], result)}' if known else ''}"
    by = " or the cell" if result.get("by_cell") else ""
    why = {
        "depends": f"which one leads depends on the object{by}, so they are not ranked",
        "crossing": "their curves cross or their measures disagree, so they are not ranked",
    }.get(
        kind,
        "by time per item neither leads: the interval holds 1, so they are not ranked"
        if known
        else "their time per item did not vary in these episodes and has no interval, so they are not ranked",
    )
    text = f"{_of_cells(result)}{pair['a']} and {pair['b']} differ ({effect}; Holm-adjusted {_p(pair)}), but {why}."
    return Claim(kind, text + few([pair], result))


def _open(pairs: Sequence[PairResult], result: AnalysisResult) -> str:
    episodes = {(c["arm"], c["object"]): c["episodes"] for c in result.get("cells") or []}

    def one(pair: PairResult) -> str:
        n = [total([episodes.get((pair[side], o)) for o in pair.get("objects") or []]) for side in ("a", "b")]
        size = "" if None in n else f", {n[0]} and {n[1]} episodes"
        effect = f"time per item {time_ratio(pair, adjusted=True)}{_where(pair, result)}"
        return f"{pair['a']} over {pair['b']} ({effect}, Holm-adjusted {_p(pair)}{size})"

    where = f" in {these}" if (these := cell_words.in_these(result)) else ""
    question = "This is an open question" if len(pairs) == 1 else "These are open questions"
    intervals = any(pair.get("log_rmst_ratio_adjusted_ci") for pair in pairs)
    held = f"; intervals {at_once(pairs, result)}" if intervals else ""
    return (
        f"Not resolved at this N{where}: {'; '.join(map(one, pairs))}{held}. {question}: the data do not rank the arms."
        f"{few(pairs, result)}"
    )


def total(values: Sequence[T | None]) -> T | None:
    """The sum, None where any is missing or there are none."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(values) else None


def floor_caution(arm: ArmResult, *, reference: str | None) -> str | None:
    """A sentence when an arm's HRT interval reaches its floor, what a robot that never moves would score; else None.

    Whether it moved anything is said by items moved: an arm that did is never called like one that never moves.
    """
    bounds, floor = arm.get("hrt_ci") or arm.get("hrt_ci_percentile"), arm.get("hrt_floor")
    if reference is None or arm["arm"] == reference or floor is None or not bounds or bounds[0] is None:
        return None
    if bounds[0] > floor:
        return None
    moved, reached = arm.get("moved"), f"The HRT interval of {arm['arm']}, {interval(bounds, scale=100)} %, reaches its"
    if moved == 0:
        return f"{reached} floor of {percent(floor)} %: it moved no item, as a robot that never moves."
    share = "" if moved is None else f", and it moved {percent(moved)} % of the items staged"
    return f"{reached} floor of {percent(floor)} %: its time per item is not bounded from above{share}."


def stops(found: Stops | None, result: AnalysisResult) -> str | None:
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
    return f"{rule} {'counts as an end' if one else 'count as ends'} by the operator.{_repeated(result, again)}"


def _repeated(result: AnalysisResult, again: Repeated) -> str:
    before, after = (
        {(pair["a"], pair["b"]): verdict_words(pair) for pair in found} for found in (result["pairs"], again["pairs"])
    )
    changed = [
        f"the verdict of {a} and {b} changes from “{words}” to “{after[a, b]}”"
        for (a, b), words in before.items()
        if after[a, b] != words
    ]
    if changed:
        return f" With every stop counted {listing(changed)}."
    return " With every stop counted each verdict stands." if tested(result) else ""


def tested(result: AnalysisResult) -> bool:
    """Whether any pair was: otherwise there is no verdict that could stand."""
    return any(pair.get("p_holm") is not None for pair in result.get("pairs") or ())


def disputed(found: Disputed | None) -> str | None:
    """Of how many episodes witnesses and assessor disagree, of how many the detector could not tell, and nobody has
    reviewed them; None where of none.
    """
    if not found:
        return None
    lines, n = [], found["untimed"]
    if found["episodes"]:
        text = (
            f"{_of_episodes(found['by_arm'], found['scored'])} the witnesses disagree with the assessor’s counts of "
            f"items moved or lost and nobody has reviewed {_them(found['episodes'])}: both are the assessor’s"
        )
        late = f", and when {n} of the items {'was' if n == 1 else 'were'} moved is not known"
        lines.append(f"{text}{late if n else ''}.")
    untold = found.get("untold") or {}
    if several := sum(untold.values()):
        lines.append(
            f"{_of_episodes(untold, found['scored'])} the detector could not tell what came of a grasp or release and "
            f"nobody has reviewed {_them(several)}: the counts are the assessor’s."
        )
    return " ".join(lines) or None


def _of_episodes(by_arm: Mapping[str, int], scored: int) -> str:
    named = ", ".join(f"{arm} {n}" for arm, n in by_arm.items() if n)
    return f"In {sum(by_arm.values())} of {scored} episodes ({named})"


def _them(n: int) -> str:
    return "it" if n == 1 else "them"


def provisional(why: Sequence[str]) -> str:
    """Why this report may still change."""
    reasons = "; ".join(why) or "the campaign was not reviewed and frozen"
    return f"Not final: {reasons}. Numbers may change until the campaign is reviewed and frozen."


def blinding(facts: Blinding | None) -> list[str]:
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
