"""Many who look on at a live run: processes that attach read-only and read as often as a console does.

    python -c 'from support.screens.watchers import main; main()' FOLDER NUMBER

prints "heard" once for each that has been told the run's state. All are of one process group.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from labctl.clock import SECOND, MonotonicClock
from labctl.runtime.attach import Attachment
from labctl.ui.console.attached import PUMP_S
from support.machine.processes import end_with_parent

BESIDE = 10  # niceness: what a run itself spends on them is looked at, not who of a full machine gets its turn
START = "from support.screens.watchers import main; main()"


def main() -> None:
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    os.nice(BESIDE)
    for _ in range(number):
        if not os.fork():
            end_with_parent()
            look_on(folder)
    os.wait()  # the run has ended for one of them, and so for all, which end with this


def look_on(folder: Path) -> None:
    """As a console does, without a screen."""
    clock, link, told = MonotonicClock(), Attachment(folder, read_only=True), False
    while True:
        kinds = {message.kind for message in link.poll()}
        if not told and "state" in kinds:
            told = True
            os.write(1, b"heard\n")
        clock.sleep_until(clock.now_ns() + round(PUMP_S * SECOND))


class Watchers:
    """So many of them, all attached when this is made. They may be stopped and killed all at once."""

    def __init__(self, folder: Path, number: int) -> None:
        words = [sys.executable, "-c", START, str(folder.resolve()), str(number)]
        tests = Path(__file__).parents[2]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, cwd=tests, start_new_session=True, preexec_fn=end_with_parent
        )
        assert self.process.stdout is not None
        for _ in range(number):
            assert self.process.stdout.readline() == b"heard\n", "one of them could not attach"

    def pids(self) -> list[int]:
        """Of the watchers, without the process that began them."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children]

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
