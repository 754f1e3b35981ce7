"""Studies whose process, or whose scheduler, is killed while they are done.

May not: change a figure.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from support.runs.live_campaign import wait_for
from support.statistics.calibration_page import measured

PLACE = "LABCTL_TEST_STUDIES"
"""In the environment of whoever works: the folder in which KILLED says that a process was killed, SCHEDULER has the
number of the scheduler's, and FIGURES is what has come back.
"""
KILLED, SCHEDULER, FIGURES = "killed", "scheduler", "figures.json"


def measured_at_no_commit(name: str, runs: int | None) -> dict[str, Any]:
    """As `measured`, whatever is checked out meanwhile."""
    return {**measured(name, runs), "commit": ""}


def measured_killed_once(name: str, runs: int | None) -> dict[str, Any]:
    """Its process is killed -9 when a study is worked out, the first time, of one process alone."""
    found = measured_at_no_commit(name, runs)
    try:
        (Path(os.environ[PLACE]) / KILLED).touch(exist_ok=False)
    except FileExistsError:
        return found
    os.kill(os.getpid(), signal.SIGKILL)
    return found


def measured_without_scheduler(name: str, runs: int | None) -> dict[str, Any]:
    """The first to come alone is done; once its figures are kept, the next takes the scheduler away."""
    place = Path(os.environ[PLACE])
    try:
        (place / KILLED).touch(exist_ok=False)
    except FileExistsError:
        wait_for("figures of the first", (place / FIGURES).is_file)
        os.kill(int((place / SCHEDULER).read_text()), signal.SIGKILL)
    return measured_at_no_commit(name, runs)
