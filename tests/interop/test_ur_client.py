"""Universal Robots' own client library, in C++, on our emulated controllers: `make peer-ur-client UR_CLIENT=DIR`.

It is on no package index: DIR is its source, of which the command builds three of its examples as they are.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from pathlib import Path

import pytest
from support.robots.emulators import Emulator

from labctl.drivers.ur.emulator.primary import measured, published

pytestmark = pytest.mark.interop

SECONDS = 3
NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"


def example(name: str, *args: str) -> str:
    """What an example of the library prints, run where its recipes are."""
    source, built = os.environ.get("UR_CLIENT"), os.environ.get("UR_CLIENT_BUILT")
    assert source and built, (
        "set UR_CLIENT and UR_CLIENT_BUILT to the library's source and where its examples are built"
    )
    found = next(Path(built).rglob(name))
    done = subprocess.run([str(found), *args], cwd=source, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["ur5", "ur5e", "ur20"])
def test_the_vendors_client_reads_states_and_moves_the_speed_slider(name: str) -> None:
    """Its example asks for its whole recipe at 50 Hz and sets another speed in each cycle, at last the full one."""
    emulator = Emulator(name)
    try:
        text = example("rtde_client_example", emulator.host, str(SECONDS))
    finally:
        emulator.end()
    bars = re.findall(r"target_speed_fraction: \[(#*)-*\]", text)
    assert len(bars) > 0.5 * 50 * SECONDS, text[-2000:]
    assert len(set(bars)) > 5, "the slider is read as it was set"
    until_it_ends = text.partition("Exiting RTDE")[0]  # what it writes once it has closed its own socket is its own
    assert not re.search(r"\b(ERROR|WARN)\b", until_it_ends), text[-2000:]


@pytest.mark.parametrize("calibration", ["none", "said"])
def test_the_vendors_client_reads_the_calibration_that_we_say(calibration: str) -> None:
    emulator = Emulator("ur5e", f"calibration={calibration}")
    try:
        text = example("primary_pipeline_calibration_example", emulator.host)
    finally:
        emulator.end()
    chain = (measured if calibration == "said" else published)("ur5e")
    for row in ("theta", "a", "d", "alpha"):
        (line,) = re.findall(rf"dh_{row}: \[(.*?)\]", text)
        numbers = [float(number) for number in re.findall(NUMBER, line)]
        assert all(map(math.isclose, numbers, getattr(chain, row))) and len(numbers) == 6, row
    assert "is calibrated" in text


@pytest.mark.parametrize("name", ["ur5", "ur5e"])
def test_the_vendors_client_powers_on_plays_pauses_and_stops_by_the_dashboard(name: str) -> None:
    """Each command is one that it checks by the state that follows. Of PolyScope X's Robot API we have no programs."""
    emulator = Emulator(name)
    try:
        text = example("dashboard_example", emulator.host)
    finally:
        emulator.end()
    assert "Program state: STOPPED wait_program.urp" in text and "Power off command success: 1" in text
    assert "ERROR" not in text, text[-2000:]
