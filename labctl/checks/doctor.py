"""What this machine has, what answers, what is too slow: one check each, in words, with the remedy.

May not: move a robot, change a setting, or import a driver except by the name in a cell file.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import os
import resource
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from labctl.analysis.survival.kernel_build import compiler_here
from labctl.checks import contradictions
from labctl.checks.encoding_cost import MOST_CORES, Measure, MeasureDepth, best_affordable, measure_cost, measure_depth
from labctl.checks.probing import Probed, probe, probe_hand, probe_sensor
from labctl.checks.usage_reports import reporting
from labctl.clock import MILLISECOND, Clock, MonotonicClock
from labctl.config.cell_schema import Cell, Setup, Video
from labctl.config.options import Contradiction
from labctl.errors import LabctlError, how_to_install
from labctl.runtime.hosting.cell_nodes import NodeSpec, build_node, camera_names, lacks_terminal, stand_in
from labctl.store.driver_options import check_cell_options, records_depth
from labctl.store.lab_folder import read_cell

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
LEAST_FREE_GB = 1.0  # for any campaign; a cell may ask for more
FEWEST_VALUES = 0.8  # of a sensor, within a second
FEWEST_STATES = 0.95  # of what the cell asks for: fewer is a warning
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


def software(folder: Path, clock: Clock | None = None) -> list[Check]:
    """The checks that need no cell: Python, packages, extras, the disk under `folder`, the clock, realtime limits."""
    clock = clock or MonotonicClock()
    return [
        check_python(sys.version_info[:3]),
        *check_core(),
        *check_extras(),
        check_compiler(),
        check_usage_reports(),
        check_free_disk(folder, LEAST_FREE_GB),
        check_fsync(folder, clock),
        check_clock(clock),
        check_realtime(resource.getrlimit(resource.RLIMIT_RTPRIO)[1], root=os.geteuid() == 0),
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
    """Is there a C compiler, with which the statistics make their fast kernel at the first analysis?"""
    found = compiler_here()
    if found is None:
        text = "not found: `labctl analyze` and reports take some ten times as long"
        return Check("C compiler", "ok", text, "install one, such as the package gcc")
    return Check("C compiler", "ok", f"{found}: makes the statistics' fast kernel at the first analysis")


def check_free_disk(folder: Path, min_free_gb: float) -> Check:
    """Free disk under `folder` against the least the cell allows, in gigabytes (1e9 bytes)."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    text = f"{free_gb:.1f} GB free under {folder}"
    if free_gb < min_free_gb:
        return Check("free disk", "fail", f"{text}, the cell asks for {min_free_gb:g}", "free some disk")
    return Check("free disk", "ok", text)


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


def check_realtime(limit: int, *, root: bool) -> Check:
    """May this user ask for realtime priority (`ulimit -r`)? Simulated cells do not need it."""
    if root:
        return Check("realtime", "ok", "any priority allowed: root")
    if limit == resource.RLIM_INFINITY or limit >= REALTIME_PRIORITY:
        return Check("realtime", "ok", f"priority up to {'any' if limit == resource.RLIM_INFINITY else limit} allowed")
    return Check(
        "realtime",
        "warn",
        f"priority limit is {limit}; a real robot's 1 kHz loop may lose time to other programs",
        f"add '@realtime - rtprio {REALTIME_PRIORITY}' to /etc/security/limits.conf and yourself to that group",
    )


def check_sessions(autogroups: Path) -> list[Check]:
    """Does niceness put a run before another session's work? Nothing to say where it does, or no kernel says."""
    if not autogroups.exists() or autogroups.read_text().strip() != "1":
        return []
    text = "each (a terminal, a service) has the same share of the cores, whatever its niceness (sched(7), autogroups)"
    remedy = "other work beside a real robot: as root, sysctl kernel.sched_autogroup_enabled=0; see docs/limits.md"
    return [Check("sessions", "ok", text, remedy)]


def check_cell(path: Path, folder: Path) -> list[Check]:
    """The checks of one cell file: it parses, it does not contradict itself, its disk is free enough, its drivers
    load, its teleoperation device can be read. Nothing moves.
    """
    try:
        cell = read_cell(path)
        check_cell_options(cell)
    except LabctlError as error:
        return [Check("cell", "fail", str(error), "correct the cell file")]
    checks = [Check("cell", "ok", f"{path}: {cell.cell.name}, kind {cell.cell.kind}, clock {cell.cell.clock}")]
    checks += contradicting(contradictions.of_cell(cell))
    if cell.storage.min_free_gb > LEAST_FREE_GB:
        checks.append(check_free_disk(folder, cell.storage.min_free_gb))
    checks += check_drivers(cell, folder)
    for name, side in _robots(cell):
        checks += _of(name, [*check_capture(side), *check_teleop(side)])
    return checks + check_encoders(cell)


def contradicting(found: Iterable[Contradiction]) -> list[Check]:
    """Keys that do not go together, each pair as one warning."""
    return [Check(one.about, "warn", one.text, one.remedy) for one in found]


def check_drivers(cell: Cell, folder: Path) -> list[Check]:
    """Do the drivers that a cell names load with its options, and does a real or emulated robot answer?"""
    checks = loaded_drivers(cell, folder)
    if cell.cell.kind in ("real", "emulated") and checks[0].level == "ok":
        checks[:1] = [check for name, side in _robots(cell) for check in _of(name, _answers(_setup(side)))]
        checks += check_sensors(_setup(cell))
    return checks


def _setup(cell: Cell) -> Setup:
    return Setup(cell=cell, fixture=stand_in())


def _robots(cell: Cell) -> list[tuple[str, Cell]]:
    """The cell as each of its robots has it, by what a check of it is named after: "" where there is one."""
    return list(zip(cell.names, cell.sides, strict=True))


def _of(name: str, checks: Sequence[Check]) -> list[Check]:
    """Checks of one of two robots, which say whose they are."""
    return [replace(check, name=f"{name}: {check.name}") if name else check for check in checks]


def check_sensors(setup: Setup) -> list[Check]:
    """Does each sensor give values, as many as the cell asks for? One that is made of the robot's own is not asked."""
    checks: list[Check] = []
    for number, table in enumerate(setup.cell.sensor):
        found, name = probe_sensor(setup, number), f"sensor {table.name}"
        if "problem" in found:
            checks.append(Check(name, "fail" if table.required else "warn", found["problem"], found.get("remedy", "")))
        elif (rate_hz := found.get("values")) is not None:
            text = f"{rate_hz:.0f} values in a second, {table.rate_hz:g} asked for"
            few = rate_hz < FEWEST_VALUES * table.rate_hz
            checks.append(Check(name, "warn" if few else "ok", text, "lower its rate_hz" if few else ""))
    return checks


def loaded_drivers(cell: Cell, folder: Path) -> list[Check]:
    """Do the drivers that a cell names load with its options? The robot's first. Nothing is connected."""
    spec = NodeSpec(cell=cell, fixture=stand_in(), folder=folder)
    names = ["arm", *camera_names(cell), *(sensor.node for sensor in cell.sensor)]
    if cell.cell.operator != "console":
        names.append("operator")
    return [_loads(name, spec) for name in names]


def check_capture(cell: Cell) -> list[Check]:
    """May this user take an FR3's states from the network? Nothing for a cell that has none, or wants no such thing."""
    given, driver = cell.robot.options, cell.robot.driver
    if driver == "emulated":
        driver, inside = given.get("driver"), given.get("driver_options")
        given = inside if isinstance(inside, dict) else {}
    if driver != "franka" or given.get("states") == "client":
        return []
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).close()
    except OSError:
        text = "an FR3 at rest may lose states: raw sockets are not allowed here (CAP_NET_RAW"
        text += ", which this root lacks)" if os.geteuid() == 0 else "; this user is not root)"
        return [Check("states", "warn", text, 'see docs/hardware.md, or say states = "client" in robot.options')]
    text = "raw sockets are allowed, to take an FR3's states from the network; if that fails, check robot says so"
    return [Check("states", "ok", text)]


def check_teleop(cell: Cell) -> list[Check]:
    """Is the device of [teleop] there, and can it be read? Nothing for a cell without one."""
    if cell.teleop is None:
        return []
    if lacks_terminal(cell):
        text = "keyboard: labctl teleop reads its own terminal; a run is told a second one"
        return [Check("teleop", "ok", text, "labctl run CAMPAIGN --hand-terminal /dev/pts/N")]
    found = probe_hand(_setup(cell))
    if "problem" in found:
        return [Check("teleop", "fail", f"{cell.teleop.device}: {found['problem']}", found.get("remedy", ""))]
    now = f"it would now wait: {waits}" if (waits := found.get("waits")) else "its clutch is held"
    return [Check("teleop", "ok", f"{cell.teleop.device} is there and can be read; {now}; nothing was moved")]


def _answers(setup: Setup) -> list[Check]:
    """Does the robot answer, and what is to be known of the connection?"""
    found = probe(setup)
    about = [Check("robot", "warn", note, "see docs/hardware.md, wiring and network") for note in found["notes"]]
    return [_answered(setup, found), *about]


def _answered(setup: Setup, found: Probed) -> Check:
    """Is the robot ready, and does it send as many states as the cell asks for?"""
    if found["mode"] == "lost":
        return Check("robot", "fail", f"does not answer: {found['reason']}", "then run doctor again")
    if found["mode"] in ("safety_stop", "fault"):
        return Check(
            "robot", "warn", found["reason"], "a run asks an operator to acknowledge this before anything moves"
        )
    wanted = setup.cell.robot.state_hz
    text = f"connected and {found['mode']}; {found['states']:.0f} states in a second, {wanted:g} asked for"
    if found["states"] < FEWEST_STATES * wanted:
        return Check("robot", "warn", text, "this machine or the network is too slow for this state_hz")
    return Check("robot", "ok", f"{text}; nothing was moved")


def _loads(node: str, spec: NodeSpec) -> Check:
    name = "robot" if node == "arm" else node  # as journals spell it
    try:
        build_node(node, spec)
    except LabctlError as error:
        return Check(name, "fail", str(error), "correct the cell file, or install what it needs")
    return Check(name, "ok", "its driver loads (not connected: nothing moves)")


def check_encoders(cell: Cell, measure: Measure = measure_cost, depth: MeasureDepth = measure_depth) -> list[Check]:
    """What encoding each camera's video and depth take on this machine, and the best setting that it affords."""
    checks: list[Check] = []
    known: dict[str, Check] = {}
    for camera in cell.camera:
        video, size = cell.video_of(camera), (camera.width, camera.height, camera.rate_hz)
        key = repr((video, size))
        if key not in known:
            known[key] = _encoder(video, size, measure)
        found = known[key]
        checks.append(Check(f"video {camera.name}", found.level, found.text, found.remedy))
        if records_depth(camera):
            checks.append(_depth_encoder(camera.name, size, depth))
    return checks


def _depth_encoder(name: str, size: tuple[int, int, float], measure: MeasureDepth) -> Check:
    width, height, rate_hz = size
    cost = measure(*size)
    text = f"ffv1, without loss, at {width} x {height}, {rate_hz:g} Hz: {cost}"
    if cost.affordable(rate_hz):
        return Check(f"depth {name}", "ok", text)
    remedy = f"lower rate_hz, or depth = false in its options; depth should take {MOST_CORES:g} cores at most"
    return Check(f"depth {name}", "warn", text, remedy)


def _encoder(video: Video, size: tuple[int, int, float], measure: Measure) -> Check:
    width, height, rate_hz = size
    what = f"{video.codec} {video.preset} crf {video.crf} at {width} x {height}, {rate_hz:g} Hz"
    try:
        cost = measure(video, *size)
        best = best_affordable(video, *size, measure)
    except LabctlError as error:
        return Check("video", "fail", str(error), "correct [video] of the cell file, or [camera.video]")
    text = f"{what}: {cost}"
    if cost.affordable(rate_hz):
        if best is not None and best[0].preset != video.preset:
            text += f'; preset = "{best[0].preset}" would be affordable too: {best[1]}'
        return Check("video", "ok", text)
    if best is None:
        remedy = f"lower rate_hz or the size; one camera should take {MOST_CORES:g} cores at most"
        return Check("video", "warn", text, remedy)
    return Check("video", "warn", text, f'preset = "{best[0].preset}" in [video]: {best[1]}')
