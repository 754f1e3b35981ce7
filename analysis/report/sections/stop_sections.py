"""What a report says of stops by hand: how many of which cause, and its numbers if each had counted against its arm.

May not: estimate, or decide which stops count: it is given both analyses.
"""

from __future__ import annotations

from labctl.analysis.numerals import count, p_value
from labctl.analysis.report.lab_facts import Repeated, Stops
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table, arm_order, measure
from labctl.analysis.report.wording import verdict_words
from labctl.analysis.survival.result import AnalysisResult

CAUSES = ("danger", "contact", "mistaken_key")
REPEATED = "If every stop by hand had counted against its arm"


def section(stops: Stops | None, result: AnalysisResult) -> Section | None:
    """None where nobody stopped an episode. stops: `counted` causes, `arms`, and `repeated`, the analysis with every
    stop counted, where some were not.
    """
    if not stops:
        return None
    tables = [("", _causes(stops, result))]
    again = stops.get("repeated")
    if again:
        tables += [(REPEATED, _times(again, result)), ("", _verdicts(again, result))]
    note = (
        "A person stopped the robot, and said afterwards, having seen how the arm did, what the cause was. A stop that "
        "counts is the arm’s safety stop; one that does not is an end by the operator, whose open operation is "
        "censored there. A stop without a cause counts."
    )
    return Section("stops", "Stops by hand", (), tuple(tables), note)


def _causes(stops: Stops, result: AnalysisResult) -> Table:
    entries = {entry["arm"]: entry for entry in stops["arms"]}
    causes = list(dict.fromkeys([*CAUSES, *(cause for one in entries.values() for cause in one["by_cause"])]))
    rows = tuple(
        (
            arm,
            *(count(one["by_cause"].get(cause, 0)) for cause in causes),
            count(sum(one["not_counted"].values())),
            count(one["void"]),
        )
        for arm in arm_order(result)
        if (one := entries.get(arm)) is not None
    )
    named = [Column(cause.replace("_", " ").capitalize()) for cause in causes]
    note = "Episodes that a person stopped. Not counted: of these, scored ones whose cause the protocol does not list."
    return Table((ARM, *named, Column("Not counted"), Column("Of voided episodes")), rows, note)


def _times(again: Repeated, result: AnalysisResult) -> Table:
    before, after = ({arm["arm"]: arm for arm in found["arms"]} for found in (result, again))
    measures = [("rmst", "RMST s", 1.0), *([("hrt", "HRT %", 100.0)] if result.get("reference") else [])]
    rows = tuple(
        (arm, *(measure(found.get(arm), key, scale) for key, _, scale in measures for found in (before, after)))
        for arm in arm_order(result)
    )
    headings = [
        f"{label}, {how}" for _, label, _ in measures for how in ("as the protocol counts", "every stop counted")
    ]
    return Table((ARM, *map(Column, headings)), rows, "With 95 % intervals.")


def _verdicts(again: Repeated, result: AnalysisResult) -> Table:
    repeated = {(pair["a"], pair["b"]): pair for pair in again["pairs"]}
    rows = []
    for pair in result["pairs"]:
        other = repeated[pair["a"], pair["b"]]
        cells = [(verdict_words(one), p_value(one["p_holm"], one.get("p_holm_error"))) for one in (pair, other)]
        rows.append((f"{pair['a']} – {pair['b']}", *cells[0], *cells[1]))
    columns = (
        *(Column("Pair", "text"), Column("As the protocol counts", "text"), Column("p Holm")),
        *(Column("Every stop counted", "text"), Column("p Holm")),
    )
    return Table(columns, tuple(rows))
