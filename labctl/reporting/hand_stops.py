"""Stops by hand: of which causes people said they were, by arm, and which of them do not count against it. Pure.

May not: decide which causes count (the protocol lists them), or be asked by arm before unblinding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from labctl.analysis.report.lab_facts import Stops
from labctl.core.record import Episode, Record

UNSAID = "no cause said"


def stop_facts(record: Record, arms: Sequence[str]) -> Stops | None:
    """What a report says of the episodes that people stopped: `counted`, the causes that the protocol lists (None:
    its campaign is from before it could), and for each arm its episodes by cause, those of them that do not count
    against it, and how many are void. None where nobody stopped one.
    """
    of = record.arms
    stopped = {arm: [one for one in record.episodes.values() if one.stop and of[one.trial] == arm] for arm in arms}
    if not any(stopped.values()):
        return None
    return {
        "counted": record.stops_count,
        "arms": [
            {
                "arm": arm,
                "by_cause": _causes(own),
                "not_counted": _causes(one for one in own if record.spares(one) and one.void is None),
                "void": sum(one.void is not None for one in own),
            }
            for arm, own in stopped.items()
        ],
    }


def _causes(stopped: Iterable[Episode]) -> dict[str, int]:
    return dict(sorted(Counter(one.stop.cause or UNSAID for one in stopped if one.stop).items()))


def stop_lines(record: Record) -> list[str]:
    """A line for each scored episode that ended with a stop that does not count against its arm."""
    lines = []
    for _, episode in record.scored:
        stop = episode.stop
        if stop is not None and stop.cause is not None and record.spares(episode):
            text = f"{stop.cause.replace('_', ' ')}, said {stop.acknowledged_by}: {stop.why}"
            lines.append(f"episode {episode.id}: stopped by hand, counted as ended by the operator ({text})")
    return lines
