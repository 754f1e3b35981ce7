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
    Where its tasks are not all counted in items, shares are compared: the score, or moved of staged.
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
    done = _done(own)
    moved, took = median(done), median(took_s for _, took_s in own)
    nearest = min(range(len(own)), key=lambda i: (abs(done[i] - moved), abs(own[i][1] - took)))
    share, form = ("a share done of ", ".2f") if _mixed(own) else ("", "g")
    middle = f"the medians of its {len(own)} episodes are {share}{moved:{form}} and {took:.1f} s"
    return Choice(arm, "typical", own[nearest][0]["episode"], f"{_outcome_in_words(own[nearest])}; {middle}")


def _worst(arm: str, own: Sequence[Went]) -> Choice:
    done = _done(own)
    one = own[min(range(len(own)), key=lambda i: (done[i], -own[i][1]))]
    least = "of the fewest moved" if "score" not in one[0] else "of the lowest score"
    least = "of the smallest share done" if _mixed(own) else least
    return Choice(arm, "worst", one[0]["episode"], f"{_outcome_in_words(one)}; {least} the longest")


def _mixed(own: Sequence[Went]) -> bool:
    """Whether some of an arm's tasks are counted in items and others are not: numbers of the two are not compared."""
    return len({"score" in row for row, _ in own}) > 1


def _done(own: Sequence[Went]) -> list[float]:
    """What each did: items moved, or the score of a task that is not counted in items; of both kinds the share."""
    mixed = _mixed(own)
    items = [row["moved"] / max(1, row["staged"] if mixed else 1) for row, _ in own]
    return [row["score"] or 0.0 if "score" in row else moved for (row, _), moved in zip(own, items, strict=True)]


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
