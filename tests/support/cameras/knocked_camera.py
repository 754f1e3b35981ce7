"""A simulated camera that somebody knocks and puts back, or before which somebody leaves a thing for a while: for
campaigns in simulated time.

May not: be used where its pictures matter beyond that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.clock import SECOND
from labctl.devices import Frame, load

OWN = ("from_s", "to_s", "shift_px", "patch_px")


class KnockedCamera:
    """The wrapped camera; from `from_s` to `to_s` (since it was connected) its picture lies `shift_px` to the right,
    and a red square of `patch_px` lies in it.
    """

    kind = "faults"

    def __init__(self, inner: Any, from_s: float, to_s: float, shift_px: int, patch_px: int) -> None:
        self._inner = inner
        self._from_ns, self._to_ns = from_s * SECOND, to_s * SECOND
        self._shift_px, self._patch_px = shift_px, patch_px
        self._start_ns: int | None = None
        self.width, self.height, self.rate_hz = inner.width, inner.height, inner.rate_hz

    def connect(self, now_ns: int) -> None:
        self._start_ns = now_ns if self._start_ns is None else self._start_ns
        self._inner.connect(now_ns)

    def grab(self, now_ns: int) -> Frame | None:
        frame = self._inner.grab(now_ns)
        since = now_ns - (self._start_ns or now_ns)
        if frame is not None and self._from_ns <= since < self._to_ns:
            picture = np.pad(frame.image, ((0, 0), (self._shift_px, 0), (0, 0)), mode="edge")[:, : self.width].copy()
            picture[40 : 40 + self._patch_px, 40 : 40 + self._patch_px] = (206, 44, 48)
            frame.image = picture
        return frame

    def sense(self, observation: Mapping[str, Any]) -> None:
        self._inner.sense(observation)

    def about(self) -> dict[str, Any]:
        return self._inner.about()

    def close(self) -> None:
        self._inner.close()


def build(options: Mapping[str, Any], **given: Any) -> KnockedCamera:
    """Options: those of sim_camera; from_s, to_s, shift_px and patch_px are 0 unless given."""
    plain = {key: value for key, value in options.items() if key not in OWN}
    from_s, to_s, shift_px, patch_px = (options.get(key, 0) for key in OWN)
    return KnockedCamera(load("sim_camera", plain, **given), float(from_s), float(to_s), int(shift_px), int(patch_px))
