"""The report of any measure: of an episodes table, or of a campaign whose tasks are not all one counted in items.

May not: verify a record or write the report of an operations table (`campaign_report` does).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.core.record import Record
from labctl.core.task import ITEMS
from labctl.reporting.episodes_table import as_counted, episodes, with_preferences, with_tasks
from labctl.reporting.operations_table import Row

if TYPE_CHECKING:
    from labctl.analysis.episodes_table.cohort import Plan
    from labctl.analysis.episodes_table.table import EpisodesTable
    from labctl.analysis.report.lab_facts import Lab


def report_episodes(table: EpisodesTable, out: Path, plan: Plan) -> Path:
    """Write the report of an episodes table into `out`; it claims nothing of blinding. Return the path of its page.

    Raises TableError for a plan that the table does not allow, ReportError where no report may be written.
    """
    from labctl.analysis.episodes_report.page import build_report
    from labctl.analysis.episodes_table.analyze import analyze
    from labctl.analysis.report.report_folder import check_folder

    check_folder(out.resolve())
    return build_report(analyze(table, plan), out, title=Path(table.where).stem).html


def report_tasks(
    record: Record, rows: Sequence[Row], out: Path, title: str, plan: Plan, lab: Lab, files: Mapping[str, bytes]
) -> Path:
    """Write the report of an unblinded campaign of tasks into `out`; return the path of its page. rows: of the
    operations table that count; lab: the facts of the campaign, of which those of items are taken out; files: those
    that it names. Raises TableError, ReportError.
    """
    from labctl.analysis.episodes_report.page import build_report
    from labctl.analysis.episodes_table.analyze import analyze
    from labctl.analysis.episodes_table.table import table_from_rows

    table = table_from_rows(episode_rows(record, rows), source=title)
    _of_tasks(lab, record)
    return build_report(analyze(table, plan), out, title=title, lab=lab, files=files).html


def episode_rows(record: Record, rows: Sequence[Row]) -> list[Row]:
    """The episodes table of an unblinded campaign, from the rows of the operations table that count."""
    ends = {episode.id: str(trial.ended) for trial, episode in record.scored}
    trials = as_counted(rows, {episode.id: trial for trial, episode in record.scored})
    return with_preferences(with_tasks(episodes(rows, ends, ""), record.state.opened, trials), record, str)


def _of_tasks(lab: Lab, record: Record) -> None:
    """Say nothing of when items were moved where nobody counts any, and how many voids after go there are."""
    if all(task["measure"] != ITEMS for task in record.state.opened.get("tasks", ())):
        lab.pop("labels", None)
        lab.pop("disputed", None)
    voids = [episode for episode in record.episodes.values() if episode.void and episode.void.after_go]
    lab["voids_after_go"] = dict(Counter(record.arms[episode.trial] for episode in voids))
