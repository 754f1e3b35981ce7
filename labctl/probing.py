"""Connects to a cell's robot for a second, in a process of its own, and says how it is. Nothing moves.

May not: follow, stage, stop or recover a robot, or trust a vendor's library not to crash the process it runs in.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import load
from labctl.errors import LabctlError

CHILD = "from labctl.probing import probe_main; probe_main()"
PATIENCE_S = 20.0
LISTEN_NS = SECOND


def probe(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a robot says within a second: `mode`, `reason` (of devices.RobotStatus), `states` per second.

    spec: cell and fixture as plain dicts. A process that dies or hangs is mode "lost" with the reason in words.
    """
    words = [sys.executable, "-P", "-c", CHILD]
    try:
        done = subprocess.run(words, input=json.dumps(spec), capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return {"mode": "lost", "reason": f"the robot's client library did not return within {PATIENCE_S:g} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        return json.loads(lines[-1])
    name = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
    return {"mode": "lost", "reason": f"the robot's client library ended its process ({name})"}


def probe_main() -> None:
    """Entry of the probing process: its spec on standard input, one JSON line on standard output."""
    spec = json.load(sys.stdin)
    try:
        answer = _listen(spec)
    except LabctlError as error:
        answer = {"mode": "lost", "reason": str(error)}
    except Exception as error:  # a bug in a driver must not look like a robot that is well
        answer = {"mode": "lost", "reason": f"{type(error).__name__}: {error}"}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a vendor's thread that hangs would hold the interpreter's end


def _listen(spec: Mapping[str, Any]) -> dict[str, Any]:
    clock = MonotonicClock()
    table = spec["cell"]["robot"]
    robot = load(table["driver"], table.get("options", {}), cell=spec["cell"], fixture=spec["fixture"])
    robot.connect(clock.now_ns())
    began, states = clock.now_ns(), 0
    while clock.now_ns() < began + LISTEN_NS:
        clock.sleep_until(clock.now_ns() + 20 * MILLISECOND)
        states += sum(len(batch.t_ns) for batch in robot.drain(clock.now_ns()) if batch.stream == "arm/state")
    seconds = (clock.now_ns() - began) / SECOND
    status = robot.status()
    robot.close()
    return {"mode": status.mode, "reason": status.reason, "states": states / seconds}
