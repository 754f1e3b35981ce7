"""The rate at which a sensor gave values is of the time in which it was listened to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.checks import probing
from labctl.clock import SECOND, ManualClock


def test_a_sensor_that_is_slow_to_close_has_the_rate_it_gave_values_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for a reading thread to end halved it, and the doctor asked for a lower rate."""
    clock = ManualClock(SECOND)
    one = SimpleNamespace(t_ns=np.zeros(1))
    sensor = SimpleNamespace(
        observes=False,
        connect=lambda now_ns: None,
        drain=lambda now_ns: one,
        close=lambda: clock.sleep_until(clock.now_ns() + SECOND),
    )
    table: Any = SimpleNamespace(driver="any", given={})
    setup: Any = SimpleNamespace(cell=SimpleNamespace(sensor=[table]), fixture=None)
    monkeypatch.setattr(probing, "MonotonicClock", lambda: clock)
    monkeypatch.setattr(probing, "load", lambda *_, **__: sensor)
    assert probing.measure(setup).get("values") == pytest.approx(50.0), "one each 20 ms, as it is asked"
