"""A whole cell in real time: two cameras of 640 x 480 at 30 Hz and an emulated FR3 at 1 kHz. What is lost, and what
labctl takes of the machine; printed, not judged. Emulator and frame source are not counted.

    LABCTL_BENCH_MINUTES=10 python -m pytest -m benchmark -s tests/benchmarks/bench_recording.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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
from labctl.core.events import Kind
from labctl.core.recorded.skew import clock_line
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign
from labctl.store.video import read_frames

MINUTES = float(os.environ.get("LABCTL_BENCH_MINUTES", "0.5"))
ITEMS = 30
SIZE = {"width": 640, "height": 480, "rate_hz": 30.0}
AT_REST = 1e-3  # rad/s
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

pytestmark = [pytest.mark.benchmark, pytest.mark.limit(round(120 * MINUTES + 600))]


def used(pids: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds of processes so far, with those of their children that have ended."""
    found = {}
    for name, pid in pids.items():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found[name] = sum(int(field) for field in fields[11:15]) * TICK_S
    return found


def resident_mb(pids: Mapping[str, int]) -> float:
    """Memory of processes, shared pages counted in each."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids.values()) * 4096 / 1e6


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
        budget=60 * MINUTES / ITEMS,
        arming=5.0,
    ).folder
    log = tmp_path / "run.log"
    with running(folder, log) as run:
        went = wait_for("go", lambda: of_kind(folder, Kind.GO), SECOND)
        assert isinstance(went, list)
        pids = {"run": run.pid, **children(run.pid)}
        others = Neighbours([emulator.process.pid, source, *pids.values()])
        before, began_ns, began_s = used(pids), CLOCK.now_ns(), sum(stolen_s())
        last_ns = went[0].body["go_ns"] + round((60 * MINUTES - 2) * SECOND)
        after, seconds, memory, taken, stolen = before, 1.0, 0.0, 0.0, 0.0
        while CLOCK.now_ns() < last_ns and not of_kind(folder, Kind.EPISODE_ENDED):
            CLOCK.sleep_until(CLOCK.now_ns() + SECOND)
            try:
                after, seconds = used(pids), (CLOCK.now_ns() - began_ns) / SECOND
                memory, taken, stolen = resident_mb(pids), others.cores(), sum(stolen_s()) - began_s
            except FileNotFoundError:  # a process has ended before its time; the log says why
                break
        wait_for("a sealed recording", lambda: of_kind(folder, Kind.RECORDING_SEALED))
        run.terminate()
        run.wait(timeout=60)
    print("\n" + log.read_text())
    print(f"the host of this machine took {stolen:.1f} s of its {os.cpu_count()} cores' time")
    print(f"{seconds:.0f} s; others used {taken:.2f} cores; {memory:.0f} MB resident (shared pages counted in each)")
    shares = {name: (after[name] - before[name]) / seconds for name in pids}
    for name, share in shares.items():
        print(f"  {name:<22} {share:.3f} cores")
    print(f"  {'labctl, all of it':<22} {sum(shares.values()):.3f} cores")
    look(folder, emulator)


def look(folder: Path, emulator: Emulator) -> None:
    """What is in the record, against what was sent."""
    (sealed,) = of_kind(folder, Kind.RECORDING_SEALED)[:1]
    (ended,) = [event for event in of_kind(folder, Kind.EPISODE_ENDED) if event.episode == sealed.episode]
    gaps = [event.body for event in of_kind(folder, Kind.GAP) if event.episode == sealed.episode]
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    columns = next(spec for spec in store.streams(sealed.episode or "") if spec.name == "arm/state").columns
    states = store.read(sealed.episode or "", "arm/state")[1]
    device_ms = np.round(1e3 * states[:, columns.index("device_s")])
    unsent = np.round(1e3 * np.array(emulator.stats().get("unsent_s", [])))
    between = (unsent > device_ms[0]) & (unsent < device_ms[-1])
    lost = device_ms[-1] - device_ms[0] + 1 - len(np.unique(device_ms)) - between.sum()
    speed = np.abs(states[:, [name.startswith("dq.") for name in columns]]).max(axis=1)
    holes = np.flatnonzero(np.diff(device_ms) > 1)
    moving = int((np.diff(device_ms)[holes] - 1)[np.maximum(speed[holes], speed[holes + 1]) > AT_REST].sum())
    print(f"  ended by {ended.body['reason']}; gaps: {gaps or 'none'}")
    never = f"{between.sum()} never sent by a late emulator"
    print(f"  arm/state: {len(device_ms)} states, {lost:.0f} lost, {moving} of them in motion ({never})")
    for name, video in sealed.body["videos"].items():
        rows = store.read(sealed.episode or "", f"camera/{name}")[1]
        marks = [barcode.read(image) for _, image in read_frames(folder / video["file"])]
        numbers = np.array([-1 if mark is None else mark.number for mark in marks])
        missing = int(((np.diff(numbers) - 1) % PICTURES).sum())
        size = (folder / video["file"]).stat().st_size / 1e6
        late = np.diff(rows[:, 2]) / 1e6
        print(
            f"  {name}: {len(marks)} frames, {missing} lost, {int((numbers < 0).sum())} unreadable; {len(rows)} rows; "
            f"{size:.1f} MB; between frames {np.median(late):.1f} ms, {late.max():.0f} at most"
        )
    for stream, fit in sealed.body["clocks"].items():
        print(f"  {clock_line(stream, fit)}; {fit.get('missing', 'an unknown number')} missing by its own clock")
    store.close()
    verified = verify_campaign(folder)
    print(f"  verify: {[str(problem) for problem in verified.problems] or 'holds'}; {verified.counts}")
