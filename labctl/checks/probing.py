"""Connects to a cell's robot, or opens its teleoperation device, for a second, in a process of its own. Nothing moves.

May not: follow, stage, stop or recover a robot, hand a person's wish to one, or trust a vendor's library not to crash
the process it runs in.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import load
from labctl.errors import InputError, LabctlError, MissingExtra

CHILD = "from labctl.checks.probing import {entry}; {entry}()"
PATIENCE_S = 20.0
LISTEN_NS = SECOND
HAND_NS = SECOND // 2


def probe(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a robot says within a second: `mode`, `reason` (of devices.RobotStatus), `states` per second.

    spec: cell and fixture as plain dicts. A process that dies or hangs is mode "lost" with the reason in words.
    """
    found = _in_a_process("probe_main", spec, "robot")
    return found if isinstance(found, dict) else {"mode": "lost", "reason": found}


def probe_hand(spec: Mapping[str, Any]) -> dict[str, Any]:
    """How a cell's teleoperation device is: `waits` (what a person has to do before it may drive) and `engaged`, or
    `problem` with what to do about it as `remedy`.

    spec: cell and fixture as plain dicts. A process that dies or hangs is a problem, in words.
    """
    found = _in_a_process("probe_hand_main", spec, "teleoperation device")
    return found if isinstance(found, dict) else {"problem": found, "remedy": "try the device without labctl"}


def _in_a_process(entry: str, spec: Mapping[str, Any], what: str) -> dict[str, Any] | str:
    """The one JSON line that an entry below prints in a process of its own, or why there is none."""
    words = [sys.executable, "-P", "-c", CHILD.format(entry=entry)]
    try:
        done = subprocess.run(words, input=json.dumps(spec), capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"the {what}'s client library did not return within {PATIENCE_S:g} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    name = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
    return f"the {what}'s client library ended its process ({name})"


def probe_main() -> None:
    """Entry of the probing process: its spec on standard input, one JSON line on standard output."""
    _answer(_listen, lambda error, _: {"mode": "lost", "reason": error})


def probe_hand_main() -> None:
    """The same for a teleoperation device."""
    _answer(feel, lambda error, remedy: {"problem": error, "remedy": remedy})


def _answer(ask: Callable[[Mapping[str, Any]], dict[str, Any]], lost: Callable[[str, str], dict[str, Any]]) -> None:
    spec = json.load(sys.stdin)
    try:
        answer = ask(spec)
    except LabctlError as error:
        answer = lost(str(error), _remedy(error))
    except Exception as error:  # a bug in a driver must not look like a device that is well
        answer = lost(f"{type(error).__name__}: {error}", "look at its driver")
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a vendor's thread that hangs would hold the interpreter's end


def _remedy(error: LabctlError) -> str:
    if isinstance(error, InputError):
        return "correct [teleop] of the cell file"
    return "install it" if isinstance(error, MissingExtra) else "then run doctor again"


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


def feel(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Open a cell's teleoperation device through its driver, read it for half a second, let it go; no arm is asked for.

    See `probe_hand`. Raises InputError, MissingExtra, DeviceLost as the drivers do.
    """
    clock, cell = MonotonicClock(), spec["cell"]
    joints = np.zeros(len(cell["robot"]["limits"]["velocity_rad_s"]))
    person = load("teleop", {}, cell=cell, fixture=spec["fixture"])
    try:
        person.load()
        clock.sleep_until(clock.now_ns() + HAND_NS)
        try:
            hand = person.hand(joints)
        except ValueError:  # numpy's: a leader's joints against the arm's
            problem = f"it has another number of joints than this cell's arm, which has {len(joints)}"
            return {"problem": problem, "remedy": "correct [teleop.options] of the cell file"}
    finally:
        person.close()
    if not hand["fresh"]:
        said = hand["waits"] if "is gone" in hand["waits"] else "it was opened, and then said nothing more"
        return {"problem": said, "remedy": "move it, or plug it again; then run doctor again"}
    return {"waits": hand["waits"], "engaged": hand["engaged"]}
