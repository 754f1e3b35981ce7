"""What an entry says of a recording that is sealed: its streams, its videos, and the gaps at their ends. Pure.

May not: read a trace store, or show how much there is of a stream that depends on the arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from labctl.clock import SECOND
from labctl.core.event_bodies import RecordingSealed
from labctl.core.events import digest
from labctl.messages.body_parts import Clock, Detected, GapBody, StreamEntry, VideoEntry

if TYPE_CHECKING:  # whoever reads a journal does not wait for the schemas
    from labctl.config.cell_schema import Cell


def recording_body(
    streams: Mapping[str, StreamEntry],
    private: Sequence[str],
    videos: Mapping[str, VideoEntry],
    gaps: int,
    seal: Callable[[Mapping[str, StreamEntry]], str],
    *,
    clocks: Mapping[str, Clock] | None = None,
    detected: Sequence[Detected] | None = None,
) -> RecordingSealed:
    """The body of RecordingSealed. How much there is of arm-dependent streams tells a rate: it is there as a digest."""
    shown = {name: entry for name, entry in streams.items() if name not in private}
    hidden = {name: entry for name, entry in streams.items() if name in private}
    return {
        "streams": shown,
        "root": digest({name: entry["root"] for name, entry in shown.items()}),
        "sealed": seal(hidden),
        "videos": dict(videos),
        "clocks": {name: fit for name, fit in (clocks or {}).items() if name not in private},
        "gaps": gaps,
        "detected": detected,
    }


def steady_rates(cell: Cell) -> dict[str, float]:
    """Samples per second of the streams that have a steady rate."""
    cameras = {f"camera/{camera.name}": camera.rate_hz for camera in cell.camera}
    rates = {f"{name}/state": of.state_hz for name, of in zip(("arm", *cell.names[1:]), cell.robots, strict=True)}
    drives = ["base/odometry"] if any(axis.kind == "twist" for axis in cell.robot.axis) else []
    return rates | cameras | dict.fromkeys(drives, cell.robot.state_hz) | {s.stream: s.rate_hz for s in cell.sensor}


def recording_gaps(
    streams: Mapping[str, StreamEntry],
    rates: Mapping[str, float],
    end_ns: int,
    *,
    marked: Sequence[GapBody] = (),
    why: Mapping[str, str] | None = None,
) -> list[GapBody]:
    """Gaps at the end of streams whose last sample lies before the end of the episode by more than three periods and
    0.25 s.

    streams: as `TraceStore.seal`; rates: samples per second of the streams that have a steady rate; marked: gaps that
    are reported already, whose time is not reported again; why: what is known of a stream's loss.
    """
    gaps: list[GapBody] = []
    for name, rate in sorted(rates.items()):
        last, reason = streams[name].get("t1_ns") if name in streams else None, (why or {}).get(name)
        ends = [gap["to_ns"] for gap in marked if gap["stream"] == name and gap["to_ns"] is not None]
        allowed = max(3 * SECOND / rate, 0.25 * SECOND)
        if last is None and not ends:
            text = f"nothing recorded: {reason}" if reason else "nothing recorded"
            gaps.append({"stream": name, "from_ns": None, "to_ns": end_ns, "lost": None, "why": text})
            continue
        last = max(ends if last is None else [last, *ends])
        if end_ns - last > allowed:
            lost = round((end_ns - last) / SECOND * rate)
            text = reason or "the open second was lost"
            gaps.append({"stream": name, "from_ns": last, "to_ns": end_ns, "lost": lost, "why": text})
    return gaps
