"""What every sensor does, whichever it is: the contract of labctl.devices.Sensor.

The serial scale talks to an emulated one over a pseudo-terminal, by this machine's clock; the others go by a clock that
the test turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.robots.emulated_scale import EmulatedScale
from support.robots.speaking_line import SpeakingLine

from labctl.testing.sensor import LosableSensorConformance, SensorConformance, SensorRig

pytestmark = pytest.mark.real_time


def sim_scale() -> Iterator[SensorRig]:
    yield SensorRig("sim_scale", {}, rate_hz=20.0, live=False, kind="sim", seen={"items": np.zeros((2, 8))})


def robot_wrench() -> Iterator[SensorRig]:
    seen = {"wrench": np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])}
    rig = SensorRig("robot_wrench", {}, rate_hz=50.0, live=False, kind="sim", seen=seen)
    rig.lose, rig.mend = rig.seen.clear, lambda: rig.seen.update(seen)
    yield rig


def scale_serial() -> Iterator[SensorRig]:
    scale = EmulatedScale(120.0)
    rig = SensorRig("scale_serial", {"port": scale.port}, rate_hz=20.0, live=True, kind="real")
    rig.lose = lambda: setattr(scale, "fault", "unit")
    rig.mend = lambda: setattr(scale, "fault", "")
    try:
        yield rig
    finally:
        rig.sensor.close()
        scale.close()


def lines() -> Iterator[SensorRig]:
    line = SpeakingLine(lambda: "0 3 12 1")
    given = {"columns": ["taxel*4"], "units": ["kPa"], "silence_s": 1.0}
    rig = SensorRig("lines", {"port": line.port, **given}, rate_hz=20.0, live=True, kind="real")
    rig.lose = lambda: setattr(line, "silent", True)
    rig.mend = lambda: setattr(line, "silent", False)
    try:
        yield rig
    finally:
        rig.sensor.close()
        line.close()


RIGS: dict[str, Callable[[], Iterator[SensorRig]]] = {
    "sim_scale": sim_scale,
    "robot_wrench": robot_wrench,
    "scale_serial": scale_serial,
    "lines": lines,
}


class OurSensors:
    """Each of the sensors that a parameter names."""

    @pytest.fixture(params=list(RIGS))
    def rig(self, request: pytest.FixtureRequest) -> Iterator[SensorRig]:
        making = RIGS[request.param]()
        made = next(making)
        try:
            yield made
        finally:
            made.sensor.close()
            list(making)


class TestEverySensor(OurSensors, SensorConformance):
    pass


@pytest.mark.parametrize("rig", ["robot_wrench", "scale_serial", "lines"], indirect=True)
class TestSensorsThatAreLost(OurSensors, LosableSensorConformance):
    pass
