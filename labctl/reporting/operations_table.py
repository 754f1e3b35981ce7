"""Exports: the operations table of a campaign, from its record, for the statistics and for other tools.

May not: estimate anything, name an arm before unblinding, or leave a half-written file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labctl.analysis.episodes.estimand import Estimand, counted
from labctl.analysis.episodes_table.columns import STAGE_TIME
from labctl.analysis.writing import csv_lines
from labctl.core.event_bodies import OperationRecorded
from labctl.core.events import STOPPED_BY_HAND, EndReason
from labctl.core.outcome import Outcome
from labctl.core.record import Episode, Record
from labctl.core.trial import Trial
from labctl.errors import InputError, MissingExtra
from labctl.reporting.label_streams import tallied
from labctl.store.atomic_files import replace_file

if TYPE_CHECKING:
    from labctl.analysis.table import Value

UNVERIFIED = "unverified"  # column of a table of a record that does not hold: what is wrong
TABLES = (".csv", ".parquet", ".xlsx")
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
    *("trial", "condition", "cause", "stage", "operator", "tote_side", "camera_side", "axis", "void", "interventions"),
    *("alone", "cell"),
)
SOMETIMES = ("arm", "alone", "cell")  # columns of which a table that has nothing to say of them is without
WHOLE = (
    "alone",
    "op_index",
    "items_staged",
    "block",
    "void",
    "interventions",
    "success",
    "position",
    "moved",
    "staged",
)
WRONG_END = "wrong_end"
UNTIMED = "untimed"  # cause of a success that an assessor counted and no witness saw
Row = dict[str, Any]


def operations(record: Record, *, labels: str = "best", all_stops: bool = False) -> list[Row]:
    """The rows that count, as `recorded` makes them and the protocol's `[estimand]` has them; void episodes are there
    only where they count.
    """
    return that_count(recorded(record, labels=labels, all_stops=all_stops), record)


def that_count(rows: Sequence[Row], record: Record) -> list[Row]:
    """Of the rows that were `recorded`, those that count, as the protocol's `[estimand]` has them."""
    return [row for row in counted(rows, Estimand(**record.estimand)) if not row["void"]]


def recorded(record: Record, *, labels: str = "best", all_stops: bool = False) -> list[Row]:
    """One row per operation of every scored episode, in schedule order; `arm` is there only after unblinding.

    As methodology.md section 1 has it: time_s counts in seconds from the previous success of the episode, or go; a
    success is one, a lost item or the item at hand at a safety stop is a `ghost` with its cause and time (a stop when
    none is left open fails no item: a `censored` row), work that remained at the end is one `censored` row with the
    tail, whose cause is what ended the episode. Items the assessor counted as lost
    without a device event are ghosts without a time. An episode with none of these (or no go) is one censored row.
    Moves and losses are those of the outcome, whatever the stream: `_as_counted`. Where devices ended an episode as all
    done and a person found items remaining, what was open is censored at that end, by WRONG_END.
    labels: "best" and "reviewed" take an assessor's operations where an episode has been reviewed, else those that
    devices reported or, in a campaign whose devices never report any, what the detector found in the arm's trace;
    "device" leaves out the review, "detector" takes the detector's alone, "operator" the tally as it was counted.
    A stop by hand of a cause that the protocol does not list is an end by the operator, unless all_stops.
    Of a task that is measured otherwise the whole task is the one operation: it succeeds or is open at the end.
    Times are rounded to 1 us since go. Behind them stands each episode that was voided after go, `void` 1, as one
    censored row whose cause is why. `interventions` counts how often a person touched the episode while it ran.
    """
    devices_tell = any(len(episode.operations) > len(episode.stops) for episode in record.episodes.values())
    rows: list[Row] = []
    for trial, episode in record.scored:
        whole = _whole(record, trial, episode)
        labelled = _labelled(episode, labels, devices_tell)
        spared = record.spares(episode) and not all_stops
        for index, (kind, time_us, cause) in enumerate(_timed(trial, labelled, spared=spared)):
            time_s = None if time_us is None else time_us / 1e6
            rows.append(_in_order({**whole, "kind": kind, "time_s": time_s, "op_index": index, "cause": cause}))
    for episode in record.episodes.values():
        if episode.void is not None and episode.void.after_go:
            seconds = episode.duration_s or 0.0
            row = {
                **_whole(record, record.state.trials[episode.trial], episode),
                "items_staged": record.state.opened.get("items_staged"),
                "end_s": seconds,
                "stage": None,
                "void": 1,
                "kind": "censored",
                "time_s": seconds,
                "op_index": 0,
                "cause": episode.void.reason,
            }
            rows.append(_in_order(row))
    return rows


def _in_order(row: Row) -> Row:
    return {column: row[column] for column in COLUMNS if column in row}


def _whole(record: Record, trial: Trial, episode: Episode) -> Row:
    """What is the same in all rows of an episode."""
    arms = record.arms
    condition = next(entry for entry in record.state.opened["conditions"] if entry["id"] == trial.condition)
    return {
        "episode": episode.id,
        **({"arm": arms[trial.id]} if arms else {}),
        "object": condition["object"],
        "items_staged": trial.outcome.items_staged if trial.outcome else None,
        "end_s": _since_go_us(trial, trial.end_ns) / 1e6,
        "budget_s": episode.start.get("budget_s") if episode.start else None,
        "block": trial.block,
        "session": episode.session,
        "trial": trial.id,
        "condition": trial.condition,
        "stage": trial.outcome.stage_reached if trial.outcome else None,
        "operator": "+".join(episode.operators) or None,
        "tote_side": condition["tote_side"],
        "camera_side": condition["camera_side"],
        "axis": "+".join(condition["axes"]),
        "void": 0,
        "interventions": len(episode.interventions),
        **({"alone": int(trial.block in lone)} if (lone := record.state.opened.get("alone")) else {}),
        **({"cell": joint["cell"]} if (joint := record.state.opened.get("joint")) else {}),
    }


def _labelled(episode: Episode, labels: str, devices_tell: bool) -> Sequence[OperationRecorded]:
    """An episode's operations by one stream of labels. devices_tell: this campaign's devices report placements."""
    if labels in ("best", "reviewed") and episode.reviewed is not None:
        return episode.reviewed
    if labels == "operator":
        times = enumerate(tallied(episode.counts))
        counted: list[OperationRecorded] = [
            {"op_index": number, "result": "success", "t_ns": t_ns, "cause": None} for number, t_ns in times
        ]
        return [*counted, *episode.stops]
    found = episode.detected
    if labels != "detector" and (devices_tell or found is None):
        return episode.operations
    return [*found, *episode.stops] if found is not None and episode.go_ns is not None else []


def _timed(
    trial: Trial, recorded: Sequence[OperationRecorded], *, spared: bool
) -> Iterator[tuple[str, int | None, str | None]]:
    """(kind, microseconds since the previous success or go, cause) of a scored trial's operations, in order. spared:
    a person's stop ended it that does not count.
    """
    outcome = trial.outcome
    assert outcome is not None, f"trial {trial.id} is scored without an outcome"
    ended = trial.ended
    if spared:
        ended, recorded = EndReason.OPERATOR, [op for op in recorded if not _by_hand(op)]
    if outcome.measured:
        end, done = _since_go_us(trial, trial.end_ns), outcome.reached_s[-1] if outcome.reached_s else None
        at = end if done is None else round(done * 1e6)
        untimed = UNTIMED if done is None else None
        yield ("success", at, untimed) if outcome.moved else ("censored", end, str(ended))
        return
    last, rows, at_stop = 0, 0, None
    ordered = sorted(recorded, key=lambda op: (op["t_ns"], op["op_index"]))
    counted = _as_counted(ordered, trial, outcome)
    untimed = outcome.lost - sum(operation["result"] == "lost" for operation in counted)
    for operation in counted:
        now = _since_go_us(trial, operation["t_ns"])
        rows += 1
        if operation["result"] == "success":
            yield "success", now - last, UNTIMED if operation.get("cause") == UNTIMED else None
            last = now
        elif operation["result"] == "lost":
            yield "ghost", now - last, operation["cause"] or "lost"
        else:
            at_stop = now - last
    tail = max(0, _since_go_us(trial, trial.end_ns) - last)
    if ended == EndReason.SAFETY_STOP and at_stop is None:
        at_stop = tail
    if at_stop is not None:
        # The item that was open: one that remains, else one of those lost without a time; without any, none failed.
        failed = outcome.remaining > 0 or untimed > 0
        untimed -= outcome.remaining == 0 and untimed > 0
        yield "ghost" if failed else "censored", at_stop, str(EndReason.SAFETY_STOP)
    for _ in range(untimed):
        rows += 1
        yield "ghost", None, "uncollected"
    if at_stop is None and (outcome.remaining or not rows):
        yield "censored", tail, WRONG_END if outcome.wrong_end else str(ended)


def _by_hand(operation: OperationRecorded) -> bool:
    """Whether it is the operation at hand when a person stopped the robot. What an assessor added is not."""
    return operation["result"] == "safety_stop" and operation["cause"] == STOPPED_BY_HAND


def _as_counted(ordered: Sequence[OperationRecorded], trial: Trial, outcome: Outcome) -> list[OperationRecorded]:
    """The operations as a person's counts leave them: which did not happen nobody knows, so the last placements beyond
    the count are taken back, and losses that a placement followed (dropped, picked up again, placed), else the last; of
    an end in dispute always the last.
    Items that nobody saw being moved stand as UNTIMED successes, evenly within the longest times without one.
    Time at risk stays what it was, and a review may say it better.
    """
    gone: set[int] = set()
    placed = [i for i, op in enumerate(ordered) if op["result"] == "success"]
    lost = [i for i, op in enumerate(ordered) if op["result"] == "lost"]
    gone.update(placed[outcome.moved :])
    stands = placed[: outcome.moved]
    retrieved = [i for i in lost if stands and i < stands[-1] and not outcome.wrong_end]
    doubted = [*retrieved, *reversed([i for i in lost if i not in retrieved])]
    gone.update(doubted[: max(0, len(lost) - outcome.lost)])
    kept = [operation for i, operation in enumerate(ordered) if i not in gone]
    return sorted([*kept, *_untimed(kept, trial, outcome.moved - len(stands))], key=lambda op: op["t_ns"])


def _untimed(kept: Sequence[OperationRecorded], trial: Trial, missing: int) -> list[OperationRecorded]:
    if trial.go_ns is None or trial.end_ns is None or trial.end_ns <= trial.go_ns:
        return []
    edges = [trial.go_ns, *(op["t_ns"] for op in kept if op["result"] == "success"), trial.end_ns]
    parts = [1] * (len(edges) - 1)
    for _ in range(missing):
        longest = max(range(len(parts)), key=lambda i: (edges[i + 1] - edges[i]) / parts[i])
        parts[longest] += 1
    gaps = zip(edges, edges[1:], parts, strict=False)
    times = [start + (end - start) * part // count for start, end, count in gaps for part in range(1, count)]
    return [
        {"op_index": len(kept) + i, "result": "success", "t_ns": t_ns, "cause": UNTIMED} for i, t_ns in enumerate(times)
    ]


def _since_go_us(trial: Trial, t_ns: int | None) -> int:
    """Microseconds from go, rounded; 0 when the episode never got to go."""
    if trial.go_ns is None or t_ns is None:
        return 0
    return max(0, (t_ns - trial.go_ns + 500) // 1000)


UNSCORED: Mapping[str, str] = {"outcome": "failure", "end_reason": ""}  # of a void episode that counts as no success


def outcomes_of(record: Record) -> dict[str, dict[str, str]]:
    """What `filter_rows` can ask of a scored episode beside the table: its outcome and its end_reason."""
    return {
        episode.id: {
            "outcome": "success" if (went := trial.outcome) and went.moved >= went.items_staged else "failure",
            "end_reason": str(record.ended(trial, episode)),
        }
        for trial, episode in record.scored
    }


def filter_rows(rows: Sequence[Row], where: str, outcomes: Mapping[str, Mapping[str, str]]) -> list[Row]:
    """The rows of the episodes of which `where` ("COLUMN=VALUE") is true of some row; whole episodes stay whole.

    `outcomes` is `outcomes_of`: `outcome=success` means that every staged item of the episode was moved,
    `outcome=failure` the opposite; `end_reason=budget` is why its motion ended, as it counts. A void episode that
    counts is a failure that nothing ended. Raises InputError for anything else than a known column and a value.
    """
    column, equals, value = where.partition("=")
    known = [*(rows[0] if rows else COLUMNS), "outcome", "end_reason"]
    if equals and column == "arm" and column not in known:
        raise InputError(f"--where {where!r}: there is no arm column before unblinding; unblind the campaign first")
    if not equals or column not in known:
        raise InputError(f"--where {where!r}: give COLUMN=VALUE with one of: {', '.join(known)}")
    if column == "outcome" and value not in ("success", "failure"):
        raise InputError(f"--where {where!r}: an outcome is success or failure")
    if column in ("outcome", "end_reason"):
        kept = {row["episode"] for row in rows if outcomes.get(row["episode"], UNSCORED)[column] == value}
    else:
        kept = {row["episode"] for row in rows if _text(row[column]) == value}
    return [row for row in rows if row["episode"] in kept]


def write_table(rows: Sequence[Row], path: Path, columns: Sequence[str] | None = None) -> None:
    """Write rows as the name ends, .csv (UTF-8), .parquet or .xlsx; the file appears whole or not at all. columns: of
    another table than that of operations.

    Raises InputError for another ending, MissingExtra for Parquet without pyarrow or a workbook without openpyxl,
    StorageError.
    """
    columns = columns or _columns(rows)
    if path.suffix not in TABLES:
        raise InputError(f"--out {path}: a table's name ends in {', '.join(TABLES)}")
    if path.suffix == ".xlsx":
        made = _workbook(columns, rows)
    elif path.suffix == ".parquet":
        made = parquet_bytes(rows, columns)
    else:
        made = csv_text(columns, rows).encode()
    replace_file(path, made)


def csv_text(columns: Sequence[str], rows: Sequence[Mapping[str, Value]]) -> str:
    """Rows as the text of a CSV, empty for None."""
    return csv_lines([columns, *([_text(row[column]) for column in columns] for row in rows)])


def _workbook(columns: Sequence[str], rows: Sequence[Row]) -> bytes:
    try:
        from openpyxl import Workbook
        from openpyxl.cell import Cell, WriteOnlyCell
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    except ModuleNotFoundError as error:
        raise MissingExtra("xlsx", "writing a workbook") from error
    book = Workbook(write_only=True)
    sheet = book.create_sheet("operations" if "kind" in columns else "episodes")
    sheet.freeze_panes = "A2"
    sheet.append(list(columns))

    def cell(value: Value) -> Value | Cell:
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub(" ", value))
        made.data_type = "s"  # a text that begins with "=" is no formula
        return made

    for row in rows:
        sheet.append([cell(row[column]) for column in columns])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _text(value: Value) -> str:
    return "" if value is None else str(value)


def _columns(rows: Sequence[Row]) -> list[str]:
    there = [name for name in COLUMNS if name not in SOMETIMES or any(name in row for row in rows)]
    return [*there, UNVERIFIED] if any(UNVERIFIED in row for row in rows) else there


def parquet_bytes(rows: Sequence[Row], columns: Sequence[str] | None = None) -> bytes:
    """The table as the bytes of a Parquet file, a type for every column even when all of it is empty.

    Raises MissingExtra without pyarrow.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet", "writing Parquet") from error
    numbers = {"time_s": pyarrow.float64(), "end_s": pyarrow.float64(), "budget_s": pyarrow.float64()}
    numbers |= {"score": pyarrow.float64(), **dict.fromkeys(WHOLE, pyarrow.int64())}
    columns = columns or _columns(rows)
    if "kind" not in columns:  # of episodes, whose stage is how many were reached and no word
        numbers |= dict.fromkeys(("stage", "steps"), pyarrow.int64())
        numbers |= {column: pyarrow.float64() for column in columns if STAGE_TIME.match(column)}
    buffer = io.BytesIO()
    arrays = {
        column: pyarrow.array([row[column] for row in rows], numbers.get(column, pyarrow.string()))
        for column in columns
    }
    pyarrow.parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()
