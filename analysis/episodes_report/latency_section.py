"""Latency that a campaign added against what arms make of it (NEBULA): a figure and two tables.

May not: rank arms, or say of a level that it costs nothing because its interval holds 0.
"""

from __future__ import annotations

from labctl.analysis import numerals
from labctl.analysis.episode_facts import LatencyLevel, Lateness
from labctl.analysis.episodes_report.arms_section import Looks
from labctl.analysis.episodes_report.drawing import Line, levels
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

NOTE = (
    "The latency was added by the campaign to everything that a policy sees, the same for every policy; a person’s "
    "view is as it is, so no person is here. Measured: the median over episodes from what was seen to the command that "
    "followed, by the traces. Kept: the score at a level less that of its base in the same set of blocks, which is how "
    "far an arm adapts to lateness; at 0 it keeps all. Lines join estimates; between levels nothing was tried."
)


def section(found: Lateness | None, looks: Looks, level: str) -> Section | None:
    """The section; None for a campaign without levels of added latency. level: of the intervals, in percent."""
    if not found:
        return None
    rows = found["levels"]
    ordered = sorted(rows, key=lambda row: (row["added_s"], row["level"], row["arm"]))
    places = list(dict.fromkeys((row["added_s"], row["level"]) for row in ordered))
    names = [f"+{1000 * added_s:g} ms" if added_s else name for added_s, name in places]
    names = names if len(set(names)) == len(names) else [name for _, name in places]  # several of one latency
    lines = {}
    for arm in dict.fromkeys(row["arm"] for row in rows):
        at = {(row["added_s"], row["level"]): row for row in rows if row["arm"] == arm}
        own = [at.get(place) for place in places]
        values = [None if row is None else row["score"] for row in own]
        lines[arm] = Line(looks[arm], values, [None if row is None else row["ci"] for row in own])
    axis = f"mean {found['measure']} [{level} %]"
    figure = levels("latency", "Latency added", lines, names, axis)
    measured = tuple(_row(row) for row in ordered)
    head = (
        Column("Level", "text"), ARM, Column("Measured, s"), Column("Episodes"),
        Column(f"Mean {found['measure']} [{level} %]"), Column(f"Kept of the base [{level} %]"), Column("Sets"),
    )  # fmt: skip
    tables = [("", Table(head, measured, "Intervals of single arms and levels, not adjusted."))]
    late = [one for one in found["within"] if one["rho"] is not None]
    if late:
        ranks = tuple(
            (
                one["arm"],
                str(one["episodes"]),
                numerals.number(one["rho"], 2),
                numerals.p_value(one["p"], one["p_error"]),
            )
            for one in late
        )
        text = "Spearman’s, over all levels; below 0: later episodes score lower. p by permutation, not adjusted."
        columns = (ARM, Column("Episodes"), Column("Rank correlation"), Column("p"))
        tables.append(("Measured latency of an episode against its score", Table(columns, ranks, text)))
    return Section("latency", "Latency against adaptation", (figure,), tuple(tables), NOTE, wide=True)


def _row(row: LatencyLevel) -> tuple[str, ...]:
    return (
        f"{row['level']} (+{1000 * row['added_s']:g} ms)" if row["added_s"] else row["level"],
        row["arm"],
        numerals.number(row["measured_s"], 2),
        str(row["episodes"]),
        numerals.estimate(row["score"], row["ci"], digits=2),
        numerals.estimate(row["kept"], row["kept_ci"], digits=2),
        str(row["sets"] or numerals.MISSING),
    )
