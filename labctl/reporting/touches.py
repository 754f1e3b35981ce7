"""How people touched each arm's scored episodes: how often, how long, and what was moved without them.

May not: be asked before unblinding, or judge an outcome. What a touch is: `labctl.core.interventions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labctl.analysis.report.lab_facts import Touched
from labctl.clock import SECOND
from labctl.core.events import InterventionKind
from labctl.core.interventions import Intervention, spans, unaided
from labctl.core.record import Record
from labctl.reporting.measures import success_times

if TYPE_CHECKING:
    from labctl.analysis.table import Row


@dataclass(frozen=True, slots=True)
class Ran:
    """One scored episode that got to go: its arm, its touches, its clock, and when items were moved."""

    arm: str
    touches: Sequence[Intervention]
    go_ns: int
    end_ns: int
    success_ns: Sequence[int]


def touched_by_arm(records: Sequence[Record], rows: Sequence[Row], arms: Sequence[str]) -> Sequence[Touched]:
    """`by_arm` of the scored episodes that got to go. records: of a campaign, or of a joint one's parts; rows: the
    operations table, which says when items were moved.
    """
    moved = success_times(rows)
    return by_arm(
        (
            Ran(
                record.arms[episode.trial],
                episode.interventions,
                episode.go_ns,
                episode.end_ns,
                [episode.go_ns + round(at_s * SECOND) for at_s in moved.get(episode.id, ())],
            )
            for record in records
            for _, episode in record.scored
            if episode.go_ns is not None and episode.end_ns is not None
        ),
        arms,
    )


def by_arm(episodes: Iterable[Ran], arms: Sequence[str]) -> list[Touched]:
    """One entry per arm with an episode."""
    ran: dict[str, list[Ran]] = {}
    for episode in episodes:
        ran.setdefault(episode.arm, []).append(episode)
    return [_row(arm, ran[arm]) for arm in arms if arm in ran]


def _row(arm: str, ran: Sequence[Ran]) -> Touched:
    touched = [spans(one.touches, one.go_ns, one.end_ns) for one in ran]
    kinds = Counter(touch.kind for one in ran for touch in one.touches)
    touched_s = sum(until - start for own in touched for start, until in own) / SECOND
    robot_s = sum(one.end_ns - one.go_ns for one in ran) / SECOND
    number = sum(kinds.values())
    return {
        "arm": arm,
        "episodes": len(ran),
        "touched": sum(bool(one.touches) for one in ran),
        "interventions": number,
        "by_kind": {str(kind): kinds[kind] for kind in InterventionKind if kinds[kind]},
        "touched_s": round(touched_s, 3),
        "robot_s": round(robot_s, 3),
        "per_hour": round(3600.0 * number / robot_s, 3) if robot_s else None,
        "moved": sum(len(one.success_ns) for one in ran),
        "unaided": sum(unaided(one.success_ns, own, one.go_ns) for one, own in zip(ran, touched, strict=True)),
    }
