"""A campaign as an episodes table: one row an episode. Where a task is counted in items, the score is the share that
were moved; else it is as the task's measure has it.

May not: read a record, or name an arm: it regroups the rows of the operations table, masked or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from labctl.analysis.episodes_table.columns import MEASURES, OPTIONAL, REQUIRED, STAGE_TIME
from labctl.analysis.episodes_table.table import TIE
from labctl.core.event_bodies import CampaignOpened
from labctl.core.outcome import Outcome
from labctl.core.record import Record
from labctl.core.task import ITEMS, SCORE, STAGES, Task, task_of, tasks_of
from labctl.core.trial import Trial
from labctl.reporting.operations_table import Row

COLUMNS = (*REQUIRED, *MEASURES, *OPTIONAL)
SAME = ("episode", "block", "session", "operator", "condition", "object", "axis", "budget_s", "interventions")
"""Columns that mean the same in both tables."""
NO_SUCCESS = "no_success"
"""The cause of an episode that counts as one in which nothing was done, whatever was recorded."""
OF_CONDITION = ("task", "base", "split", "family", "difficulty", "stress")
"""Columns that a condition of a campaign with tasks gives."""


def places_of(rows: Iterable[Row], trials: Mapping[str, Trial] | None = None) -> dict[str, int | None]:
    """The place of each episode in its block in order of running, from 1, of those that count: the rows of voids stand
    behind all others, and one of a trial that has an episode before it has None. rows: of the operations table, all
    that count, unmasked; trials: by their id, without which rows are in order of running.
    """
    rows = list(rows)
    episode_of: dict[str, str] = {}
    own: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for row in rows:
        episode_of.setdefault(row["trial"], row["episode"])
        own[row["block"]][row["trial"]] = None
    place = {
        name: number
        for names in own.values()
        for number, name in enumerate(sorted(names, key=lambda one: trials[one].position if trials else 0), 1)
    }
    return {row["episode"]: place[row["trial"]] if episode_of[row["trial"]] == row["episode"] else None for row in rows}


def episodes(
    rows: Sequence[Row],
    end_reasons: Mapping[str, str],
    instruction: str,
    places: Mapping[str, int | None] | None = None,
    evaluators: Mapping[str, str | None] | None = None,
) -> list[Row]:
    """The rows of the operations table by episode, in their order, with every column of the interface, None where the
    campaign does not say; `arm` is there only if it is in `rows`.

    `success` 1 where every item staged was moved; `time_s` then of the last one, else of the end, in s since go.
    `position` is the place in its block by the schedule. Of two episodes of one trial, one void and counted, the void
    one is marked. end_reasons: why the motion of an episode ended, where that may be said; places: `places_of` all that
    count, without which the rows have to be these, in order of running; evaluators: who counted an episode last.
    """
    by_episode: dict[str, list[Row]] = {}
    for row in rows:
        by_episode.setdefault(row["episode"], []).append(row)
    place = places_of(rows) if places is None else places
    found: list[Row] = []
    for name, own in by_episode.items():
        first = own[0]
        moved = sum(row["kind"] == "success" for row in own)
        staged = first["items_staged"]
        done = bool(staged) and moved >= staged
        made: Row = {column: None for column in COLUMNS} | {column: first[column] for column in SAME}
        made["cell"] = first.get("cell")
        made |= {
            "success": int(done),
            "score": min(1.0, moved / staged) if staged else None,
            "time_s": _finished(own) if done else first["end_s"],
            "position": place[name],
            "evaluator": (evaluators or {}).get(name),
            "instruction": instruction or None,
            "moved": moved,
            "staged": staged,
            "end_reason": end_reasons.get(name),
            "void": int(place[name] is None),
        }
        found.append(made | {"arm": first["arm"]} if "arm" in first else {k: v for k, v in made.items() if k != "arm"})
    return found


def as_counted(rows: Sequence[Row], trials: Mapping[str, Trial]) -> dict[str, Trial]:
    """Those trials whose outcome counts as it was recorded: of the others what counts as what made no success. rows: of
    the operations table; trials: by the name of their scored episode.
    """
    changed = {row["episode"] for row in rows if row["cause"] == NO_SUCCESS}
    return {name: trial for name, trial in trials.items() if name not in changed}


def with_tasks(rows: Sequence[Row], opened: CampaignOpened, trials: Mapping[str, Trial]) -> list[Row]:
    """The rows with what a campaign of tasks says of each: its task, condition, base and the set of blocks it is run
    beside, and the outcome by the task's measure. trials: the trial of an episode that is scored, by its name, where
    its outcome counts (`as_counted`).

    Of success and stages `time_s` is when the whole task was done, empty where nobody saw when; without success it is
    the budget, also where the episode was ended early. `stage` and stage_1_s …: how many were reached, and when.
    """
    if "tasks" not in opened:
        return list(rows)
    nth = _replicates(opened)
    entries = {entry["id"]: entry for entry in opened["conditions"]}
    most = max(len(task.stages) if task.measure == STAGES else 0 for task in tasks_of(opened).values())
    found: list[Row] = []
    for row in rows:
        entry, task = entries[row["condition"]], task_of(opened, row["condition"])
        made: Row = {**row, **{key: entry.get(key) for key in OF_CONDITION}, "instruction": task.instruction}
        made |= {"tags": "; ".join(entry["tags"]) or None, "axis": "+".join(entry["axes"]) or None}
        made |= {"set": f"{entry.get('set')} {nth[row['block']]}", "budget_s": task.budget_s}
        made |= {f"stage_{number}_s": None for number in range(1, most + 1)}
        trial = trials.get(row["episode"])
        if task.measure != ITEMS:
            made |= {"moved": None, "staged": None}
            if trial is not None and trial.outcome is not None and not row["void"]:
                made |= _as_measured(task, trial.outcome)
            elif task.measure == SCORE:
                made["success"] = None
        if not made["success"]:
            made["time_s"] = task.budget_s if made["success"] == 0 else None
        found.append(made)
    return found


def with_preferences(rows: Sequence[Row], record: Record, hide: Callable[[str], str]) -> list[Row]:
    """The rows with the two arms of each block that were compared, in the order they ran, and the arm that was
    preferred, TIE for neither, wherever arms may be named and both of a pair are there. hide: masks an arm's name.
    """
    stated: dict[int, Row] = {}
    arms, owners = record.arms, {trial.episode: trial for trial in record.state.trials.values()}
    for trial in record.state.trials.values():
        if trial.preference is None or not arms:
            continue
        two = {"first": hide(arms[owners[trial.compared].id]), "second": hide(arms[trial.id]), "neither": TIE}
        there = {row.get("arm") for row in rows if row["block"] == trial.block and not row["void"]}
        if {two["first"], two["second"]} <= there:
            pair = f"{two['first']}|{two['second']}"
            stated[trial.block] = {"compared": pair, "preferred": two[trial.preference["preferred"]]}
    return [{**row, **stated.get(row["block"], {})} for row in rows]


def _as_measured(task: Task, outcome: Outcome) -> Row:
    """How an episode went by a measure that is not items."""
    if outcome.score is not None:
        return {"success": None, "score": outcome.score, "time_s": None}
    reached = outcome.reached_s or ()
    done = len(reached) == len(task.stages)
    made: Row = {"success": int(done), "score": task.points(len(reached))}
    made["time_s"] = reached[-1] if done and reached else None
    if task.measure != STAGES:
        return made
    made["stage"] = len(reached)
    return made | {f"stage_{number}_s": seconds for number, seconds in enumerate(reached, 1)}


def _replicates(opened: CampaignOpened) -> dict[int, int]:
    """Of each block, how many blocks at its condition there were before, counted from 1."""
    counts: Counter[str] = Counter()
    found: dict[int, int] = {}
    for slot in opened["schedule"]:
        if slot["block"] not in found:
            counts[slot["condition"]] += 1
            found[slot["block"]] = counts[slot["condition"]]
    return found


def columns_of(rows: Iterable[Row]) -> list[str]:
    """The columns to write: every one, but for an arm that is not there, and when each stage was reached."""
    rows = list(rows)
    stages = sorted({column for row in rows for column in row if STAGE_TIME.match(column)})
    return [*(column for column in COLUMNS if column != "arm" or any("arm" in row for row in rows)), *stages]


def _finished(own: Sequence[Row]) -> float:
    """When the last item was moved, in s since go: times count from the item before."""
    return round(sum(row["time_s"] for row in own if row["kind"] == "success"), 6)
