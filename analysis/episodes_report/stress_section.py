"""Stress and difficulty: families by arms, first as a table; each level by itself; where an arm breaks; a radar beside.

May not: call a break real that its p does not, join what was not tried, or show a radar in place of its table.
"""

from __future__ import annotations

from collections.abc import Iterator

from labctl.analysis import numerals
from labctl.analysis.episodes_report.arms_section import Looks
from labctl.analysis.episodes_report.claims import level, ordered
from labctl.analysis.episodes_report.drawing import Line, levels
from labctl.analysis.episodes_report.radar import SPOKES, radar
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.result import EpisodesResult, FamilyMean, StressLevel
from labctl.analysis.report.figures import Figure, slugs
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

RADAR_NOTE = (
    " The radar repeats the table: nothing is in it that is not there. Its spokes stand in the order of the table, and "
    "an area in it means nothing."
)


def section(result: EpisodesResult, looks: Looks) -> Section | None:
    """The section, None without families."""
    if not result["families"]:
        return None
    each, order = level(result), ordered(result)
    tables = [("Families by arms", _families(result, order, each))]
    if result["stress"]:
        tables.append(("Each level by itself", _levels(result, order, each)))
    if result["cliffs"]:
        tables.append(("Where it breaks", _breaks(result)))
    by = {(one["family"], one["arm"]): one for one in result["families"]}
    names = list(dict.fromkeys(one["family"] for one in result["families"]))
    lines = {
        arm: Line(looks[arm], [by[name, arm]["score"] for name in names], [by[name, arm]["ci"] for name in names])
        for arm in order
        if all((name, arm) in by for name in names)
    }
    axis = f"mean {result['measure']} [{each} %]"
    beside = (radar("families", "Families", lines, names, axis),) if len(names) >= SPOKES and lines else ()
    note = "Each level by itself, in order. Lines join estimates; between levels nothing was tried."
    return Section(
        "levels",
        "Stress and difficulty",
        tuple(_responses(result, looks, order, axis)),
        tuple(tables),
        note + (RADAR_NOTE if beside else ""),
        wide=True,
        beside=beside,
    )


def _families(result: EpisodesResult, order: list[str], each: str) -> Table:
    by = {(one["family"], one["arm"]): one for one in result["families"]}
    families = dict.fromkeys(one["family"] for one in result["families"])
    rows = [(family, *(_mean(by.get((family, arm))) for arm in order)) for family in families]
    note = (
        f"Mean {result['measure']} over all episodes of a family, whatever their level [{each} %, over whole sets or "
        "blocks]; single intervals, not adjusted. Families differ in how hard they are: arms are compared along a row."
    )
    return Table((Column("Family", "text"), *(Column(arm) for arm in order)), tuple(rows), note)


def _levels(result: EpisodesResult, order: list[str], each: str) -> Table:
    by = {(row["family"], row["level"], row["arm"]): row for row in result["stress"]}
    places = dict.fromkeys((row["family"], row["level"]) for row in result["stress"])
    rows = tuple((family, place, *(_mean(by.get((family, place, arm))) for arm in order)) for family, place in places)
    columns = (Column("Family", "text"), Column("Level", "text"), *(Column(arm) for arm in order))
    return Table(columns, rows, f"Mean {result['measure']} [{each} %], single intervals.")


def _mean(row: FamilyMean | StressLevel | None) -> str:
    return numerals.MISSING if row is None else numerals.estimate(row["score"], row["ci"], digits=2)


def _responses(result: EpisodesResult, looks: Looks, order: list[str], axis: str) -> Iterator[Figure]:
    """A picture of each family: every arm's mean at every level, in order."""
    by = {(row["family"], row["level"], row["arm"]): row for row in result["stress"]}
    for family, name in slugs(dict.fromkeys(row["family"] for row in result["stress"])).items():
        places = list(dict.fromkeys(row["level"] for row in result["stress"] if row["family"] == family))
        lines = {}
        for arm in order:
            own = [by.get((family, place, arm)) for place in places]
            if any(own):
                values = [None if row is None else row["score"] for row in own]
                lines[arm] = Line(looks[arm], values, [None if row is None else row["ci"] for row in own])
        yield levels(f"stress-{name}", family, lines, places, axis)


def _breaks(result: EpisodesResult) -> Table:
    rows = tuple(
        (*row, numerals.percent(one["same"], 0))
        for row, one in zip(words.breaks(result), result["cliffs"], strict=True)
    )
    head = (
        Column("Family", "text"), ARM, Column("Clearest break", "text"), Column("Mean up to there"),
        Column("Mean from there on"), Column("p of any break"), Column("Same place when drawn anew, %"),
    )  # fmt: skip
    text = (
        "The clearest break of each arm along each family, whether or not it is one: p says how often levels that "
        "do not matter would show one so clear anywhere, and is not adjusted over families and arms."
    )
    return Table(head, rows, text)
