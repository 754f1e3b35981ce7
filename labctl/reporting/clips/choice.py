"""Which episodes of each arm a report shows moving, by rules stated here: a typical one, the worst, a stop. Pure.

May not: read a video, look at more than outcome, duration and end of an episode, or choose by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from labctl.analysis.report.lab_facts import EpisodeEntry
from labctl.core.events import EndReason

ClipKind = Literal["typical", "worst", "stop"]
Went = tuple[EpisodeEntry, float]  # an episode that got to go, and its duration in s
STOPS = (EndReason.SAFETY_STOP, EndReason.INTERLOCK, EndReason.OPERATOR)  # the first of these that there is


@dataclass(frozen=True, slots=True)
class Choice:
    """One episode to be shown, and why it is this one."""

    arm: str
    kind: ClipKind
    episode: str
    why: str


def choose(rows: Sequence[EpisodeEntry]) -> list[Choice]:
    """For each arm, in order of appearance, up to three choices.

    rows: one per episode, in order of the schedule, with arm, episode, moved, staged, end_reason and duration_s; those
    that never went (duration_s None) are passed over. Of equals the earliest is taken.

    typical: nearest to the arm's median of items moved, then to its median duration. worst: fewest moved, then longest.
    stop: the earliest that the robot's safety ended; without one, an interlock; without one, the operator.
    """
    went = [(row, took_s) for row in rows if (took_s := row.get("duration_s")) is not None]
    chosen: list[Choice] = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        own = [(row, took_s) for row, took_s in went if row["arm"] == arm]
        if own:
            chosen += [_typical(arm, own), _worst(arm, own), *_stop(arm, own)]
    return chosen


def _typical(arm: str, own: Sequence[Went]) -> Choice:
    moved, took = median(_done(row) for row, _ in own), median(took_s for _, took_s in own)
    one = min(own, key=lambda one: (abs(_done(one[0]) - moved), abs(one[1] - took)))
    middle = f"the medians of its {len(own)} episodes are {moved:g} and {took:.1f} s"
    return Choice(arm, "typical", one[0]["episode"], f"{_outcome_in_words(one)}; {middle}")


def _worst(arm: str, own: Sequence[Went]) -> Choice:
    one = min(own, key=lambda one: (_done(one[0]), -one[1]))
    least = "of the lowest score" if "score" in one[0] else "of the fewest moved"
    return Choice(arm, "worst", one[0]["episode"], f"{_outcome_in_words(one)}; {least} the longest")


def _done(row: EpisodeEntry) -> float:
    """What it did: items moved, or the score of a task that is not counted in items."""
    return row["score"] or 0.0 if "score" in row else row["moved"]


def _stop(arm: str, own: Sequence[Went]) -> list[Choice]:
    for reason in STOPS:
        ended = [one for one in own if one[0]["end_reason"] == reason]
        if ended:
            why = f"{_outcome_in_words(ended[0])}; the first of {len(ended)} ended by {str(reason).replace('_', ' ')}"
            return [Choice(arm, "stop", ended[0][0]["episode"], why)]
    return []


def _outcome_in_words(one: Went) -> str:
    row, took_s = one
    done = f"{row['moved']} of {row['staged']} moved" if "score" not in row else f"score {row['score'] or 0.0:.2f}"
    return f"{done} in {took_s:.1f} s"
