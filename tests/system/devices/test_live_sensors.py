"""Sensors in a live campaign: the wrench of an emulated robot and a scale on a pseudo-terminal, each a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.robots.emulated_scale import EmulatedScale
from support.robots.emulators import NAMES, Emulator
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import end_of, of_kind, running, wait_for
from support.runs.sensing import SENSOR_REASONS

from labctl.core.events import Kind
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

pytestmark = [pytest.mark.real_time, pytest.mark.thorough, pytest.mark.limit(600)]
HOSTS = {"emulated_fr3": "127.0.0.2", "emulated_ur5e": "127.0.0.3"}
TABLES = """
[[sensor]]
name = "force"
driver = "robot_wrench"
rate_hz = 50.0
[[sensor]]
name = "scale"
driver = "scale_serial"
rate_hz = 10.0
required = false
[sensor.options]
port = "{port}"

[video]"""


@pytest.fixture
def scale() -> Iterator[EmulatedScale]:
    made = EmulatedScale(120.0)
    yield made
    made.close()


@pytest.mark.parametrize("robot", [pytest.param(robot, marks=pytest.mark.busy) for robot in HOSTS])
def test_a_robots_own_wrench_and_a_serial_scale_are_recorded_beside_it(
    robot: str, scale: EmulatedScale, tmp_path: Path
) -> None:
    emulator = Emulator(NAMES[robot])
    try:
        cell = {HOSTS[robot]: emulator.host, "\n[video]": TABLES.format(port=scale.port)}
        given = {"items": 1, "budget": 5.0, "protocol": SENSOR_REASONS, "cell": cell}
        arms = [HUMAN, policy("policy-a", skill="swift")]
        folder = make_campaign(tmp_path, arms, base=robot, durable=True, live=True, **given).folder
        with running(folder, tmp_path / "run.log") as run:
            wait_for("a recording", lambda: of_kind(folder, Kind.RECORDING_SEALED))
            run.terminate()
            assert end_of(run) == 0
    finally:
        emulator.end()
    assert verify_campaign(folder).problems == []
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    try:
        for event in of_kind(folder, Kind.RECORDING_SEALED)[:1]:  # another one may have begun meanwhile
            t_ns, wrench = store.read(str(event.episode), "sensor/force")
            weights = store.read(str(event.episode), "sensor/scale")[1]
            rate_hz = (len(t_ns) - 1) / (t_ns[-1] - t_ns[0]) * 1e9
            assert 1 < rate_hz < 60, "as often as it is asked for, or less where this machine has no time for it"
            assert wrench.shape == (len(t_ns), 6) and np.isfinite(wrench).all()
            assert np.abs(weights[:, 0] - 0.12).max() < 1e-9
    finally:
        store.close()
