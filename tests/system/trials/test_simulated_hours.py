"""Times of a campaign under the manual clock do not drift: the bench of twelve hours, for a minute and a half of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.machine.processes import end_with_parent

pytestmark = pytest.mark.thorough
BENCH = Path(__file__).resolve().parents[2] / "limits" / "simulated_hours.py"


def test_every_time_of_a_simulated_campaign_is_where_the_clock_was(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-P",
        str(BENCH),
        str(tmp_path),
        "--hours",
        "0.025",
        "--camera-hz",
        "1",
        "--minutes",
        "0.5",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=end_with_parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout[done.stdout.rindex("\n{\n") :])
    streams = found["streams"]
    assert found["episodes"] > 1 and found["problems"] == []
    assert streams["arm/state"]["samples"] > 5_000 and streams["arm/state"]["off_ns"] == 0
    for name in ("camera/over_shoulder", "camera/wrist"):
        assert streams[name]["samples"] > 50 and streams[name]["off_ns"] == 0
        assert streams[name]["off_own_us"] <= 1  # the camera tells its time in whole microseconds
    assert found["off_wall_us"] <= 1  # and so does a wall time
    assert found["drift_ppm"] == [20.0]  # CLOCK_DRIFT of drivers/sim/camera.py
