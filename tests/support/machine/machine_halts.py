"""How often the machine itself stood still: on each core a process ahead of every other, asleep for 1 ms.

May not: be more than a witness. A virtual machine is stopped by its host, and nothing that runs in it can help that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

LONG_NS = 2_000_000
WATCH = f"""
import json, os, select, sys
from labctl.clock import MonotonicClock
os.sched_setaffinity(0, {{int(sys.argv[1])}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
clock, long = MonotonicClock(), []
last = clock.now_ns()
while not select.select([sys.stdin], [], [], 0.001)[0]:
    now = clock.now_ns()
    if now - last > {LONG_NS}:
        long.append(round((now - last) / 1e6, 1))
    last = now
print(json.dumps(long))
"""


class Standstill:
    """`with` it; afterwards `text` says what was seen and `seconds` for how long, every core's own halts added, if this
    user may schedule ahead of others (0.0 if not).
    """

    text = "not watched: no right to realtime scheduling"
    seconds = 0.0

    def __enter__(self) -> Standstill:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        words = [sys.executable, "-P", "-c", WATCH]
        cores = sorted(os.sched_getaffinity(0))
        self._watching = [subprocess.Popen([*words, str(core)], text=True, **pipes) for core in cores]
        self.pids = [process.pid for process in self._watching]
        return self

    def __exit__(self, *_: object) -> None:
        told = [process.communicate()[0] for process in self._watching]
        if all(told):
            long = [halt for line in told for halt in json.loads(line)]
            self.seconds = sum(long) / 1e3
            self.text = f"{len(long)} times for more than 2 ms, {max(long, default=0.0):.1f} ms at most"
            self.text += f", {self.seconds:.2f} s in all on {len(told)} cores"
