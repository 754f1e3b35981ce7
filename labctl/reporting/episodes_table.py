"""An operations campaign as an episodes table: one row an episode, whose score is the share of its items that it moved.

May not: read a record, or name an arm: it regroups the rows of the operations table, masked or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from labctl.analysis.episodes_table.columns import MEASURES, OPTIONAL, REQUIRED
from labctl.reporting.operations_table import Row

COLUMNS = (*REQUIRED, *MEASURES, *OPTIONAL)
SAME = ("episode", "block", "session", "operator", "condition", "object", "axis", "budget_s", "interventions")
"""Columns that mean the same in both tables."""


def episodes(rows: Sequence[Row], end_reasons: Mapping[str, str], instruction: str) -> list[Row]:
    """The rows of the operations table by episode, in their order, with every column of the interface, None where the
    campaign does not say; `arm` is there only if it is in `rows`.

    `success` 1 where every item staged was moved; `time_s` then of the last one, else of the end, in s since go.
    `position` is the place in its block by the schedule. Of two episodes of one trial, one void and counted, the void
    one is marked. end_reasons: why the motion of an episode ended, where that may be said.
    """
    by_episode: dict[str, list[Row]] = {}
    for row in rows:
        by_episode.setdefault(row["episode"], []).append(row)
    place: Counter[object] = Counter()
    seen: set[str] = set()
    found: list[Row] = []
    for name, own in by_episode.items():
        first, again = own[0], own[0]["trial"] in seen
        seen.add(first["trial"])
        place[first["block"]] += not again
        moved = sum(row["kind"] == "success" for row in own)
        staged = first["items_staged"]
        done = bool(staged) and moved >= staged
        made: Row = {column: None for column in COLUMNS} | {column: first[column] for column in SAME}
        made |= {
            "success": int(done),
            "score": min(1.0, moved / staged) if staged else None,
            "time_s": _finished(own) if done else first["end_s"],
            "position": None if again else place[first["block"]],
            "instruction": instruction or None,
            "moved": moved,
            "staged": staged,
            "end_reason": end_reasons.get(name),
            "void": int(again),
        }
        found.append(made | {"arm": first["arm"]} if "arm" in first else {k: v for k, v in made.items() if k != "arm"})
    return found


def columns_of(rows: Iterable[Row]) -> list[str]:
    """The columns to write: every one, but for an arm that is not there."""
    return [column for column in COLUMNS if column != "arm" or any("arm" in row for row in rows)]


def _finished(own: Sequence[Row]) -> float:
    """When the last item was moved, in s since go: times count from the item before."""
    return round(sum(row["time_s"] for row in own if row["kind"] == "success"), 6)
