"""What an export costs for each second that was recorded, by its format: processor time of all its processes. Another
campaign than the recordings of the tests: LABCTL_BENCH_CAMPAIGN=FOLDER.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.clock import SECOND
from labctl.store.campaign import Campaign

pytestmark = pytest.mark.benchmark
FORMATS = ("table", "parquet", "mcap", "lerobot-v3", "lerobot-v2.1", "rrd", "rosbag2", "npz")


def spent_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def campaign() -> Path:
    """A campaign folder that is unblinded."""
    named = os.environ.get("LABCTL_BENCH_CAMPAIGN")
    if not named:
        pytest.skip("name an unblinded campaign: LABCTL_BENCH_CAMPAIGN=labctl-demo/campaigns/demo-bin-to-bin")
    return Path(named)


@pytest.mark.parametrize("form", FORMATS)
def test_cost_of_an_export(form: str, campaign: Path, tmp_path: Path) -> None:
    with Campaign.open(campaign) as opened:
        trials = [trial for trial in opened.state.trials.values() if trial.end_ns and trial.go_ns]
    recorded_s = sum((trial.end_ns or 0) - (trial.go_ns or 0) for trial in trials) / SECOND
    began = spent_s()
    out = tmp_path / ("out.csv" if form == "table" else "out")
    command = [str(Path(sys.executable).with_name("labctl")), "export", str(campaign), "--to", form, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    took_s = spent_s() - began
    each = f"{len(trials)} episodes of {recorded_s / 60:.0f} minutes"
    print(f"\n{form}: {1000 * took_s / recorded_s:.1f} ms for each second recorded, {took_s:.1f} s in all ({each})")
