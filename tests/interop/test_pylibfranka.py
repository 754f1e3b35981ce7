"""Franka's own Python client connects to the FR3 emulator too: `pip install pylibfranka`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.robots.emulators import Emulator

pytestmark = pytest.mark.interop
CODE = """
import pylibfranka
robot = pylibfranka.Robot({host!r}, pylibfranka.RealtimeConfig.kIgnore)
state = robot.read_once()
print(len(state.q), round(state.q[3], 3), state.robot_mode)
robot.stop()
"""


def test_pylibfranka_connects_and_reads_states() -> None:
    emulator = Emulator("fr3")
    try:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(host=emulator.host)], capture_output=True, text=True, timeout=60
        )
    finally:
        emulator.end()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("7 -2.434")
