"""Time. The only module that reads a clock.

May not: sleep longer than asked, compare clocks of two hosts, or be imported for anything but time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
SUSPENDED_NS = 50 * MILLISECOND  # longer than two readings of clocks are ever apart, shorter than any suspension
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on in suspend, the monotonic one does not


@dataclass(frozen=True, slots=True)
class Anchor:
    """One reading of the monotonic clock beside the wall clock, with the boot it belongs to."""

    mono_ns: int
    wall: str  # ISO 8601, UTC, microseconds
    boot: str


def days_later(wall: str, days: float) -> str:
    """A wall time (ISO 8601) some days after another, in UTC: two of them compare as texts."""
    return (moment(wall) + timedelta(days=days)).isoformat(timespec="microseconds")


class Clock(Protocol):
    """A monotonic clock in integer nanoseconds with a wall-clock anchor."""

    boot: str

    def now_ns(self) -> int: ...
    def anchor(self) -> Anchor: ...
    def sleep_until(self, due_ns: int) -> None: ...
    def suspended_ns(self) -> int: ...


def _boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    try:
        return path.read_text().strip()
    except OSError:
        return "unknown-boot"


class MonotonicClock:
    """CLOCK_MONOTONIC, shared by all processes of one Linux host."""

    def __init__(self) -> None:
        self.boot = _boot_id()

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def anchor(self) -> Anchor:
        return Anchor(time.monotonic_ns(), datetime.now(UTC).isoformat(timespec="microseconds"), self.boot)

    def wall_ahead_ns(self) -> int:
        """The wall clock less this one, from the quickest of a few readings of both."""
        return _ahead_ns(time.time_ns)

    def suspended_ns(self) -> int:
        """For how long this host has been suspended since it booted, to some microseconds: this clock stood still."""
        return _ahead_ns(lambda: time.clock_gettime_ns(_BOOTTIME))

    def sleep_until(self, due_ns: int) -> None:
        left = due_ns - time.monotonic_ns()
        if left > 0:
            time.sleep(left / SECOND)


def _ahead_ns(other: Callable[[], int]) -> int:
    """Another clock less the monotonic one, from the quickest of three readings of both."""
    readings = [(time.monotonic_ns(), other(), time.monotonic_ns()) for _ in range(3)]
    before, there, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return there - (before + after) // 2


class ManualClock:
    """A clock that moves only when it is set. Its wall clock starts at a fixed date, its boot is named as simulated."""

    def __init__(self, start_ns: int = 0, boot: str = "simulated") -> None:
        self._now_ns = start_ns
        self._suspended_ns = 0
        self.boot = boot

    def now_ns(self) -> int:
        return self._now_ns

    def anchor(self) -> Anchor:
        wall = datetime.fromtimestamp(1_767_225_600 + self._now_ns / SECOND, UTC)  # 2026-01-01T00:00:00Z
        return Anchor(self._now_ns, wall.isoformat(timespec="microseconds"), self.boot)

    def sleep_until(self, due_ns: int) -> None:
        self._now_ns = max(self._now_ns, due_ns)

    def suspended_ns(self) -> int:
        return self._suspended_ns

    def suspend(self, ns: int) -> None:
        """The host is suspended for so long: this clock stands still."""
        self._suspended_ns += ns


class Suspensions:
    """Whether the host was suspended since it was last asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known_ns = clock.suspended_ns()

    def new_ns(self) -> int:
        """For how long the host was suspended since the last call, 0 when it was not."""
        now_ns = self._clock.suspended_ns()
        since_ns = now_ns - self._known_ns
        if since_ns < SUSPENDED_NS:
            return 0
        self._known_ns = now_ns
        return since_ns


_ROUGHLY_S = 5.0  # how well the kernel's own time of its boot agrees with those of files


def began(pid: int) -> str | None:
    """When a process of this host began, as a text that is another for every process that ever has its id; None when
    there is none.
    """
    ticks = _began_ticks(pid)
    return None if ticks is None else f"{_boot_id()} {ticks}"


def began_before(pid: int, written_s: float) -> bool:
    """Whether a process of this host may be the one that wrote its id into a file then (s since 1970, as the file's
    time), since it had begun, to some seconds. False when there is none.
    """
    ticks = _began_ticks(pid)
    try:
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, StopIteration):
        return ticks is not None
    since_s = int(booted.split()[1]) + int(ticks or 0) / os.sysconf("SC_CLK_TCK")
    return ticks is not None and since_s <= written_s + _ROUGHLY_S


def _began_ticks(pid: int) -> str | None:
    """Clock ticks from boot to the start of a process; None when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return None


def wall_ns(wall: str) -> int:
    """Nanoseconds since 1970-01-01 UTC of an anchor's wall time, exact to its microseconds. Raises ValueError."""
    since = datetime.fromisoformat(wall) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds * 1000


def wall_of(ns: int) -> str:
    """The reverse of `wall_ns`, to the second."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ns // SECOND)).isoformat()


def moment(wall: str, later_s: int = 0) -> datetime:
    """A wall-clock anchor, so much later, in UTC and as certificates have it."""
    return datetime.fromisoformat(wall).astimezone(UTC) + timedelta(seconds=later_s)


def on_boot_of(known: Anchor, at: Anchor) -> int:
    """When `at` was on the monotonic clock that `known` was read from: between two boots, by the wall clock."""
    if at.boot == known.boot:
        return at.mono_ns
    return known.mono_ns + wall_ns(at.wall) - wall_ns(known.wall)


def cpu_ns() -> int:
    """Process CPU time, for benchmarks and the doctor."""
    return time.process_time_ns()
