"""From rows of operations to a report folder: what an analysis is asked for, the analysis, its page.

May not: open a campaign or judge what may be shown of it; `campaign_report` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.analysis.report.lab_facts import Lab
from labctl.config.protocol_schema import AnalysisPlan
from labctl.messages.body_parts import SlotWithArm
from labctl.reporting.other_ways import Plan, Ways, counting, reviewed_alone, ways_of_table
from labctl.reporting.relabellings import relabellings
from labctl.software import analysed_by

if TYPE_CHECKING:
    from labctl.analysis.survival.result import Margin
    from labctl.analysis.table import Row

BOOT = PERM = 9999


def report_table(
    table: Path,
    out: Path,
    *,
    tau: float | None,
    reference: str | None,
    alpha: float,
    family: Sequence[str],
    boot: int,
    perm: int,
    seed: int,
    margin: Margin | None,
    random_factors: Sequence[str],
    estimator: str,
) -> Path:
    """Write the report of a bare operations table (CSV); it claims nothing of blinding. Raises TableError."""
    from labctl.analysis import reading

    _, lines = reading.read_csv(table)
    reading.read_table(table)
    rows = [row for _, row in lines]
    plan: Plan = {
        "tau": tau,
        "reference": reference,
        "alpha": alpha,
        "family": tuple(family),
        "design": {},
        "margin": margin,
        "estimator": estimator,
        "boot": boot,
        "perm": perm,
        "seed": seed,
    }
    return write_report(rows, out, None, table.stem, plan, ways_of_table(rows), random_factors)


def plan_of(
    analysis: AnalysisPlan,
    alpha: float,
    rows: Sequence[Row],
    schedule: Sequence[SlotWithArm],
    sizes: tuple[int, int, int],
) -> Plan:
    """What a protocol asks for; alpha: the level by `judged_at`, rows: of the operations table, schedule: as opened,
    sizes: bootstrap samples, label swaps and the seed.

    Of an arm that was never scored, nothing: it is no reference, and no other is held against it.
    """
    scored = {row["arm"] for row in rows}
    reference = analysis.reference if analysis.reference in scored else None
    margin: Margin | None = None
    if (margin_of := analysis.margin) is not None and (
        margin_of.non_inferior_to is None or margin_of.non_inferior_to in scored
    ):
        margin = {"rmst_ratio": margin_of.rmst_ratio, "non_inferior_to": margin_of.non_inferior_to}
    boot, perm, seed = sizes
    return {
        "tau": analysis.tau_s,
        "reference": reference,
        "alpha": alpha,
        "family": analysis.family,
        "design": relabellings(schedule),
        "margin": margin,
        "estimator": analysis.estimator,
        "boot": boot,
        "perm": perm,
        "seed": seed,
    }


def write_report(
    rows: Sequence[Row],
    out: Path,
    lab: Lab | None,
    title: str,
    plan: Plan,
    ways: Ways,
    random_factors: Sequence[str],
    files: Callable[[], Mapping[str, bytes]] = dict,
    say: Callable[[str], None] = lambda line: None,
    every: Sequence[Row] | None = None,
    beside: Executor | None = None,
) -> Path:
    """Analyse rows and write their page. files, beside: as `build_report` has them. every: the rows with each stop by
    hand counted, where some are not: the verdict is repeated on them.
    """
    from labctl.analysis.episodes.random_factors import anew
    from labctl.analysis.episodes.supplement import supplement
    from labctl.analysis.operations_table.analyze import analyze
    from labctl.analysis.report.page import build_report
    from labctl.analysis.table import table_from_rows

    twice = "" if every is None else ", and again with every stop by hand counted"
    say(f"3/4 working out the statistics ({plan['boot']} bootstrap samples, {plan['perm']} label swaps){twice}")
    table = table_from_rows(rows, source=title)
    result = analyze(table, **plan)
    if random_factors:
        result["anew"] = anew(table, result, tuple(random_factors))
    if every is not None and lab and (stops := lab.get("stops")):
        again = analyze(table_from_rows(every, source=title), **plan)
        stops["repeated"] = {"arms": again["arms"], "pairs": again["pairs"]}
    if lab and (alone := reviewed_alone(ways, rows, plan)):
        lab["reviewed"] = alone
    other_ways = counting(ways, result, plan)
    more = supplement(table, result, perm=plan["perm"], design=plan["design"])
    say("4/4 writing figures and pages")
    given = {"supplement": more, "counting": other_ways, "beside": beside, "made_by": analysed_by()}
    report = build_report(result, rows, out, files=files, title=title, lab=lab, perm=plan["perm"], **given)
    return report.html
