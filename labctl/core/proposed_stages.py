"""Which stages of a task the detector's holds speak for: grasped, lifted, placed. What it cannot tell it leaves open.

May not: decide that a stage was reached (a person does), or read a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labctl.messages.body_parts import Detected, StageEntry


def proposed(stages: Sequence[StageEntry], detected: Sequence[Detected], go_ns: int, end_ns: int) -> list[int]:
    """When each of the first stages was reached, ns, as far as the holds of an episode tell: each not before the one
    before it, up to the first stage that is not one of theirs, or that no hold shows.
    """
    found: list[int] = []
    for stage in stages:
        since = found[-1] if found else go_ns
        times = [t_ns for t_ns in _times(stage.get("sensed"), detected) if since <= t_ns <= end_ns]
        if not times:
            break
        found.append(min(times))
    return found


def _times(sensed: str | None, detected: Sequence[Detected]) -> Iterator[int]:
    for one in detected:
        at = {
            "grasped": one.get("grasped_ns"),
            "lifted": one.get("lifted_ns"),
            "placed": one["t_ns"] if one["result"] == "success" else None,
        }.get(sensed or "")
        if at is not None:
            yield at
