"""Sections of the report that only a campaign can fill: touches of people, and what its traces' timing says.

May not: read a campaign (it is given one plain dict, any key of which may be missing), rank, or claim.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from labctl.analysis.binary.rates import wilson
from labctl.analysis.numerals import MISSING, count, estimate, number, percent
from labctl.analysis.report import adaptability_section, linked_section, resources
from labctl.analysis.report.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

Lab = Mapping[str, Any]


def sections(lab: Lab, result: Mapping[str, Any]) -> list[Section]:
    """Every section that the lab has something for, in the report's order."""
    made = (linked_section.section(lab.get("linked")), _interventions(lab, result), _stress(lab))
    return [section for section in made if section is not None]


def files(lab: Lab) -> dict[str, bytes]:
    """Tables as CSV files by name: those of a linked campaign, and stress measures of every episode."""
    stress = lab.get("stress") or {}
    made = {**linked_section.files(lab.get("linked")), **adaptability_section.files(stress.get("adaptability"))}
    rows = stress.get("episodes") or []
    if not rows:
        return made
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(["" if value is None else value for value in row.values()] for row in rows)
    return {**made, "figures/stress.csv": text.getvalue().encode()}


def _stress(lab: Lab) -> Section | None:
    found = lab.get("stress") or {}
    entries = found.get("arms") or []
    if not entries:
        return None
    rows = tuple(
        (
            entry["arm"],
            count(entry["episodes"]),
            _measured(entry["inference_hz"], digits=2),
            _measured(entry["latency_s"], digits=0, scale=1000),
            number(entry["latency_worst_p95_s"] and 1000 * entry["latency_worst_p95_s"], 0),
            _measured(entry["stability"], digits=3),
        )
        for entry in entries
    )
    columns = (
        *(ARM, Column("Episodes"), Column("Questions per s [95 %]"), Column("Latency ms [95 %]")),
        *(Column("Worst episode’s 95th percentile ms"), Column("Stability [95 %]")),
    )
    told = {
        adaptability_section.HEADING: adaptability_section.table(found.get("adaptability")),
        resources.HEADING: resources.table(lab.get("answer_times") or ()),
    }
    switched = (
        "" if told[adaptability_section.HEADING] else " Adaptability is not measured: this protocol switches nothing."
    )
    note = (
        "Latency: from the capture of the state to the first action of its answer, answers that were not used left "
        "out. Stability: exp(−mean |a(t) − a(t−1)|), the Euclidean norm over joints in rad, on the targets sent to the "
        f"arm between go and end, read at {number(found.get('rate_hz'), 0)} Hz for every arm; 1 is standing still, so "
        "an arm that does nothing is the most stable. Means over episodes, t intervals with one episode a unit."
        f"{switched} Each episode’s values: figures/stress.csv."
    )
    out = len(found.get("taken_over") or [])
    if out:
        note += f" Left out: {out} episode{'s' if out > 1 else ''} in which a person took over the arm."
    more = [(heading, table) for heading, table in told.items() if table]
    return Section("stress", "Stress measures", (), (("", Table(columns, rows, note)), *more))


def _measured(found: Mapping[str, Any], *, digits: int = 1, scale: float = 1.0) -> str:
    return estimate(found["value"], found["ci"], digits=digits, scale=scale)


def _interventions(lab: Lab, result: Mapping[str, Any]) -> Section | None:
    entries = lab.get("interventions") or []
    if not entries:
        return None
    kinds = list(dict.fromkeys(kind for entry in entries for kind in entry["by_kind"]))
    rates = {arm["arm"]: arm.get("intervention_rate") for arm in result.get("arms") or []}
    rows = []
    for entry in entries:
        n, touched = entry["episodes"], entry["touched"]
        share = estimate(touched / n, wilson(touched, n), scale=100) if n else MISSING
        rows.append(
            (
                entry["arm"],
                f"{count(touched)} / {count(n)}",
                share,
                percent(rates.get(entry["arm"])),
                count(entry["interventions"]),
                *(count(entry["by_kind"].get(kind, 0)) for kind in kinds),
                number(entry["per_hour"]),
                f"{number(entry['touched_s'])} / {number(entry['robot_s'])}",
                count(entry["moved"]),
                count(entry["unaided"]),
            )
        )
    columns = (
        *(ARM, Column("Touched / scored episodes"), Column("% [95 %]"), Column("Or stopped %")),
        Column("Interventions"),
        *(Column(kind.replace("_", " ").capitalize()) for kind in kinds),
        *(Column("Per robot-hour"), Column("Seconds touched / run"), Column("Items moved"), Column("Unaided")),
    )
    note = (
        "An intervention is a person's touch between go and the end, as recorded while it went on. The denominator is "
        "every scored episode that got to go; void ones are in neither number. Touched episodes stay in every other "
        "number as they were scored; unaided leaves out each item during whose time a person touched the episode. "
        "Intervals are Wilson's, one episode a unit. Or stopped: the intervention rate of the JSON, which counts "
        "episodes that a stop for safety ended too, of all scored ones."
    )
    return Section("interventions", "Interventions", (), (("", Table(columns, tuple(rows), note)),))
