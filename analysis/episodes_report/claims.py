"""The sentences of the first page: which arm does better by the measure, what has no order, what stays open.

May not: say "higher" or "more often" without the verdict "better" of the analysis, whose adjusted interval excludes no
difference. No other module of this folder puts two arms in an order.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis.episodes_table.cautions import FEW_BLOCKS
from labctl.analysis.episodes_table.pairs import difference, leader
from labctl.analysis.episodes_table.result import EpisodesResult, PairOfEpisodes
from labctl.analysis.episodes_table.words import arms_in_order
from labctl.analysis.numerals import confidence, estimate, p_equals
from labctl.analysis.report.wording import Claim
from labctl.analysis.survival.verdicts import OPEN

FEW_LISTED = 3


def effect(pair: PairOfEpisodes, result: EpisodesResult, arm: str | None = None) -> str:
    """The difference of arm (the first) less the other with the interval that a direction rests on."""
    value = difference(pair)
    bounds = pair["adjusted_ci"]
    if arm == pair["b"]:
        value = None if value is None else -value
        bounds = None if bounds is None else [-bounds[1], -bounds[0]]
    if result["measure"] == "success":
        return f"{estimate(value, bounds, scale=100)} percentage points"
    return estimate(value, bounds, digits=3)


def ordered(result: EpisodesResult) -> list[str]:
    """The arms, best first by the measure; those without a rank last."""
    return [arm["arm"] for arm in arms_in_order(result)]


def level(result: EpisodesResult) -> str:
    """The level of intervals, in percent."""
    return confidence(result["alpha"])


def claims(result: EpisodesResult) -> list[Claim]:
    """One sentence for each arm that does better than others, one for each pair that differs without an order, one for
    all that stayed open.
    """
    pairs = result["pairs"]
    if not pairs:
        return [Claim("untested", "No pair of arms was compared. The table below describes, it does not rank.")]
    won = {arm: [pair for pair in pairs if leader(pair) == arm] for arm in ordered(result)}
    found = [_won(arm, own, result) for arm, own in won.items() if own]
    tested = [pair for pair in pairs if pair["p_holm"] is not None]
    found += [_mixed(p, result) for p in tested if leader(p) is None and p["verdict"] not in (None, OPEN)]
    still_open = [pair for pair in tested if leader(pair) is None and pair["verdict"] in (None, OPEN)]
    if still_open:
        found.append(_open(still_open, len(pairs), result))
    untested = [f"{pair['a']} and {pair['b']}" for pair in pairs if pair["p_holm"] is None]
    if untested:
        text = f"Not tested: {'; '.join(untested)}: no block has both, or every difference is 0."
        found.append(Claim("untested", text))
    return found


def _won(arm: str, pairs: Sequence[PairOfEpisodes], result: EpisodesResult) -> Claim:
    others = {pair["b"] if pair["a"] == arm else pair["a"]: pair for pair in pairs}
    scored = "scored higher" if result["measure"] == "score" else "succeeded more often"
    by = "; ".join(f"by {effect(pair, result, arm)} than {other}" for other, pair in others.items())
    worst = max(pairs, key=lambda pair: pair["p_holm"] or 0.0)
    largest = "" if len(pairs) == 1 else "largest "
    return Claim(
        "resolved",
        f"{arm} {scored}: {by} (paired within blocks; {_held(result)}; "
        f"{largest}Holm-adjusted {p_equals(worst['p_holm'], worst['p_holm_error'])}).{_few(pairs, result['alpha'])}",
    )


def _held(result: EpisodesResult) -> str:
    """What the intervals of claims hold: with several pairs which arm is ahead, of all that are told apart."""
    return "intervals at the level of Holm's step" if len(result["pairs"]) > 1 else f"interval {level(result)} %"


def _mixed(pair: PairOfEpisodes, result: EpisodesResult) -> Claim:
    why = "that interval holds 0" if _holds_none(pair) else "success points the other way"
    text = (
        f"{pair['a']} and {pair['b']} differ ({effect(pair, result)}; "
        f"Holm-adjusted {p_equals(pair['p_holm'], pair['p_holm_error'])}), "
        f"but {why}, so they are not ranked."
    )
    return Claim("unranked", text + _few([pair], result["alpha"]))


def _holds_none(pair: PairOfEpisodes) -> bool:
    bounds = pair["adjusted_ci"]
    return bounds is None or bounds[0] <= 0 <= bounds[1]


def _open(pairs: Sequence[PairOfEpisodes], all_pairs: int, result: EpisodesResult) -> Claim:
    shown = pairs if len(pairs) <= FEW_LISTED else ()
    one = [
        f"{p['a']} less {p['b']} ({effect(p, result)}; Holm-adjusted {p_equals(p['p_holm'], p['p_holm_error'])})"
        for p in shown
    ]
    sentence = "; ".join(one) if one else f"{len(pairs)} of {all_pairs} pairs, each with its interval below"
    question = "This is an open question" if len(pairs) == 1 else "These are open questions"
    text = f"Not resolved at this N: {sentence}. {question}: the data do not rank the arms."
    return Claim("unresolved", text + _few(pairs, result["alpha"]))


def _few(pairs: Sequence[PairOfEpisodes], alpha: float) -> str:
    """That a claim rests on few units: sets where blocks belong together, else blocks."""
    fewest = min(pairs, key=lambda pair: pair["units"])
    least, noun = fewest["units"], "sets of blocks" if fewest["units"] < fewest["blocks"] else "blocks"
    if least >= FEW_BLOCKS:
        return ""
    smallest = 2.0 ** (1 - least)  # of exchanges of both labels within each unit
    floor = f", which give no p below {smallest:.2g}" if smallest > alpha else ""
    return f" This rests on as few as {least} {noun} of both{floor}."
