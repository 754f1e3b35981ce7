"""Which episodes of each arm a report shows moving, by rules stated here: a typical one, the worst, a stop. Pure.

May not: read a video, look at more than outcome, duration and end of an episode, or choose by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from labctl.core.events import EndReason

Row = Mapping[str, Any]
ClipKind = Literal["typical", "worst", "stop"]
STOPS = (EndReason.SAFETY_STOP, EndReason.INTERLOCK, EndReason.OPERATOR)  # the first of these that there is


@dataclass(frozen=True, slots=True)
class Choice:
    """One episode to be shown, and why it is this one."""

    arm: str
    kind: ClipKind
    episode: str
    why: str


def choose(rows: Sequence[Row]) -> list[Choice]:
    """For each arm, in order of appearance, up to three choices.

    rows: one per episode, in order of the schedule, with arm, episode, moved, staged, end_reason and duration_s; those
    that never went (duration_s None) are passed over. Of equals the earliest is taken.

    typical: nearest to the arm's median of items moved, then to its median duration. worst: fewest moved, then longest.
    stop: the earliest that the robot's safety ended; without one, an interlock; without one, the operator.
    """
    chosen = []
    for arm in dict.fromkeys(str(row["arm"]) for row in rows):
        own = [row for row in rows if row["arm"] == arm and row.get("duration_s") is not None]
        if own:
            chosen += [_typical(arm, own), _worst(arm, own), *_stop(arm, own)]
    return chosen


def _typical(arm: str, rows: Sequence[Row]) -> Choice:
    moved, took = median(row["moved"] for row in rows), median(row["duration_s"] for row in rows)
    row = min(rows, key=lambda row: (abs(row["moved"] - moved), abs(row["duration_s"] - took)))
    middle = f"the medians of its {len(rows)} episodes are {moved:g} and {took:.1f} s"
    return Choice(arm, "typical", str(row["episode"]), f"{_said(row)}; {middle}")


def _worst(arm: str, rows: Sequence[Row]) -> Choice:
    row = min(rows, key=lambda row: (row["moved"], -row["duration_s"]))
    return Choice(arm, "worst", str(row["episode"]), f"{_said(row)}; of the fewest moved the longest")


def _stop(arm: str, rows: Sequence[Row]) -> list[Choice]:
    for reason in STOPS:
        ended = [row for row in rows if row["end_reason"] == reason]
        if ended:
            why = f"{_said(ended[0])}; the first of {len(ended)} ended by {str(reason).replace('_', ' ')}"
            return [Choice(arm, "stop", str(ended[0]["episode"]), why)]
    return []


def _said(row: Row) -> str:
    return f"{row['moved']} of {row['staged']} moved in {row['duration_s']:.1f} s"
