"""The report of any measure: of an episodes table, as `labctl report EPISODES.csv` writes it.

May not: write the report of an operations table, or of a campaign counted in items (`campaign_report` does).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labctl.analysis.episodes_table.cohort import Plan
    from labctl.analysis.episodes_table.table import EpisodesTable


def report_episodes(table: EpisodesTable, out: Path, plan: Plan) -> Path:
    """Write the report of an episodes table into `out`; it claims nothing of blinding. Return the path of its page.

    Raises TableError for a plan that the table does not allow, ReportError where no report may be written.
    """
    from labctl.analysis.episodes_report.page import build_report
    from labctl.analysis.episodes_table.analyze import analyze
    from labctl.analysis.report.report_folder import check_folder

    check_folder(out.resolve())
    return build_report(analyze(table, plan), out, title=Path(table.where).stem).html
