"""A camera whose opening takes as long as a test wants, and which says when it began and ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from labctl.devices import Frame

LOG: list[tuple[str, str]] = []
INSIDE, GO_ON = threading.Event(), threading.Event()


class SlowCamera:
    """See the module."""

    kind = "sim"
    width, height, rate_hz = 64, 48, 10.0

    def __init__(self, serial: str) -> None:
        self._serial = serial

    def connect(self, now_ns: int) -> None:
        LOG.append(("begins", self._serial))
        INSIDE.set()
        GO_ON.wait(60)
        LOG.append(("ends", self._serial))

    def sense(self, observation: Mapping[str, Any]) -> None:
        """It draws nothing."""

    def grab(self, now_ns: int) -> Frame | None:
        return None

    def about(self) -> dict[str, Any]:
        return {"serial": self._serial}

    def close(self) -> None:
        """Nothing to give back."""


def build(options: Mapping[str, Any], **given: Any) -> SlowCamera:
    return SlowCamera(str(options["serial"]))
