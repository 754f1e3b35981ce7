"""Exports: the operations table of a campaign, from its journal, for the statistics and for other tools.

May not: estimate anything, name an arm before unblinding, or leave a half-written file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labctl.durable import replace_file
from labctl.errors import InputError, MissingExtra
from labctl.events import EndReason, Event, Kind
from labctl.trial import State, Trial, fold

COLUMNS = (
    *(
        "episode",
        "arm",
        "object",
        "kind",
        "time_s",
        "op_index",
        "items_staged",
        "end_s",
        "budget_s",
        "block",
        "session",
    ),
    *("trial", "condition", "cause", "stage", "operator", "tote_side", "camera_side", "axis", "void"),
)
Row = dict[str, Any]


@dataclass(slots=True)
class _Episode:
    """What the journal says of one episode beside its trial."""

    started: Mapping[str, Any] = field(default_factory=dict)
    session: str | None = None
    operators: str | None = None
    operations: list[Mapping[str, Any]] = field(default_factory=list)


def operations(events: Sequence[Event]) -> list[Row]:
    """One row per operation of every scored episode, in schedule order; `arm` is there only after unblinding.

    As methodology.md section 1 has it: time_s counts in seconds from the previous success of the episode, or go; a
    success is one, a lost item or the safety stop is a `ghost` with its cause and time, work that remained at the end
    is one `censored` row with the tail, whose cause is what ended the episode. Items the assessor counted as lost
    without a device event are ghosts without a time. An episode with none of these (or no go) is one censored row.
    Times are rounded to 1 us since go. `void` is 0: voided episodes are not in the table.

    Raises StateError and BrokenRecord as `trial.fold` does.
    """
    state = fold(events)
    told, arms = _gather(events)
    conditions = {entry["id"]: entry for entry in state.opened["conditions"]}
    rows: list[Row] = []
    for trial in state.trials.values():
        if trial.state != State.SCORED or trial.episode is None:
            continue
        episode, condition = told[trial.episode], conditions[trial.condition]
        whole = {
            "episode": trial.episode,
            **({"arm": arms[trial.id]} if arms else {}),
            "object": condition["object"],
            "items_staged": trial.outcome.items_staged if trial.outcome else None,
            "end_s": _since_go_us(trial, trial.end_ns) / 1e6,
            "budget_s": episode.started.get("budget_s"),
            "block": trial.block,
            "session": episode.session,
            "trial": trial.id,
            "condition": trial.condition,
            "stage": trial.outcome.stage_reached if trial.outcome else None,
            "operator": episode.operators,
            "tote_side": condition["tote_side"],
            "camera_side": condition["camera_side"],
            "axis": "+".join(condition["axes"]),
            "void": 0,
        }
        for index, (kind, time_us, cause) in enumerate(_timed(trial, episode.operations)):
            time_s = None if time_us is None else time_us / 1e6
            row = {**whole, "kind": kind, "time_s": time_s, "op_index": index, "cause": cause}
            rows.append({column: row[column] for column in COLUMNS if column in row})
    return rows


def _timed(trial: Trial, recorded: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int | None, str | None]]:
    """(kind, microseconds since the previous success or go, cause) of a scored trial's operations, in order."""
    outcome = trial.outcome
    assert outcome is not None, f"trial {trial.id} is scored without an outcome"
    last, lost, stopped, rows = 0, 0, False, 0
    for operation in sorted(recorded, key=lambda op: (op["t_ns"], op["op_index"])):
        now = _since_go_us(trial, operation["t_ns"])
        rows += 1
        if operation["result"] == "success":
            yield "success", now - last, None
            last = now
        elif operation["result"] == "lost":
            lost += 1
            yield "ghost", now - last, operation["cause"] or "lost"
        else:
            stopped = True
            yield "ghost", now - last, str(EndReason.SAFETY_STOP)
    tail = max(0, _since_go_us(trial, trial.end_ns) - last)
    for _ in range(outcome.lost - lost):
        rows += 1
        yield "ghost", None, "uncollected"
    if trial.ended == EndReason.SAFETY_STOP and not stopped:
        yield "ghost", tail, str(EndReason.SAFETY_STOP)
    elif not stopped and (outcome.remaining or not rows):
        yield "censored", tail, str(trial.ended)


def _since_go_us(trial: Trial, t_ns: int | None) -> int:
    """Microseconds from go, rounded; 0 when the episode never got to go."""
    if trial.go_ns is None or t_ns is None:
        return 0
    return max(0, (t_ns - trial.go_ns + 500) // 1000)


def _gather(events: Sequence[Event]) -> tuple[dict[str, _Episode], dict[str, str]]:
    """Per episode what its rows need, and the arm of every trial once the campaign is unblinded."""
    found: dict[str, _Episode] = {}
    arms: dict[str, str] = {}
    session: Mapping[str, Any] | None = None
    for event in events:
        match event.kind:
            case Kind.SESSION_OPENED:
                session = event.body
            case Kind.SESSION_CLOSED:
                session = None
            case Kind.EPISODE_STARTED if event.episode:
                people = [p["id"] for p in session["people"] if "operator" in p["roles"]] if session else []
                name = session["session"] if session else None
                found[event.episode] = _Episode(event.body, name, "+".join(people) or None)
            case Kind.OPERATION_RECORDED if event.episode:
                found[event.episode].operations.append(event.body)
            case Kind.CAMPAIGN_UNBLINDED:
                arms = {slot["trial"]: slot["arm"] for slot in event.body["schedule"]}
    return found, arms


def filter_rows(rows: Sequence[Row], where: str) -> list[Row]:
    """The rows of the episodes of which `where` ("COLUMN=VALUE") is true of some row; whole episodes stay whole.

    `outcome=success` means that every staged item of the episode was moved, `outcome=failure` the opposite.
    Raises InputError for anything else than a known column and a value.
    """
    column, equals, value = where.partition("=")
    known = [*(rows[0] if rows else COLUMNS), "outcome"]
    if not equals or column not in known:
        raise InputError(f"--where {where!r}: give COLUMN=VALUE with one of: {', '.join(known)}")
    if column != "outcome":
        kept = {row["episode"] for row in rows if _text(row[column]) == value}
    elif value in ("success", "failure"):
        moved = {row["episode"]: 0 for row in rows}
        for row in rows:
            moved[row["episode"]] += row["kind"] == "success"
        kept = {r["episode"] for r in rows if (moved[r["episode"]] >= r["items_staged"]) == (value == "success")}
    else:
        raise InputError(f"--where {where!r}: an outcome is success or failure")
    return [row for row in rows if row["episode"] in kept]


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV (UTF-8), or as Parquet when the name ends in .parquet; the file appears whole or not at all.

    Raises MissingExtra for Parquet without pyarrow, StorageError.
    """
    columns = [column for column in COLUMNS if column != "arm" or any("arm" in row for row in rows)]
    if path.suffix == ".parquet":
        replace_file(path, _parquet(rows, columns))
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(row[column]) for column in columns] for row in rows)
    replace_file(path, text.getvalue().encode())


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _parquet(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet", "writing Parquet") from error
    buffer = io.BytesIO()
    table = pyarrow.table({column: [row[column] for row in rows] for column in columns})
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()
