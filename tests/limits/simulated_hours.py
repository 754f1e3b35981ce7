"""A campaign of many hours under the manual clock: what its process holds, what its files grow to, whether times drift.

python -P tests/limits/simulated_hours.py WORK [--hours 12] [--state-hz 100] [--camera-hz 10] [--minutes 10]

The simulated cell as it ships (arm at 100 Hz, two cameras of 320 x 240 at 10 Hz; --camera-hz 0 has none) in one
process, under three policies that take their time; an episode has MINUTES at most. Memory and sizes are read at each
twelfth of HOURS of the manual clock; after HOURS the run is asked to end, as by Ctrl-C. Then every time of the record
is held against the clock. WORK/simulated-hours gets the campaign and is removed (--keep: not).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from support.runs.campaigns import make_campaign, policy

from labctl.bus import Message, Node, Step
from labctl.clock import SECOND, cpu_ns
from labctl.core.events import Event, Kind
from labctl.drivers.sim.camera import CLOCK_DRIFT
from labctl.runtime.campaign_run import run_campaign
from labctl.store.journal import events_of
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

NAME, ITEMS, SHORTEST_S = "simulated-hours", 10, 60.0  # no episode of the bench is shorter
CAMERAS = ("over_shoulder", "wrist")
HOUR_NS = 3600 * SECOND
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)  # of every manual clock


class Watched:
    """A node whose every step tells what time it is."""

    def __init__(self, node: Node, hours: Hours) -> None:
        self._node, self._hours = node, hours

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self._hours.at(now_ns)
        return self._node.step(now_ns, inbox)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


class Hours:
    """What this process holds and what the campaign's files are, at each twelfth of so many hours; then the end."""

    def __init__(self, folder: Path, hours: float) -> None:
        self.folder, self.rows = folder, list[dict[str, float]]()
        self._every_ns, self._last_ns = round(hours * HOUR_NS / 12), round(hours * HOUR_NS)
        self._began_ns: int | None = None
        self._next_ns, self._asked = 0, False
        self._cpu_ns = cpu_ns()

    def at(self, now_ns: int) -> None:
        """A node is stepped now."""
        self._began_ns = now_ns if self._began_ns is None else self._began_ns
        since_ns = now_ns - self._began_ns
        if self._asked or since_ns < self._next_ns:
            return
        self._next_ns += self._every_ns
        self._read(since_ns)
        if since_ns >= self._last_ns:
            self._asked = True
            os.kill(os.getpid(), signal.SIGTERM)

    def _read(self, since_ns: int) -> None:
        pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
        row = {
            "hours": round(since_ns / HOUR_NS, 3),
            "cpu_s": round((cpu_ns() - self._cpu_ns) / SECOND, 1),
            "resident_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1),
            "open_files": len(list(Path("/proc/self/fd").iterdir())),
            "journal_mb": megabytes(self.folder.glob("journal.db*")),
            "traces_mb": megabytes([*self.folder.glob("traces.db*"), *self.folder.glob("seal/traces.db*")]),
            "video_mb": megabytes(self.folder.glob("video/**/*")),
            "load": round(os.getloadavg()[0], 1),
        }
        self.rows.append(row)
        print(json.dumps(row), flush=True)


def megabytes(paths: Iterable[Path]) -> float:
    """What files take, MB."""
    return round(sum(path.stat().st_size for path in paths if path.is_file()) / 1e6, 1)


def off_wall_us(events: Iterable[Event]) -> int:
    """How far the wall time of any entry is from its time on the manual clock, at most, us."""
    off = timedelta()
    for event in events:
        due = BEGAN + timedelta(microseconds=event.at_ns // 1000)
        off = max(off, abs(datetime.fromisoformat(event.wall) - due))
    return off // timedelta(microseconds=1)


def off_clock(folder: Path, period_ns: int, cameras: Sequence[str]) -> dict[str, dict[str, int]]:
    """Of the arm's states and of each camera how many samples there are, and how far any is off, at most: a state from
    a whole number of periods after the first of the campaign, a frame's row from its sample's time (ns), and a
    camera's own time from what its clock must have shown since the first frame of the campaign (us).
    """
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    names = ("arm/state", *(f"camera/{name}" for name in cameras))
    found = {name: {"samples": 0, "off_ns": 0} for name in names}
    first: dict[str, tuple[int, float]] = {}
    for event in events_of(folder):
        for name in names if event.kind == Kind.RECORDING_SEALED else ():
            times, values = store.read(event.episode or "", name)
            one = found[name]
            one["samples"] += len(times)
            zero_ns, zero_us = first.setdefault(name, (int(times[0]), float(values[0, 1])))
            off = (times - zero_ns) % period_ns if name == "arm/state" else np.abs(values[:, 2] - times)
            one["off_ns"] = max(one["off_ns"], int(off.max()))
            if name != "arm/state":
                own_us = zero_us + (times - zero_ns) * (1.0 + CLOCK_DRIFT) / 1e3
                one["off_own_us"] = max(one.get("off_own_us", 0), round(np.abs(values[:, 1] - own_us).max()))
    store.close()
    return found


def measured(lab: Path, hours: float, state_hz: float, camera_hz: float, minutes: float) -> dict[str, Any]:
    """The campaign in `lab`: a row for each twelfth, and what its record says of time."""
    cell = {"state_hz = 100.0": f"state_hz = {state_hz}", "control_hz = 100.0": f"control_hz = {state_hz}"}
    if camera_hz:
        cell["rate_hz = 10.0"] = f"rate_hz = {camera_hz}"
    folder = make_campaign(
        lab,
        [policy(f"policy-{letter}", skill="slow") for letter in "abc"],
        name=NAME,
        blocks=max(1, round(hours * 3600 / SHORTEST_S / 3)),
        items=ITEMS,
        budget=minutes * 60 / ITEMS,
        cameras=bool(camera_hz),
        durable=True,
        cell=cell,
    ).folder
    watch = Hours(folder, hours)
    if run_campaign(folder, print, manual=True, wrap=lambda node: Watched(node, watch)):
        print("the campaign was over before its hours were")
    events = events_of(folder)
    fits = [event.body["clocks"] for event in events if event.kind == Kind.RECORDING_SEALED]
    verified = verify_campaign(folder)
    return {
        "asked": {"hours": hours, "state_hz": state_hz, "camera_hz": camera_hz, "minutes": minutes},
        "rows": watch.rows,
        "episodes": sum(event.kind == Kind.EPISODE_ENDED for event in events),
        "entries": len(events),
        "last_ns": events[-1].at_ns,
        "off_wall_us": off_wall_us(events),
        "streams": off_clock(folder, round(SECOND / state_hz), CAMERAS if camera_hz else ()),
        "drift_ppm": sorted({fit["drift_ppm"] for one in fits for fit in one.values()}),
        "problems": [str(problem) for problem in verified.problems],
    }


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("work", type=Path)
    asked.add_argument("--hours", type=float, default=12.0)
    asked.add_argument("--state-hz", type=float, default=100.0)
    asked.add_argument("--camera-hz", type=float, default=10.0)
    asked.add_argument("--minutes", type=float, default=10.0)
    asked.add_argument("--keep", action="store_true", help="the campaign")
    given = asked.parse_args()
    lab = given.work.resolve() / NAME
    shutil.rmtree(lab, ignore_errors=True)
    found = measured(lab, given.hours, given.state_hz, given.camera_hz, given.minutes)
    print(json.dumps({name: value for name, value in found.items() if name != "rows"}, indent=1))
    if not given.keep:
        shutil.rmtree(lab)
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
