"""One episode from reveal to sealed recording: what has been asked of whom, what has answered, and what that makes
due. Holds values only.

May not: send, journal, or name an arm of the experiment anywhere but in `task`, which goes to the controller alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labctl.clock import MILLISECOND, SECOND
from labctl.events import EndReason, digest
from labctl.model import Cell

GO_PATIENCE_NS = 2 * SECOND  # from start to go
CLOSE_PATIENCE_NS = 15 * SECOND  # from the end to everything delivered
SETTLE_NS = 150 * MILLISECOND  # device events of the last moment may arrive this long after the budget
LOST = {"arm": EndReason.ARM_LOST, "controller": EndReason.CONTROLLER_LOST, "recorder": EndReason.RECORDER_LOST}
VOIDABLE = frozenset({*LOST.values(), EndReason.CAMERA_LOST, EndReason.PROCESS_LOST})


def lost_reason(name: str) -> EndReason:
    """The end reason for the loss of a node's process."""
    return EndReason.CAMERA_LOST if name.startswith("camera:") else LOST[name]


@dataclass
class Rollout:
    """An episode in flight. Times are monotonic ns; `epoch` is the motion lease's."""

    trial: str
    episode: str
    epoch: int
    task: Mapping[str, Any]
    start_due_ns: int
    budget_ns: int
    items: int
    producers: list[str]
    cameras: list[str]
    operator_ready: bool = False
    opened: bool = False
    ready: bool = False
    started_ns: int | None = None
    go_ns: int | None = None
    items_done: int = 0
    operations: list[dict[str, Any]] = field(default_factory=list)
    reason: EndReason | None = None
    end_ns: int | None = None
    closing_since_ns: int | None = None
    closed: Mapping[str, Any] | None = None
    videos: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    digesting: bool = False
    sealed: bool = False

    @property
    def deadline_ns(self) -> int | None:
        return None if self.go_ns is None else self.go_ns + self.budget_ns

    @property
    def moving(self) -> bool:
        """The lease is to be renewed: started and not ended."""
        return self.started_ns is not None and self.reason is None

    def lease_until(self, now_ns: int, duration_ns: int) -> int:
        """When the motion lease lapses if it is not renewed: never beyond the episode's budget."""
        until = now_ns + duration_ns
        return until if self.deadline_ns is None else min(until, self.deadline_ns)

    def take_operation(self, kind: str, t_ns: int, cause: str | None) -> dict[str, Any] | None:
        """The body of the OperationRecorded event for a device event, or None when it falls outside go … budget."""
        if self.go_ns is None or self.deadline_ns is None or self.reason is not None:
            return None
        if not self.go_ns <= t_ns <= self.deadline_ns:
            return None
        body = {"op_index": len(self.operations), "result": kind, "t_ns": int(t_ns), "cause": cause}
        self.operations.append(body)
        self.items_done += kind in ("success", "lost")
        return body

    def overdue(self, now_ns: int) -> EndReason | None:
        """Why the episode has to end now by the clock alone, or None."""
        if not self.moving:
            return None
        if self.go_ns is None:
            assert self.started_ns is not None
            return EndReason.CONTROLLER_LOST if now_ns > self.started_ns + GO_PATIENCE_NS else None
        assert self.deadline_ns is not None
        return EndReason.BUDGET if now_ns >= self.deadline_ns + SETTLE_NS else None

    def delivered(self, now_ns: int) -> bool:
        """Everything that can still come has come, or patience has run out."""
        if self.closing_since_ns is None:
            return False
        if now_ns >= self.closing_since_ns + CLOSE_PATIENCE_NS:
            return True
        waiting = [name for name in self.cameras if name not in self.videos and name not in self.lost]
        return self.closed is not None and not waiting

    def next_due(self, now_ns: int) -> int | None:
        """When this episode needs to be looked at by the clock."""
        if self.reason is not None:
            return None if self.closing_since_ns is None or self.sealed else self.closing_since_ns + CLOSE_PATIENCE_NS
        if self.started_ns is None:
            return self.start_due_ns if now_ns < self.start_due_ns else None
        if self.deadline_ns is None:
            return self.started_ns + GO_PATIENCE_NS + 1
        return self.deadline_ns + SETTLE_NS


def proposal(operations: Sequence[Mapping[str, Any]], items: int) -> dict[str, Any]:
    """What device events say happened, as bodies of OperationRecorded: the outcome an assessor confirms or corrects."""
    moved = sum(operation["result"] == "success" for operation in operations)
    lost = sum(operation["result"] == "lost" for operation in operations)
    return {"items_staged": items, "moved": moved, "lost": lost, "remaining": items - moved - lost}


def recording_body(
    streams: Mapping[str, Mapping[str, Any]],
    private: Sequence[str],
    videos: Mapping[str, Mapping[str, Any]],
    gaps: int,
    seal: Callable[[Any], str],
) -> dict[str, Any]:
    """The body of RecordingSealed. How much there is of arm-dependent streams tells a rate: it is there as a digest."""
    shown = {name: entry for name, entry in streams.items() if name not in private}
    hidden = {name: entry for name, entry in streams.items() if name in private}
    return {
        "streams": shown,
        "root": digest({name: entry["root"] for name, entry in shown.items()}),
        "sealed": seal(hidden),
        "videos": dict(videos),
        "gaps": gaps,
    }


def steady_rates(cell: Cell) -> dict[str, float]:
    """Samples per second of the streams that have a steady rate."""
    return {"arm/state": cell.robot.state_hz} | {f"camera/{camera.name}": camera.rate_hz for camera in cell.camera}


def recording_gaps(
    streams: Mapping[str, Mapping[str, Any]], rates: Mapping[str, float], end_ns: int
) -> list[dict[str, Any]]:
    """Gaps at the end of streams whose last sample lies before the end of the episode by more than three periods and
    0.25 s.

    streams: as `TraceStore.seal`; rates: samples per second of the streams that have a steady rate.
    """
    gaps = []
    for name, rate in sorted(rates.items()):
        last = streams.get(name, {}).get("t1_ns")
        allowed = max(3 * SECOND / rate, 0.25 * SECOND)
        if last is None:
            gaps.append({"stream": name, "from_ns": None, "to_ns": end_ns, "lost": None, "why": "nothing recorded"})
        elif end_ns - last > allowed:
            lost = round((end_ns - last) / SECOND * rate)
            gaps.append(
                {"stream": name, "from_ns": last, "to_ns": end_ns, "lost": lost, "why": "the open second was lost"}
            )
    return gaps
