"""What counts as what, on the page: one sentence, and the verdicts, RMST and HRT again under every other way to count.

May not: estimate, or choose a way: it is given the analyses of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.analysis.numerals import MISSING, count, p_value
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table, arm_order, measure
from labctl.analysis.report.wording import tested, verdict_words
from labctl.analysis.survival.result import AnalysisResult, ArmResult, Counting, PairResult, Repeat, Tipping

WHAT: Mapping[str, str] = {
    "help": "an episode that a person helped",
    "voids": "a void after go",
    "early_ends": "an end by the operator, for futility or by an interlock",
    "crash": "an arm’s own crash",
}
AS: Mapping[tuple[str, str], str] = {
    ("help", "as_it_went"): "as it went",
    ("help", "no_success"): "as no success",
    ("voids", "left_out"): "as nothing, and is run again",
    ("voids", "no_success"): "as no success",
    ("early_ends", "by_reason"): "as open: by the operator until then, else to the budget",
    ("early_ends", "carried"): "as open to the budget",
    ("early_ends", "observed"): "as open until then",
    ("crash", "failure"): "as a failed operation",
    ("crash", "ended"): "as open until then",
    ("crash", "void"): "as nothing, and is run again",
    ("crash", "as_recorded"): "as its rows say",
}


def sentence(counting: Counting | None, result: AnalysisResult) -> str | None:
    """What counts as what, how many episodes it is about, and what becomes of the verdicts otherwise; in a table only
    what it has any of. None without a record of it.
    """
    if not counting:
        return None
    about = counting["affected"]
    shown = [key for key in WHAT if about[key] or counting["declared"]]
    text = "; ".join(
        f"{WHAT[key]} counts {AS[key, counting['counts'][key]]} ({_episodes(about[key])})" for key in shown
    )
    if not text:
        return _cut_off(counting) or None
    who = "As the protocol declares" if counting["declared"] else "Declared by no protocol, so by default"
    said = (f"{who}, {text}.", _otherwise(counting, result), *_tipped(counting), _cut_off(counting))
    return " ".join(part for part in said if part)


def _cut_off(counting: Counting) -> str:
    """What nothing is declared of: episodes that the run's own end cut off."""
    cut = counting.get("ended_with_run")
    if not cut:
        return ""
    return f"An episode that ended with its run (Ctrl-C, labctl stop) counts as open until then ({_episodes(cut)})."


def _episodes(by_arm: Mapping[str, int]) -> str:
    return ", ".join(f"{arm} {n}" for arm, n in by_arm.items()) if by_arm else "none met it"


def way(again: Repeat) -> str:
    """The other way to count, in words."""
    return f"{WHAT[again['key']]} counted {AS[again['key'], again['value']]}"


def _otherwise(counting: Counting, result: AnalysisResult) -> str:
    if not counting["repeated"]:
        return ""
    changed: list[str] = []
    for again in counting["repeated"]:
        after = {(pair["a"], pair["b"]): verdict_words(pair) for pair in again["pairs"]}
        for pair in result["pairs"]:
            before, then = verdict_words(pair), after.get((pair["a"], pair["b"]), "nothing left to compare")
            if before != then:
                changed.append(
                    f"with {way(again)}, the verdict of {pair['a']} and {pair['b']} is “{then}”, not “{before}”"
                )
    if changed:
        return f"Otherwise: {'; '.join(changed)}."
    return "Counted any other way each verdict stands." if tested(result) else ""


def _tipped(counting: Counting) -> list[str]:
    lost = [one for one in counting["tipping"] if one["needed"] is not None]
    return [
        f"The order of {one['a']} and {one['b']} is lost once {count(one['needed'])} of {count(one['episodes'])} such "
        f"episodes of {one['leads']} {'counts' if one['needed'] == 1 else 'count'} as no success."
        for one in lost
    ]


def section(counting: Counting | None, result: AnalysisResult) -> Section | None:
    """None where no episode could count another way."""
    if not counting or not (counting["repeated"] or any(counting["affected"].values())):
        return None
    tables = [("", _declared(counting, result))]
    if counting["repeated"]:
        tables += [("Verdicts, counted otherwise", _verdicts(counting, result))]
        tables += [("RMST and HRT, counted otherwise", _times(counting, result))]
    if counting["tipping"]:
        tables.append(("When an order is lost", _tipping(counting["tipping"])))
    note = (
        "What a campaign counts as what is declared in [estimand] of its protocol before the first trial. Each other "
        "way changes one thing alone, with the same resamples and seed. No success: one operation that stayed open for "
        "the whole budget."
    )
    return Section("counting", "What counts as what", (), tuple(tables), note)


def _declared(counting: Counting, result: AnalysisResult) -> Table:
    arms = arm_order(result)
    rows = tuple(
        (
            f"{what[0].upper()}{what[1:]}",
            AS[key, counting["counts"][key]],
            *(count(counting["affected"][key].get(arm, 0)) for arm in arms),
        )
        for key, what in WHAT.items()
    )
    by = "the protocol" if counting["declared"] else "default: no protocol declared it"
    columns = (Column("What", "text"), Column(f"counts ({by})", "text"), *map(Column, arms))
    return Table(columns, rows, "How many episodes of each arm it is about; a void one is no episode of an arm’s N.")


def _verdicts(counting: Counting, result: AnalysisResult) -> Table:
    rows = [("as counted", *_of_pairs(result["pairs"], result))]
    rows += [(way(again), *_of_pairs(again["pairs"], result)) for again in counting["repeated"]]
    names = [f"{pair['a']} – {pair['b']}" for pair in result["pairs"]]
    return Table((Column("How", "text"), *(Column(name, "text") for name in names)), tuple(rows), "With Holm’s p.")


def _of_pairs(pairs: Sequence[PairResult], result: AnalysisResult) -> list[str]:
    found = {(pair["a"], pair["b"]): pair for pair in pairs}
    shown = (found.get((pair["a"], pair["b"])) for pair in result["pairs"])
    return [
        MISSING if one is None else f"{verdict_words(one)} ({p_value(one['p_holm'], one.get('p_holm_error'))})"
        for one in shown
    ]


def _times(counting: Counting, result: AnalysisResult) -> Table:
    def line(how: str, arms: list[ArmResult]) -> list[tuple[str, ...]]:
        found = {arm["arm"]: arm for arm in arms}
        return [(arm, how, *_measures(found.get(arm), result)) for arm in arm_order(result)]

    rows = line("as counted", result["arms"])
    for again in counting["repeated"]:
        rows += [row for row in line(way(again), again["arms"]) if row[0] in again["episodes"]]
    hrt = [Column("HRT %")] if result.get("reference") else []
    columns = (ARM, Column("How", "text"), Column("RMST s"), *hrt, Column("Items moved %"))
    return Table(columns, tuple(rows), "With 95 % intervals; of each other way only the arms it changes.")


def _measures(arm: ArmResult | None, result: AnalysisResult) -> list[str]:
    keys = [("rmst", 1.0), *([("hrt", 100.0)] if result.get("reference") else []), ("moved", 100.0)]
    return [measure(arm, key, scale) for key, scale in keys]


def _tipping(tipping: list[Tipping]) -> Table:
    rows = tuple(
        (
            f"{one['a']} – {one['b']}",
            one["leads"],
            count(one["episodes"]),
            count(one["needed"]) if one["needed"] is not None else "never" if one["episodes"] else "none to lose by",
        )
        for one in tipping
    )
    columns = (
        Column("Pair", "text"), Column("Leads", "text"), Column("Its episodes above"), Column("Order lost at"),
    )  # fmt: skip
    note = (
        "How many of the leader’s episodes that the table above counts, those with most items moved first, must count "
        "as no success until the order is no longer claimed; never: all of them may."
    )
    return Table(columns, rows, note)
