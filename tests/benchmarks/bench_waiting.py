"""How long a person waits for the verbs that read a campaign, on all cores against one core in the same run, and in
processor time against `labctl verify`, which reads and hashes everything. LABCTL_BENCH_CAMPAIGN=FOLDER, unblinded.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.clock import SECOND, MonotonicClock

pytestmark = pytest.mark.benchmark
CLOCK = MonotonicClock()
CORES = sorted(os.sched_getaffinity(0))
TIMES = ("power", "--rmst", "77,99", "--tau", "240", "--items", "8", "--budget-s", "240", "--objects", "4")


@pytest.fixture(scope="module")
def campaign() -> str:
    named = os.environ.get("LABCTL_BENCH_CAMPAIGN")
    if not named:
        pytest.skip("name an unblinded campaign: LABCTL_BENCH_CAMPAIGN=labctl-demo/campaigns/demo-bin-to-bin")
    return named


def run(words: list[str], cores: list[int]) -> tuple[float, float]:
    """(seconds waited, seconds of processor time) of one command on these cores."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), CLOCK.now_ns()
    command = [str(Path(sys.executable).with_name("labctl")), *words]
    subprocess.run(command, check=True, capture_output=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    after, took_s = resource.getrusage(resource.RUSAGE_CHILDREN), (CLOCK.now_ns() - began) / SECOND
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("verb", ["status", "episodes", "report", "power"])
def test_what_a_person_waits_for(verb: str, campaign: str, tmp_path: Path) -> None:
    words = {
        "report": ["report", campaign, "--out", str(tmp_path / "out")],
        "power": [*TIMES],
    }.get(verb, [verb, campaign])
    unit = run(["verify", campaign], CORES)[1]
    one, every = run(words, CORES[:1]), run(words, CORES)
    print(
        f"\n{verb}: waited {every[0]:.2f} s on {len(CORES)} cores, {one[0] / every[0]:.2f} times as long on one; "
        f"{every[1]:.2f} s of processor time, {every[1] / unit:.2f} times `labctl verify`; "
        f"load {os.getloadavg()[0]:.1f}"
    )
