"""How far episodes came: the funnel of each arm with intervals, and when each stage was reached.

May not: carry a curve on past the end of an episode: what ended before a stage never reaches it.
"""

from __future__ import annotations

from labctl.analysis.episodes_report.arms_section import Looks
from labctl.analysis.episodes_report.claims import level
from labctl.analysis.episodes_report.drawing import Line, levels, steps
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.result import EpisodesResult
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table


def sections(result: EpisodesResult, looks: Looks) -> list[Section]:
    """The funnel; nothing for a table without stages."""
    shown = words.stages(result)
    arms = [arm for arm in words.arms_in_order(result) if arm["stages"]]
    if shown is None or not arms:
        return []
    count = max(len(arm["stages"]) for arm in arms)
    lines = {
        arm["arm"]: Line(
            looks[arm["arm"]],
            [stage["reached"] / stage["episodes"] for stage in arm["stages"]],
            [stage["ci"] for stage in arm["stages"]],
        )
        for arm in arms
    }
    places = [f"stage {number}" for number in range(1, count + 1)]
    figures = [levels("funnel", "Stages reached", lines, places, f"share of episodes [{level(result)} %]", small=False)]
    until = max((t for arm in arms for stage in arm["stages"] for t in stage["times_s"]), default=0.0)
    for number in range(1, count + 1):
        curves = {}
        for arm in arms:
            stage = arm["stages"][number - 1]
            seen, known = stage["times_s"], stage["episodes"]
            if len(seen) == stage["reached"]:
                shares = [0.0, *((i + 1) / known for i in range(len(seen)))]
                curves[arm["arm"]] = (looks[arm["arm"]], [0.0, *seen], shares)
        if curves and until > 0:
            figures.append(steps(f"stage-{number}", f"Stage {number}", curves, "share of episodes", 1.02 * until))
    table = Table(
        (ARM, *(Column(head.capitalize()) for head in shown.headings[1:])),
        tuple(shown.rows),
        "Reached: of all episodes of the arm, with the exact interval of their share. Half by: when half of all had.",
    )
    note = (
        "A stage counts only after those before it. Times are cumulative incidence: an episode that ended before a "
        "stage competes with reaching it and stays in the denominator, so a curve ends at the share that came so far. "
        "Where somebody noted a stage without its time, no curve is drawn for that arm."
    )
    return [Section("stages", "Stages", tuple(figures), (("", table),), note, wide=True, opened=True)]
