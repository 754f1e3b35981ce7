"""A whole cell in real time: two cameras of 640 x 480 at 30 Hz and an emulated FR3 at 1 kHz. What is lost, and what
labctl takes of the machine, as time goes on; printed, not judged. Emulator and frame source are not counted.

    LABCTL_BENCH_MINUTES=10 python -m pytest -m benchmark -s tests/benchmarks/bench_recording.py

One episode, or as many of LABCTL_BENCH_EPISODE_MINUTES one after another; the next follows one that the machine ended.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from harness.taken import stolen_s
from support.cameras import barcode
from support.cameras.mjpeg_farm import PICTURES, farm
from support.machine.machine_load import Neighbours
from support.robots.emulators import Emulator
from support.runs.campaigns import make_campaign, policy
from support.runs.live_campaign import CLOCK, children, of_kind, running, wait_for

from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.recorded.skew import clock_line
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign
from labctl.store.video import read_frames

MINUTES = float(os.environ.get("LABCTL_BENCH_MINUTES", "0.5"))
EPISODE = float(os.environ.get("LABCTL_BENCH_EPISODE_MINUTES", MINUTES))
ITEMS = 30
LOOK_S = 10.0
SIZE = {"width": 640, "height": 480, "rate_hz": 30.0}
AT_REST = 1e-3  # rad/s
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

pytestmark = [pytest.mark.benchmark, pytest.mark.limit(round(180 * MINUTES + 900))]


@dataclass
class Node:
    """A process by its name, over its restarts: CPU seconds, and own memory as it was looked at (s since go, MB)."""

    cpu_s: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)
    _pid: int = 0
    _before_s: float = 0.0

    def look(self, pid: int, at_s: float) -> None:
        """Raises FileNotFoundError for one that has ended."""
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now_s = sum(int(value) for value in fields[11:15]) * TICK_S  # with those of its children that have ended
        self.cpu_s += now_s - self._before_s if pid == self._pid else 0.0
        self._pid, self._before_s = pid, now_s
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        kb = sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
        self.memory.append((at_s, kb * 1024 / 1e6))


def look_at(nodes: dict[str, Node], run: int, at_s: float) -> None:
    """The run and its processes as they are now."""
    for name, pid in {"run": run, **children(run)}.items():
        with suppress(FileNotFoundError):  # it has just ended
            nodes.setdefault(name, Node()).look(pid, at_s)


def test_two_cameras_and_a_kilohertz_arm(tmp_path: Path) -> None:
    with farm(2, int(SIZE["width"]), int(SIZE["height"]), SIZE["rate_hz"]) as source:
        emulator = Emulator("fr3", "ahead=true")
        try:
            record(tmp_path, source.urls, source.pid, emulator)
        finally:
            emulator.end()


def record(tmp_path: Path, urls: list[str], source: int, emulator: Emulator) -> None:
    old = 'driver = "sim_camera"\nwidth = 320\nheight = 240\nrate_hz = 10.0\n'
    new = 'driver = "opencv_camera"\nwidth = 640\nheight = 480\nrate_hz = 30.0\n'
    views = [f'view = "{name}"' for name in ("over_shoulder", "wrist")]
    changes = {old: new, "127.0.0.2": emulator.host}
    changes |= {view: f'source = "{url}"' for view, url in zip(views, urls, strict=True)}
    folder = make_campaign(
        tmp_path,
        [policy(name, skill="clumsy") for name in ("policy-a", "policy-b")],
        base="emulated_fr3",
        cell=changes,
        cameras=True,
        durable=True,
        live=True,
        items=ITEMS,
        budget=60 * EPISODE / ITEMS,
        blocks=math.ceil(MINUTES / EPISODE),
        arming=5.0,
        faults=True,
    ).folder
    log, nodes = tmp_path / "run.log", dict[str, Node]()
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO), SECOND)
        assert isinstance(went, list)
        go_ns: int = went[0].body["go_ns"]
        last_ns = go_ns + round((60 * MINUTES - 2) * SECOND)
        stolen, loads, seconds, began_ns = sum(stolen_s()), [], 0.0, CLOCK.now_ns()
        others = Neighbours([emulator.process.pid, source, run.pid])
        while (now_ns := CLOCK.now_ns()) < last_ns and run.poll() is None:
            if EPISODE == MINUTES and of_kind(folder, Kind.EPISODE_ENDED):
                break
            look_at(nodes, run.pid, (now_ns - go_ns) / SECOND)
            loads.append(os.getloadavg()[0])
            seconds, busy = (CLOCK.now_ns() - began_ns) / SECOND, others.cores()
            CLOCK.sleep_until(min(last_ns, now_ns + round(LOOK_S * SECOND)))
        run.terminate()
        run.wait(timeout=600)
    print("\n" + log.read_text())
    taken = sum(stolen_s()) - stolen
    ours = sum(node.cpu_s for name, node in nodes.items() if name != "run") / seconds
    print(f"the host of this machine took {taken:.1f} s of its {os.cpu_count()} cores' time")
    print(f"{seconds:.0f} s; others used {busy - ours:.2f} cores, load {min(loads):.0f} to {max(loads):.0f}")
    for name, node in sorted(nodes.items()):
        at = [node.memory[round(share * (len(node.memory) - 1))][1] for share in (0, 0.25, 0.5, 0.75, 1)]
        seen = ", ".join(f"{mb:.0f}" for mb in at)
        most = max(mb for _, mb in node.memory)
        print(f"  {name:<22} {node.cpu_s / seconds:.3f} cores; memory of its own, MB: {seen}; {most:.0f} at most")
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix == ".db"):
        print(f"  {path.relative_to(folder)}: {path.stat().st_size / 1e6:.1f} MB")
    for sealed in of_kind(folder, Kind.RECORDING_SEALED):
        look(folder, emulator, sealed)
    verified = verify_campaign(folder)
    print(f"  verify: {[str(problem) for problem in verified.problems] or 'holds'}; {verified.counts}")
    if os.environ.get("LABCTL_BENCH_FRAMES", "1") == "1":
        for sealed in of_kind(folder, Kind.RECORDING_SEALED):
            look_at_frames(folder, sealed)


def look(folder: Path, emulator: Emulator, sealed: Event) -> None:
    """What is in the record of an episode, against what was sent."""
    (ended,) = [event for event in of_kind(folder, Kind.EPISODE_ENDED) if event.episode == sealed.episode]
    gaps = [event.body for event in of_kind(folder, Kind.GAP) if event.episode == sealed.episode]
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    columns = next(spec for spec in store.streams(sealed.episode or "") if spec.name == "arm/state").columns
    t_ns, states = store.read(sealed.episode or "", "arm/state")
    device_ms = np.round(1e3 * states[:, columns.index("device_s")])
    unsent = np.round(1e3 * np.array(emulator.stats().get("unsent_s", [])))
    between = (unsent > device_ms[0]) & (unsent < device_ms[-1])
    lost = device_ms[-1] - device_ms[0] + 1 - len(np.unique(device_ms)) - between.sum()
    speed = np.abs(states[:, [name.startswith("dq.") for name in columns]]).max(axis=1)
    holes = np.flatnonzero(np.diff(device_ms) > 1)
    moving = int((np.diff(device_ms)[holes] - 1)[np.maximum(speed[holes], speed[holes + 1]) > AT_REST].sum())
    why = {str(gap["why"]) for gap in gaps}
    frames = sum(gap["lost"] or 0 for gap in gaps)
    minutes = (t_ns[-1] - t_ns[0]) / SECOND / 60
    print(f"{sealed.episode}, {minutes:.1f} min, ended by {ended.body['reason']}; {len(gaps)} gaps of {frames} {why}")
    never = f"{between.sum()} never sent by a late emulator"
    print(f"  arm/state: {len(device_ms)} states, {lost:.0f} lost, {moving} of them in motion ({never})")
    apart = np.diff(t_ns) / 1e6
    late = ", ".join(f"{(apart > ms).sum()} over {ms} ms" for ms in (2, 10, 100))
    print(f"  host's times of states: {np.median(apart):.2f} ms apart, {apart.max():.0f} at most; {late}")
    host_s, device_s = (t_ns - t_ns[0]) / SECOND, (device_ms - device_ms[0]) / 1e3
    apart_ms = 1e3 * float(np.median((host_s - device_s)[-1000:]))
    print(f"  the host's clock is {apart_ms:+.1f} ms before the device's after {minutes:.1f} min")
    for name, video in sealed.body["videos"].items():
        rows = store.read(sealed.episode or "", f"camera/{name}")[1]
        size = (folder / video["file"]).stat().st_size / 1e6
        late = np.diff(rows[:, 2]) / 1e6
        print(f"  {name}: {len(rows)} rows, {size:.1f} MB; {np.median(late):.1f} ms apart, {late.max():.0f} at most")
    for stream, fit in sealed.body["clocks"].items():
        print(f"  {clock_line(stream, fit)}; {fit.get('missing', 'an unknown number')} missing by its own clock")
    store.close()


def look_at_frames(folder: Path, sealed: Event) -> None:
    """The pictures of an episode by the numbers that are drawn in them: as long as two minutes for ten of recording."""
    for name, video in sealed.body["videos"].items():
        marks = [barcode.read(image) for _, image in read_frames(folder / video["file"])]
        numbers = np.array([-1 if mark is None else mark.number for mark in marks])
        missing = int(((np.diff(numbers) - 1) % PICTURES).sum())
        unread = int((numbers < 0).sum())
        print(f"  {sealed.episode} {name}: {len(marks)} frames, {missing} lost, {unread} unreadable")
