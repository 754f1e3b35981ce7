"""A simulated camera whose cable is pulled out and put back on a timetable: for campaigns in simulated time.

May not: be used where its times matter beyond `lost_s`: it is gone for the second part of every `every_s` seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labctl.clock import SECOND
from labctl.devices import Frame, load
from labctl.errors import DeviceLost


class FlakyCamera:
    """The wrapped camera, but for the time when it is not there."""

    kind = "faults"

    def __init__(self, inner: Any, every_s: float, lost_s: float) -> None:
        self._inner, self._every_ns, self._there_ns = inner, every_s * SECOND, (every_s - lost_s) * SECOND
        self._start_ns: int | None = None
        self.width, self.height, self.rate_hz = inner.width, inner.height, inner.rate_hz

    def _check(self, now_ns: int) -> None:
        if self._start_ns is not None and (now_ns - self._start_ns) % self._every_ns >= self._there_ns:
            raise DeviceLost("the cable is out")

    def connect(self, now_ns: int) -> None:
        self._check(now_ns)
        self._start_ns = now_ns if self._start_ns is None else self._start_ns
        self._inner.connect(now_ns)

    def grab(self, now_ns: int) -> Frame | None:
        self._check(now_ns)
        return self._inner.grab(now_ns)

    def sense(self, observation: Mapping[str, Any]) -> None:
        self._inner.sense(observation)

    def about(self) -> dict[str, Any]:
        return self._inner.about()

    def close(self) -> None:
        self._inner.close()


def build(options: Mapping[str, Any], **given: Any) -> FlakyCamera:
    """Options: those of sim_camera, every_s and lost_s."""
    plain = {key: value for key, value in options.items() if key not in ("every_s", "lost_s")}
    inner = load("sim_camera", plain, **given)
    return FlakyCamera(inner, float(options.get("every_s", 9.0)), float(options.get("lost_s", 2.0)))
