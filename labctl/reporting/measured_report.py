"""The report of any measure: of an episodes table, or of a campaign whose tasks are not all one counted in items.

May not: verify a record or write the report of an operations table (`campaign_report` does).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.core.event_bodies import CampaignOpened
from labctl.core.record import Record
from labctl.core.task import ITEMS, SCORE
from labctl.messages.edits import delay_s
from labctl.reporting.episodes_table import as_counted, episodes, places_of, with_preferences, with_tasks
from labctl.reporting.facts import voids_left_out
from labctl.reporting.operations_table import Row
from labctl.software import analysed_by
from labctl.store.pictures import encode_png, load_photo

if TYPE_CHECKING:
    from labctl.analysis.episode_facts import Lateness
    from labctl.analysis.episodes_table.cohort import Plan
    from labctl.analysis.episodes_table.table import EpisodesTable
    from labctl.analysis.report.lab_facts import Asked, AskedStep, Lab


def report_episodes(table: EpisodesTable, out: Path, plan: Plan) -> Path:
    """Write the report of an episodes table into `out`; it claims nothing of blinding. Return the path of its page.

    Raises TableError for a plan that the table does not allow, ReportError where no report may be written.
    """
    from labctl.analysis.episodes_report.page import build_report
    from labctl.analysis.episodes_table.analyze import analyze
    from labctl.analysis.report.report_folder import check_folder

    check_folder(out.resolve())
    given = {"title": Path(table.where).stem, "made_by": analysed_by(), "draws": (plan.boot, plan.perm)}
    return build_report(analyze(table, plan), out, **given).html


def report_tasks(
    record: Record, rows: Sequence[Row], out: Path, folder: Path, plan: Plan, lab: Lab, files: Mapping[str, bytes]
) -> Path:
    """Write the report of an unblinded campaign of tasks into `out`; return the path of its page. rows: of the
    operations table that count; folder: the campaign's; lab: the facts of it, of which those of items are taken out;
    files: those that it names. Raises TableError, ReportError, BrokenRecord for a picture that is not as it was kept.
    """
    from labctl.analysis.episodes_report.page import build_report
    from labctl.analysis.episodes_table.analyze import analyze
    from labctl.analysis.episodes_table.table import table_from_rows

    every = episode_rows(record, rows)
    table = table_from_rows(every, source=folder.name)
    _of_tasks(lab, record, [row for row in every if not row["void"]])
    lab["asked"], pictures = asked_of(record.state.opened, folder)
    if (late := added_latency(record, every, lab, plan)) is not None:
        lab["lateness"] = late
    return build_report(
        analyze(table, plan),
        out,
        title=folder.name,
        lab=lab,
        files={**files, **pictures},
        made_by=analysed_by(),
        draws=(plan.boot, plan.perm),
    ).html


def asked_of(opened: CampaignOpened, folder: Path) -> tuple[list[Asked], dict[str, bytes]]:
    """Each task as it was put and judged; its anchors' pictures by file of the report. Raises BrokenRecord."""
    found: list[Asked] = []
    pictures: dict[str, bytes] = {}
    for number, task in enumerate(opened.get("tasks", ()), 1):
        steps: list[AskedStep] = [
            {"name": one["name"], "worth": one["points"], "text": one["definition"], "picture": ""}
            for one in task["stages"]
        ]
        for place, anchor in enumerate(task["rubric"], 1):
            file = f"figures/asked-{number:02d}-{place:02d}.png" if "picture" in anchor else ""
            if "picture" in anchor:
                pictures[file] = encode_png(load_photo(folder, anchor["picture"]))
            steps.append({"name": "", "worth": anchor["score"], "text": anchor["text"], "picture": file})
        found.append(
            {
                "task": task["name"],
                "measure": task["measure"],
                "instruction": task["instruction"],
                "budget_s": task["budget_s"],
                "steps": steps,
            }
        )
    return found, pictures


def added_latency(record: Record, rows: Sequence[Row], lab: Lab, plan: Plan) -> Lateness | None:
    """What latency that conditions add leaves of each policy's score, beside the same without; None where none does.
    rows: of the episodes table; lab: with the stress measures of episodes, and whose arms are people's.
    """
    from labctl.analysis.blocks.added_latency import BASE, Delayed, lateness_of
    from labctl.analysis.blocks.means import Draws

    entries = {entry["id"]: entry for entry in record.state.opened["conditions"]}
    added = {name: delay_s(entry.get("inputs", ())) for name, entry in entries.items()}
    late = {name for name, seconds in added.items() if seconds}
    there = late | {entries[name].get("base") or name for name in late}
    if not late:
        return None
    measured = {one["episode"]: one["latency_s"] for one in lab.get("stress", {}).get("episodes", [])}
    people = {one["arm"] for one in lab.get("answer_times", []) if one.get("by_hand")}
    measure = "score" if any(row["score"] is not None for row in rows) else "success"
    known = [row for row in rows if row["condition"] in there and row["arm"] not in people and not row["void"]]
    delayed = [
        Delayed(
            arm=row["arm"],
            level=(row["stress"] or row["condition"]) if added[row["condition"]] else BASE,
            added_s=added[row["condition"]],
            measured_s=math.nan if (seconds := measured.get(row["episode"])) is None else seconds,
            score=math.nan if row[measure] is None else float(row[measure]),
            set=str(row["set"]),
        )
        for row in known
    ]
    return lateness_of(delayed, measure, 1 - plan.alpha, Draws(plan.seed, plan.boot))


def episode_rows(record: Record, rows: Sequence[Row]) -> list[Row]:
    """The episodes table of an unblinded campaign, from the rows of the operations table that count."""
    ends = {episode.id: str(record.ended(trial, episode)) for trial, episode in record.scored}
    judges = {episode.id: episode.scored_by for _, episode in record.scored}
    trials = as_counted(rows, {episode.id: trial for trial, episode in record.scored})
    said = record.state.opened.get("instruction", "")
    made = episodes(rows, ends, said, places_of(rows, record.state.trials), judges)
    return with_preferences(with_tasks(made, record.state.opened, trials), record, str)


def _of_tasks(lab: Lab, record: Record, rows: Sequence[Row]) -> None:
    """Say nothing of when items were moved where nobody counts any, and how many voids after go do not count. rows:
    of the episodes table that do.
    """
    if all(task["measure"] != ITEMS for task in record.state.opened.get("tasks", ())):
        lab.pop("labels", None)
        lab.pop("disputed", None)
    lab["voids_after_go"] = dict(voids_left_out(record, rows))
    judged = {task["measure"] for task in record.state.opened.get("tasks", ())} - {SCORE}
    lab["voids_judged"] = dict(voids_left_out(record, rows, judged))
