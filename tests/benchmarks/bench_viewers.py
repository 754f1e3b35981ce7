"""What a live run notices of those who look on: 0, 1, 10 and 50 consoles attached read-only, 50 of them frozen at once,
50 killed at once. A simulated FR3 at 100 Hz and two cameras; each line is a window of one episode, as ratios to the
window before anybody looked on. Then what one real console and one live view of Rerun take. Printed, not judged.

    LABCTL_BENCH_WINDOW_S=20 python -m pytest -m benchmark -s tests/benchmarks/bench_viewers.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from support.runs.campaigns import make_campaign, policy
from support.runs.live_campaign import CLOCK, children, of_kind, running, wait_for
from support.screens.rerun_files import family
from support.screens.terminal import Terminal
from support.screens.watchers import Watchers

from labctl.bus import encode
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.rollout import LEASES
from labctl.runtime.attach import Attachment
from labctl.store.traces import TraceStore

WINDOW_S = float(os.environ.get("LABCTL_BENCH_WINDOW_S", "20"))
LABCTL = str(Path(sys.executable).with_name("labctl"))
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MOST = 50
STATES = "arm/state"
# Nine windows, and time for processes to start in on a machine that others use.
ITEMS, EPISODE_S = 30, 9 * WINDOW_S + 400

pytestmark = [pytest.mark.benchmark, pytest.mark.limit(round(2 * EPISODE_S + 600))]


def cpu_s(pids: list[int]) -> float:
    """Of processes so far; 0 of one that has ended."""
    spent = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        spent += (int(fields[11]) + int(fields[12])) * TICK_S
    return spent


def own_mb(pid: int) -> float:
    """Memory of a process that no file stands behind; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024 / 1e6


@dataclass
class Window:
    """What was seen of the run's processes between two times; name -> cores, MB."""

    name: str
    start_ns: int = 0
    end_ns: int = 0
    cores: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    each: float = 0.0  # cores for each who looks on
    load: float = 0.0


def main_window(name: str, pids: dict[str, int], lookers: list[int]) -> Window:
    """Wait for a window, and measure it."""
    found = Window(name, start_ns=CLOCK.now_ns())
    before = {node: cpu_s([pid]) for node, pid in pids.items()}
    others = cpu_s(lookers)
    CLOCK.sleep_until(found.start_ns + round(WINDOW_S * SECOND))
    found.end_ns = CLOCK.now_ns()
    seconds = (found.end_ns - found.start_ns) / SECOND
    found.cores = {node: (cpu_s([pid]) - before[node]) / seconds for node, pid in pids.items()}
    found.each = (cpu_s(lookers) - others) / seconds / max(1, len(lookers))
    found.memory = {node: own_mb(pid) for node, pid in pids.items()}
    found.load = os.getloadavg()[0]
    return found


@contextmanager
def looking(folder: Path, number: int) -> Iterator[Watchers]:
    made = Watchers(folder, number)
    try:
        yield made
    finally:
        made.kill()


def traffic(folder: Path) -> None:
    """How much one who looks on is sent."""
    link, sizes = Attachment(folder, read_only=True), {}
    until = CLOCK.now_ns() + 5 * SECOND
    while CLOCK.now_ns() < until:
        for message in link.poll():
            size = sum(map(len, encode(message)))
            sizes.setdefault(message.kind, []).append(size)
        CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 200)
    link.close()
    for kind, found in sizes.items():
        print(f"  {kind}: {len(found) / 5:.1f} a second of {np.mean(found) / 1e3:.1f} kB")


def test_a_run_with_many_who_look_on(tmp_path: Path) -> None:
    campaign = make_campaign(
        tmp_path,
        [policy(name, skill="clumsy") for name in ("policy-a", "policy-b")],
        cameras=True,
        durable=True,
        live=True,
        items=ITEMS,
        budget=EPISODE_S / ITEMS,
        arming=5.0,
    )
    folder, windows = campaign.folder, []
    with running(folder, tmp_path / "run.log") as run:
        wait_for("go", lambda: of_kind(folder, Kind.GO), SECOND)
        pids = {"run": run.pid, **children(run.pid)}
        print("\nsent to each who looks on:")
        traffic(folder)
        windows.append(main_window("nobody", pids, []))
        for number in (1, 10, MOST):
            with looking(folder, number) as watchers:
                windows.append(main_window(f"{number} look on", pids, watchers.pids()))
                if number == MOST:
                    watchers.signal(signal.SIGSTOP)
                    windows += [main_window(f"{number} frozen{again}", pids, []) for again in ("", ", longer")]
                    watchers.kill()
                    windows.append(main_window(f"{number} killed", pids, []))
        windows.append(main_window("nobody, at the end", pids, []))
        print_views(folder, pids)
        if of_kind(folder, Kind.EPISODE_ENDED):
            print("the episode was over before the last window was: what follows is of a part of them")
        run.terminate()
        run.wait(timeout=60)
    look(folder, windows)


def print_views(folder: Path, pids: dict[str, int]) -> None:
    """What one console and one live view take."""
    console = Terminal([LABCTL, "console", str(folder), "--read-only"])
    try:
        CLOCK.sleep_until(CLOCK.now_ns() + 5 * SECOND)
        seen = main_window("one console", pids, [console.child.pid])
        print(f"  a console: {seen.each:.3f} cores, {console.memory_mb():.0f} MB of its own")
    finally:
        console.end()
    words = [LABCTL, "show", "--live", str(folder), "--web"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as view:
        assert view.stdout is not None
        try:
            assert view.stdout.readline().startswith("open http://127.0.0.1:")
            assert view.stdout.readline().startswith("live")
            both = family(view.pid)
            seen = main_window("one live view", pids, both)
            memory = sum(own_mb(pid) for pid in both)
            print(f"  a live view of Rerun with its server: {2 * seen.each:.3f} cores, {memory:.0f} MB")
        finally:
            view.send_signal(signal.SIGINT)


def look(folder: Path, windows: list[Window]) -> None:
    """Each window as ratios to the first."""
    episode = of_kind(folder, Kind.GO)[0].episode or ""
    samples = {}
    for path in (folder / "traces.db", folder / "seal" / "traces.db"):
        store = TraceStore.open(f"sqlite:///{path}", folder.name, readonly=True)
        samples |= {
            spec.name: (spec.rate_hz, *store.read(episode, spec.name))
            for spec in store.streams(episode)
            if spec.name in (STATES, LEASES) or spec.name.startswith("camera/")
        }
        store.close()
    first = windows[0]
    for window in windows:
        shares = {node: window.cores[node] / first.cores[node] for node in first.cores if first.cores[node] > 0}
        print(f"{window.name} ({(window.end_ns - window.start_ns) / SECOND:.0f} s, load {window.load:.1f}):")
        print("  CPU: " + ", ".join(f"{node} {window.cores[node]:.3f} ({x:.2f}x)" for node, x in shares.items()))
        grown = {node: window.memory[node] - first.memory[node] for node in first.memory}
        print("  MB more: " + ", ".join(f"{node} {mb:+.1f}" for node, mb in grown.items()))
        if window.each:
            print(f"  each of them {window.each:.3f} cores")
        for name, (rate_hz, t_ns, values) in samples.items():
            inside = (t_ns >= window.start_ns) & (t_ns < window.end_ns)
            if not inside.any():
                continue
            if name == LEASES:
                apart = values[inside][:, 0]
                print(f"  leases: {len(apart)}, {np.median(apart):.3f} s apart, {apart.max():.3f} at most")
                continue
            apart = np.diff(t_ns[inside]) / 1e6
            share = inside.sum() / (WINDOW_S * rate_hz)
            print(f"  {name}: {share:.3f} of those due; {np.median(apart):.1f} ms apart, {apart.max():.1f} at most")
