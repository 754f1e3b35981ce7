"""A camera for campaigns in simulated time whose pictures say which they are and when they were taken, at times that
jitter as measured ones do.

Options beside width, height and rate_hz: jitter_ms (largest), seed, and hole_ms, for so long none comes after picture
hole_after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.clock import MILLISECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Frame, Kind
from support.cameras.barcode import Mark, paint, read


def picture(width: int, height: int, number: int, t_ns: int) -> np.ndarray:
    """A room that never changes, so that the scene looks as it did, and in its upper left quarter a coded picture."""
    blocks = np.random.default_rng(7).integers(40, 216, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    image = np.repeat(np.repeat(blocks, 8, axis=0), 8, axis=1)[:height, :width]
    image[: height // 2, : width // 2] = paint(width // 2, height // 2, number, t_ns)
    return image


def mark_of(image: np.ndarray) -> Mark | None:
    """The mark of a `picture`, after any codec."""
    height, width = image.shape[:2]
    return read(image[: height // 2, : width // 2])


class CodedCamera:
    """See `labctl.devices.Camera`. A picture's mark holds its number and its host time in ns."""

    kind: Kind = "sim"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.width, self.height = int(options["width"]), int(options["height"])
        self.rate_hz = float(options["rate_hz"])
        self._jitter_ns = round(options.get("jitter_ms", 8.0) * MILLISECOND)
        self._random = np.random.default_rng(options.get("seed", 0))
        self._hole = (options.get("hole_after", 0), round(options.get("hole_ms", 0) * MILLISECOND))
        self._number = 0
        self._last_ns = 0

    def connect(self, now_ns: int) -> None:
        self._last_ns = now_ns

    def sense(self, observation: Mapping[str, np.ndarray]) -> None:
        """It draws nothing of the scene."""

    def grab(self, now_ns: int) -> Frame | None:
        """The next picture, taken a little before now; every call is one, as the node asks when one is due."""
        after, hole_ns = self._hole
        if self._number == after and now_ns < self._last_ns + hole_ns:
            return None
        taken_ns = max(now_ns - int(self._random.integers(0, self._jitter_ns + 1)), self._last_ns + MILLISECOND)
        self._number += 1
        self._last_ns = taken_ns
        return Frame(picture(self.width, self.height, self._number, taken_ns), taken_ns, taken_ns / 1e6, self._number)

    def about(self) -> dict[str, Any]:
        return {"model": "coded", "serial": "0"}

    def close(self) -> None:
        """Nothing to give back."""


def build(options: Mapping[str, Any], *, cell: Cell, fixture: Fixture) -> CodedCamera:
    return CodedCamera(options)
