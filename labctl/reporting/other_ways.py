"""The analysis repeated on other rows: what counts as what counted otherwise, and the reviewed episodes alone.

May not: change the analysis that a report stands on, or write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from labctl.analysis.report.lab_facts import Reviewed
from labctl.core.record import Record

if TYPE_CHECKING:
    from labctl.analysis.survival.resample import Design
    from labctl.analysis.survival.result import AnalysisResult, Counting, Margin
    from labctl.analysis.table import Row


class Plan(TypedDict):
    """What an analysis is asked for, as `analyze` takes it: of a campaign its protocol and its schedule say it, of a
    table its options.
    """

    tau: float | None
    reference: str | None
    alpha: float
    family: tuple[str, ...]
    design: Design | None
    margin: Margin | None
    estimator: str
    boot: int
    perm: int
    seed: int


@dataclass(frozen=True)
class Ways:
    """What the other ways are made from: rows as recorded, void ones too, what counts as what, and which episodes an
    assessor reviewed.
    """

    rows: Sequence[Row]
    estimand: Mapping[str, str]
    declared: bool = False
    reviewed: frozenset[str] = frozenset()


def ways_of(records: Sequence[Record], rows: Sequence[Row]) -> Ways:
    """Those of a campaign, whose rows were `recorded`; reviewed only where some episodes were and some were not.
    records: its own, or those of a joint campaign's parts, which have one protocol.
    """
    scored = [episode for record in records for _, episode in record.scored]
    reviewed = frozenset(episode.id for episode in scored if episode.reviewed is not None)
    some = len(reviewed) < len(scored)
    declared = all("estimand" in record.state.opened for record in records)
    return Ways(rows, records[0].estimand, declared, reviewed if some else frozenset())


def ways_of_table(rows: Sequence[Row]) -> Ways:
    """Those of a bare table: its analysis leaves out what the table calls void, an arm's own crash among it, and takes
    every other row for what it says.
    """
    from labctl.analysis.episodes.estimand import AS_RECORDED
    from labctl.config.protocol_schema import Estimand

    return Ways(rows, {**Estimand().model_dump(), "crash": AS_RECORDED})


def counting(ways: Ways, result: AnalysisResult, plan: Plan) -> Counting:
    """`repeated` of `result`. Raises TableError."""
    from labctl.analysis.episodes.estimand import Estimand
    from labctl.analysis.episodes.repeated import repeated
    from labctl.analysis.operations_table.analyze import analyze
    from labctl.analysis.table import table_from_rows

    def analyse(other: Sequence[Row], most: int | None) -> AnalysisResult | None:
        cut: Plan = plan if most is None else {**plan, "boot": min(plan["boot"], most), "perm": min(plan["perm"], most)}
        again = table_from_rows(other, source="counted otherwise")
        return analyze(again, **cut) if again.cells() else None

    return repeated(ways.rows, Estimand(**ways.estimand), result, analyse, declared=ways.declared)


def reviewed_alone(ways: Ways, rows: Sequence[Row], plan: Plan) -> Reviewed | None:
    """The arms by the reviewed episodes alone; HRT only where the reference is among them. None where all or none was
    reviewed. rows: that the report stands on.
    """
    from labctl.analysis.operations_table.analyze import analyze
    from labctl.analysis.table import table_from_rows

    alone = [row for row in rows if row["episode"] in ways.reviewed]
    if not alone:
        return None
    there = any(row["arm"] == plan["reference"] for row in alone)
    table = table_from_rows(alone, source="reviewed episodes")
    again: Plan = {**plan, "reference": plan["reference"] if there else None, "margin": None}
    found = analyze(table, **again)
    return {"episodes": sorted(ways.reviewed), "arms": found["arms"]}
