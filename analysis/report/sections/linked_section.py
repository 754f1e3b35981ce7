"""The report's section on a linked campaign: arms of two campaigns through their anchors, and the anchors' drift.

May not: estimate (see `linked`), or show a ratio without its anchors.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis.episode_facts import AnchorDrift, LinkedPair, LinkedPairs
from labctl.analysis.numerals import factor_digits, interval, listing, number
from labctl.analysis.report.figures import records_csv
from labctl.analysis.report.pair_tables import computed
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import Column, Table


def section(found: LinkedPairs | None) -> Section | None:
    """The section, or None for a report of one campaign. found: of `linked_pairs`, with what the lab adds to it."""
    if not found:
        return None
    tables = (("", _pairs(found)), ("The anchors, second campaign over first", _drift(found)))
    return Section("linked", "Against an earlier campaign", (), tables, _note(found))


def files(found: LinkedPairs | None) -> dict[str, bytes]:
    """Both tables with all their digits, as CSV files by name."""
    if not found:
        return {}
    one, two = found["campaigns"]
    pairs = [
        {
            "a": pair["a"],
            "campaign_a": one,
            "b": pair["b"],
            "campaign_b": two,
            "anchors": "+".join(pair["anchors"]),
            "objects": "+".join(pair["objects"]),
            "ratio": pair["ratio"],
            **_ends(pair["interval"]),
            "p": pair["p"],
            "df": pair["df"],
            "anchors_apart": pair["apart"],
            "p_holm": pair["p_holm"],
            "naive_ratio": pair["naive"],
            "verdict": pair["verdict"],
        }
        for pair in found["pairs"]
    ]
    drift = [
        {
            "anchor": moved["anchor"],
            "objects": "+".join(objects),
            "ratio": moved["ratio"],
            **_ends(moved["interval"]),
            "p": moved["p"],
        }
        for objects, moved in _drifts(found)
    ]
    return {"figures/linked.csv": records_csv(pairs), "figures/linked_anchors.csv": records_csv(drift)}


def _pairs(found: LinkedPairs) -> Table:
    one, two = found["campaigns"]
    columns = (
        *(Column(f"a, in {one}", "text"), Column(f"b, in {two}", "text"), Column("Verdict", "text")),
        *(Column("RMST a / b [95 %]"), Column("p"), Column("p Holm"), Column("Without anchors")),
        *(Column("Anchors", "text"), Column("Objects", "text")),
    )
    rows = tuple(
        (
            *(pair["a"], pair["b"], pair["verdict"], _ratio(pair)),
            *(computed(pair["p"]), computed(pair["p_holm"]), number(pair["naive"], 2)),
            *(", ".join(pair["anchors"]), ", ".join(pair["objects"])),
        )
        for pair in found["pairs"]
    )
    note = (
        f"RMST up to tau = {number(found['tau'], 0)} s, each arm’s over the anchors’ of its own campaign (the mean "
        "of logarithms over anchors, then over objects with equal weights); below 1: a took less time per item. "
        "Intervals and p by t on the log ratio, with clustered jackknife errors of arms and anchors and degrees of "
        "freedom after Satterthwaite; with two anchors or more, by how much these changed each for itself is part of "
        f"the error. Holm over these pairs, held to {found['alpha']:g}: labels cannot be swapped between "
        "campaigns. Without anchors: the naive ratio, which takes the difference between two campaigns for one of "
        "arms; it is here to be seen and claims nothing. All digits: figures/linked.csv."
    )
    return Table(columns, rows, note)


def _drift(found: LinkedPairs) -> Table:
    columns = (
        *(Column("Anchor", "text"), Column("RMST second / first [95 %]"), Column("p")),
        *(Column("Objects", "text"), Column("The same treatment", "text")),
    )
    changed = set(found.get("changed") or ())
    rows = tuple(
        (
            *(moved["anchor"], _ratio(moved), computed(moved["p"]), ", ".join(objects)),
            "on its opener’s word" if moved["anchor"] in changed else "by its digest",
        )
        for objects, moved in _drifts(found)
    )
    note = (
        "Above 1: the anchor took longer in the second campaign. Anchors that moved alike: what the comparison takes "
        "out; anchors that moved apart: something changed for one arm and not for the other, which it cannot take out "
        f"and counts as error{_apart(found)}. By its digest: kind, controller, options and policy card are those of "
        "the first campaign. For a person that says nothing of who drove. All digits: figures/linked_anchors.csv."
    )
    return Table(columns, rows, note)


def _note(found: LinkedPairs) -> str:
    one, two = found["campaigns"]
    text = (
        f"{two} was opened linked to {one} at head {str(found.get('head') or 'unknown')[:16]}, before its first trial, "
        f"with {listing(found['anchors'])} run in both. Episodes of the two are never pooled."
    )
    return " ".join([text, *(f"{line[0].upper()}{line[1:]}." for line in found["warnings"])])


def _apart(found: LinkedPairs) -> str:
    """By how much, for the pair that rests on the most; "" where one anchor cannot tell."""
    known = [apart for pair in found["pairs"] if (apart := pair.get("apart")) is not None]
    return f" (beyond chance, a standard deviation of {number(max(known), 2)} of log RMST)" if known else ""


def _drifts(found: LinkedPairs) -> list[tuple[Sequence[str], AnchorDrift]]:
    """(objects, drift) of every anchor, once for each set of objects that pairs rest on."""
    seen = {
        (*pair["objects"], None, d["anchor"]): (pair["objects"], d) for pair in found["pairs"] for d in pair["drift"]
    }
    return list(seen.values())


def _ratio(one: LinkedPair | AnchorDrift) -> str:
    digits = factor_digits(one["interval"] or ())
    return f"{number(one['ratio'], digits)} {interval(one['interval'], digits=digits)}"


def _ends(bounds: Sequence[float] | None) -> dict[str, float | None]:
    low, high = bounds or (None, None)
    return {"low": low, "high": high}
