"""Human touches during episodes, as intervals: what a person did to the robot or the scene while it ran. Pure.

May not: judge an outcome, or be asked by arm before unblinding.

A touch that nobody ended went on until the motion ended. Intervals are cut to the timed part of the episode, from go
to its end: before go nothing is measured, and after the end nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labctl.core.event_bodies import InterventionEnded


@dataclass(frozen=True, slots=True)
class Intervention:
    """kind: an `InterventionKind`; by: "console" (somebody said so) or "device" (the hand device did);
    to_ns: None while it goes on.
    """

    number: int
    kind: str
    by: str
    from_ns: int
    to_ns: int | None = None
    note: str = ""

    def ended(self, over: InterventionEnded) -> Intervention:
        """As it turned out, if it is the one that is over; its end stands once it has one. What a hand device did is
        known, whatever was said of it (until November 2026 a run that was started again asked for it).
        """
        if over["number"] != self.number:
            return self
        until = int(over["t_ns"]) if self.to_ns is None else self.to_ns
        kind = self.kind if self.by == "device" else over["kind"]
        return replace(self, kind=kind, to_ns=until, note=over.get("note", ""))

    def cut(self, end_ns: int) -> Intervention:
        """Ended with the motion at the latest."""
        until = end_ns if self.to_ns is None else min(self.to_ns, end_ns)
        return replace(self, to_ns=max(until, self.from_ns))


def spans(touches: Sequence[Intervention], go_ns: int, end_ns: int) -> list[tuple[int, int]]:
    """The times within go and end in which a person touched the episode, in ns, ascending, overlapping ones joined."""
    joined: list[tuple[int, int]] = []
    for touch in sorted(touches, key=lambda touch: touch.from_ns):
        start = max(touch.from_ns, go_ns)
        until = min(end_ns if touch.to_ns is None else touch.to_ns, end_ns)
        if until < start:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until))
        else:
            joined.append((start, until))
    return joined


def unaided(success_ns: Sequence[int], touched: Sequence[tuple[int, int]], go_ns: int) -> int:
    """How many successes nobody touched: those between whose beginning (the success before, or go) and end lies no
    part of a touch.
    """
    count, since = 0, go_ns
    for at_ns in sorted(success_ns):
        count += not any(start <= at_ns and until >= since for start, until in touched)
        since = at_ns
    return count
