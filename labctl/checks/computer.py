"""What this computer has and what is too slow in it: one check each, in words, with the remedy. No cell is asked for.

May not: change a setting.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import os
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labctl.analysis.survival.kernel_build import cache_folder, compiler_here, library
from labctl.checks.usage_reports import reporting
from labctl.clock import MILLISECOND, Clock, MonotonicClock
from labctl.errors import how_to_install
from labctl.user_cache import user_cache

CORE = (
    *("click", "jinja2", "markupsafe", "numpy", "pydantic", "pydantic-core"),
    *("pyzmq", "rich", "scipy", "sqlalchemy", "sqlmodel"),
)
# extra -> (module to look for, what it is for)
EXTRAS = {
    "lab": ("av", "campaigns: video, pictures, the console"),
    "report": ("matplotlib", "figures"),
    "rerun": ("rerun", "`labctl show` and Rerun exports"),
    "parquet": ("pyarrow", "Parquet tables"),
    "postgres": ("psycopg", "a copy of records on the lab's PostgreSQL server"),
    "media": ("s3fs", "videos in a media store: a folder elsewhere, or a bucket"),
    "cluster": ("distributed", "exports on the workers of a Dask cluster"),
    "franka": ("franky", "Franka robots"),
    "ur": ("rtde_control", "Universal Robots"),
    "robotiq": ("pymodbus", "Robotiq grippers on a serial line"),
    "realsense": ("pyrealsense2", "RealSense cameras"),
    "cameras": ("cv2", "USB and network cameras"),
    "sensors": ("serial", "scales on a serial line"),
    "scene": ("skimage", "match scores of a staged scene against its reference"),
    "mcap": ("mcap", "MCAP exports"),
    "ros2": ("rosbags", "bags of ROS 2"),
    "xlsx": ("openpyxl", "tables for spreadsheets"),
    "timestamps": ("rfc3161_client", "timestamps of heads"),
    "teleop": ("pygame", "gamepads, spacemice and leader arms for teleoperation"),
    "web": ("textual_serve", "the console and the review in a browser"),
    "policy": ("websockets", "policies behind openpi, RoboArena and GR00T servers"),
}
# An event is committed before its act, so a slow disk makes every act slow. Measured commits: 4 ms median on an SSD.
SLOW_FSYNC_MS = 50.0
SYNCS = 20
LEAST_FREE_GB = 1.0  # where no cell says how much it asks for
FREE_DISK = "free disk"
# A 1 kHz loop needs priority over the desktop; 99 is what Franka's and UR's set-up pages ask for.
REALTIME_PRIORITY = 99
AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `remedy` is what to do about it; empty when there is nothing to do."""

    name: str
    level: Level
    text: str
    remedy: str = ""


def runnable(checks: Iterable[Check]) -> bool:
    """Could a cell run here? Warnings do not stop one, a failed check does."""
    return all(check.level != "fail" for check in checks)


def software(folder: Path, clock: Clock | None = None, *, free: bool = True) -> list[Check]:
    """The checks that need no cell: Python, packages, extras, the disk under `folder`, the clock, realtime limits.
    free: also how much of the disk is free, which a cell has its own number for.
    """
    clock = clock or MonotonicClock()
    return [
        check_python(sys.version_info[:3]),
        *check_core(),
        *check_extras(),
        check_compiler(),
        check_usage_reports(),
        *([check_free_disk(folder, LEAST_FREE_GB, "a cell asks for")] if free else []),
        check_fsync(folder, clock),
        check_clock(clock),
        check_realtime(*resource.getrlimit(resource.RLIMIT_RTPRIO), root=os.geteuid() == 0),
        *check_sessions(AUTOGROUPS),
    ]


def check_usage_reports(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Check:
    """Which dependency tells its makers how it is used: none that labctl starts, unless the lab turned it on."""

    def installed(module: str) -> bool:
        return importlib.util.find_spec(module) is not None

    on, text = reporting(installed, os.environ if environment is None else environment, home or Path.home())
    if on:
        return Check("usage reports", "warn", f"on, as this lab has it: {', '.join(on)}", "unset that to turn it off")
    return Check("usage reports", "ok", text)


def check_python(version: tuple[int, ...]) -> Check:
    """Python 3.11 or newer."""
    text = ".".join(map(str, version))
    if version < (3, 11):
        return Check("python", "fail", f"{text} is too old", "install Python 3.11 or newer")
    return Check("python", "ok", text)


def check_core() -> list[Check]:
    """The packages labctl cannot do without, as one line, or one failure for each that is missing."""
    found, missing = [], []
    for name in CORE:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(Check(f"package {name}", "fail", "not installed", f"pip install {name}"))
    return missing or [Check("packages", "ok", ", ".join(found))]


def check_extras(extras: Mapping[str, tuple[str, str]] | None = None) -> list[Check]:
    """What is installed beyond the core. Every cell needs `lab`; what else one needs it says itself."""
    checks = []
    for extra, (module, purpose) in (EXTRAS if extras is None else extras).items():
        if importlib.util.find_spec(module) is not None:
            checks.append(Check(f"extra {extra}", "ok", f"installed: {purpose}"))
        else:
            level: Level = "fail" if extra == "lab" else "ok"
            checks.append(Check(f"extra {extra}", level, f"not installed: {purpose}", how_to_install(extra)))
    return checks


def check_compiler() -> Check:
    """Which kernel the statistics run: the fast one, made now where it is not kept, or one that any computer has."""
    name, slow = "C compiler", "`labctl analyze` and reports take some ten times as long"
    found = compiler_here()
    if found is None:
        return Check(name, "ok", f"not found: {slow}", "install one, such as the package gcc")
    try:
        library("uint8_t")
    except (ImportError, OSError) as error:
        remedy = "install one with the C library's headers, such as the packages gcc and libc6-dev"
        return Check(name, "ok", f"{found}: {error}: {slow}", remedy)
    if (kept := cache_folder()) == user_cache():
        return Check(name, "ok", f"{found}: made the statistics' fast kernel, kept in {kept}")
    text = f"{found}: makes the statistics' fast kernel, anew in each process: {user_cache()} is not this user's alone"
    return Check(name, "ok", text, f"chmod 700 {user_cache()}, if nobody else has a use for it")


def check_free_disk(folder: Path, min_free_gb: float, asked: str = "the cell asks for") -> Check:
    """Free disk under `folder` against the least the cell allows, in gigabytes (1e9 bytes)."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    text = f"{free_gb:.1f} GB free under {folder}"
    if free_gb < min_free_gb:
        return Check(FREE_DISK, "fail", f"{text}, {asked} {min_free_gb:g}", "free some disk")
    return Check(FREE_DISK, "ok", text)


def check_fsync(folder: Path, clock: Clock) -> Check:
    """How long a small write takes to be safely on the disk under `folder`: median and worst of a few."""
    took_ms = []
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(SYNCS):
                before = clock.now_ns()
                file.write(b"\0" * 4096)
                file.flush()
                os.fsync(file.fileno())
                took_ms.append((clock.now_ns() - before) / MILLISECOND)
    except OSError as error:
        return Check("disk", "fail", f"{folder} cannot be written ({error.strerror})", "check its owner and free space")
    median, worst = statistics.median(took_ms), max(took_ms)
    text = f"4 kB safely on disk in {median:.1f} ms (median of {SYNCS}), {worst:.1f} ms at worst"
    if median > SLOW_FSYNC_MS:
        return Check("disk", "warn", text, "every act waits for this; put the lab folder on a local SSD")
    return Check("disk", "ok", text)


def check_clock(clock: Clock) -> Check:
    """Does the clock never go back, and how fine are its steps?"""
    readings = [clock.now_ns() for _ in range(2000)]
    steps = [b - a for a, b in itertools.pairwise(readings)]
    if min(steps) < 0:
        return Check("clock", "fail", f"went back by {-min(steps)} ns", "this host's monotonic clock is broken")
    finest = min((step for step in steps if step > 0), default=0)
    if not 0 < finest <= MILLISECOND:
        return Check("clock", "warn", "its steps are coarser than a millisecond", "use a host with a TSC or HPET clock")
    return Check("clock", "ok", f"never goes back, steps of {finest} ns and more, boot {clock.boot[:8]}")


def check_realtime(limit: int, hard: int, *, root: bool) -> Check:
    """May this user ask for realtime priority (`ulimit -r`)? Simulated cells do not need it. limit: the soft one, which
    counts; hard: to which it could be raised.
    """
    if root:
        return Check("realtime", "ok", "any priority allowed: root")
    if limit == resource.RLIM_INFINITY or limit >= REALTIME_PRIORITY:
        return Check("realtime", "ok", f"priority up to {'any' if limit == resource.RLIM_INFINITY else limit} allowed")
    text = f"priority limit is {limit}; a real robot's 1 kHz loop may lose time to other programs"
    if hard == resource.RLIM_INFINITY or hard >= REALTIME_PRIORITY:
        allowed = "the hard limit allows more, and the soft one counts"
        remedy = f"ulimit -r {REALTIME_PRIORITY} before labctl; for good '-' in place of 'hard' in limits.conf"
        return Check(
            "realtime", "warn", f"{text}; {allowed}", f"{remedy}, or LimitRTPRIO={REALTIME_PRIORITY} of a service"
        )
    remedy = f"add '@realtime - rtprio {REALTIME_PRIORITY}' to /etc/security/limits.conf and yourself to that group"
    return Check("realtime", "warn", text, remedy)


def check_sessions(autogroups: Path) -> list[Check]:
    """Does niceness put a run before another session's work? Nothing to say where it does, or no kernel says."""
    if not autogroups.exists() or autogroups.read_text().strip() != "1":
        return []
    text = "each (a terminal, a service) has the same share of the cores, whatever its niceness (sched(7), autogroups)"
    remedy = "other work beside a real robot: as root, sysctl kernel.sched_autogroup_enabled=0; see docs/limits.md"
    return [Check("sessions", "ok", text, remedy)]
