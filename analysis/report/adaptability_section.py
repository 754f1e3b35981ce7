"""The report's section on switches of the instruction: its table and the file of every episode's values.

May not: compute a statistic (`labctl.analysis.episodes.adaptability` does).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from labctl.analysis.numerals import MISSING, NOT_REACHED, count, estimate, number
from labctl.analysis.report.tables import ARM, Column, Table

HEADING = "Adaptability: after a switch of the instruction"


def table(found: Mapping[str, Any] | None) -> Table | None:
    """The report's table; None where the protocol switches nothing. found: {switches, arms, episodes}."""
    entries = (found or {}).get("arms") or []
    if not found or not entries:
        return None
    columns = (
        *(ARM, Column("Switch", "text"), Column("Met / scored episodes"), Column("Moved an item after it")),
        *(
            Column("% [95 %]"),
            Column("Items per min before"),
            Column("Items per min after"),
            Column("Median s to the first"),
        ),
        Column("Asked with it after s [95 %]"),
    )
    rows = tuple(
        (
            entry["arm"],
            entry["switch"],
            f"{count(entry['met'])} / {count(entry['episodes'])}",
            f"{count(entry['succeeded'])} / {count(entry['met'])}" if entry["met"] else MISSING,
            estimate(entry["share"], entry["ci"], scale=100),
            _per_minute(entry["moved_before"], entry["before_s"]),
            _per_minute(entry["moved_after"], entry["after_s"]),
            NOT_REACHED if entry["first_s"] == "inf" else number(entry["first_s"]),
            estimate(entry["asked_s"]["value"], entry["asked_s"]["ci"], digits=2),
        )
        for entry in entries
    )
    told = "; ".join(
        f"{one['name']}, {one['at_s']:g} s after go: “{one['instruction'].rstrip('.')}”" for one in found["switches"]
    )
    note = (
        f"The same in every episode of every arm: {told}. Met: the controller took it while the episode ran; one that "
        "was over before is in no other number, so an arm that is done early meets it in its slow episodes only. After "
        "it: up to the next switch or the end, by what the labels count as moved, whatever the instruction asks. "
        "Intervals of shares are Wilson’s, one episode a unit. Median: Kaplan–Meier; an episode without an item after "
        "it is censored where its stretch ends, or never has one if all that was left was lost or it stopped for "
        "safety. The first may have been under way at the switch. After is also later: fewer items are left, so "
        "compare arms, not an arm with its own past. A person can read the script, a policy cannot. Asked with it: "
        "from the switch to the first question that carried it, which waits for the chunk before it. Each episode’s "
        "values: figures/adaptability.csv."
    )
    return Table(columns, rows, note)


def files(found: Mapping[str, Any] | None) -> dict[str, bytes]:
    """The values of every episode as a CSV file by name; nothing where the protocol switches nothing."""
    rows = (found or {}).get("episodes") or []
    if not rows:
        return {}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(["" if value is None else value for value in row.values()] for row in rows)
    return {"figures/adaptability.csv": text.getvalue().encode()}


def _per_minute(moved: int, seconds: float) -> str:
    return number(60.0 * moved / seconds) if seconds else MISSING
