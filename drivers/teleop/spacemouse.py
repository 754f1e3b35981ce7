"""A 3Dconnexion SpaceMouse over HID: the puck is the twist, the left button the clutch, the right one the gripper.

May not: be held as dead-man by the puck alone: nothing is engaged while the left button is up.

Reports (linux/drivers/hid and the vendor's tables, as measured by others): 1 is translation, 2 rotation, or one report
of both; 3 the buttons; six little-endian int16, full deflection 350.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from labctl.drivers.teleop.gate import Reading
from labctl.drivers.teleop.options import SpaceMouseOptions

from labctl.clock import Clock, MonotonicClock
from labctl.errors import DeviceLost, MissingExtra

FULL = 350.0
VENDORS = (0x256F, 0x046D)
CLUTCH, GRIP = 1, 2
WAIT_MS = 20
KEEP_NS = 50_000_000  # a puck at rest sends nothing; while the clutch is held its last word is repeated this often


class SpaceMouse:
    """See the module. `open_device` gives an object with read(size, timeout_ms) -> list of bytes, and close()."""

    leader = False
    quiet = False

    def __init__(self, open_device: Callable[[], Any], clock: Clock) -> None:
        self._open_device = open_device
        self._clock = clock
        self._hid: Any = None
        self._axes = np.zeros(6)
        self._buttons = 0
        self._open_grip = True
        self._said_ns = 0

    def open(self) -> None:
        self._hid = self._open_device()
        self._axes, self._buttons, self._open_grip = np.zeros(6), 0, True

    def poll(self) -> Reading | None:
        try:
            report = bytes(self._hid.read(64, WAIT_MS))
        except (OSError, ValueError) as error:
            raise DeviceLost(f"its connection broke ({error})") from error
        now_ns = self._clock.now_ns()
        if not report and now_ns - self._said_ns < KEEP_NS:
            return None
        self._take(report)
        self._said_ns = now_ns
        engaged = bool(self._buttons & CLUTCH)
        return Reading(now_ns, axes=self._axes.copy(), engaged=engaged, grip=1.0 if self._open_grip else 0.0)

    def _take(self, report: bytes) -> None:
        kind = report[0] if report else 0
        if kind == 1 and len(report) >= 13:
            self._axes = np.array(struct.unpack_from("<6h", report, 1)) / FULL
        elif kind == 1 and len(report) >= 7:
            self._axes[:3] = np.array(struct.unpack_from("<3h", report, 1)) / FULL
        elif kind == 2 and len(report) >= 7:
            self._axes[3:] = np.array(struct.unpack_from("<3h", report, 1)) / FULL
        elif kind == 3 and len(report) >= 2:
            if report[1] & GRIP and not self._buttons & GRIP:
                self._open_grip = not self._open_grip
            self._buttons = report[1]

    def close(self) -> None:
        if self._hid is not None:
            self._hid.close()
            self._hid = None


def build(options: SpaceMouseOptions) -> SpaceMouse:
    """The SpaceMouse that is plugged in, or the one at `path`."""
    return SpaceMouse(lambda: _open(options.path), MonotonicClock())


def _open(path: str | None) -> Any:
    try:
        import hid
    except ModuleNotFoundError as error:
        raise MissingExtra("teleop", "a SpaceMouse") from error
    if path is None:
        found = [entry for entry in hid.enumerate() if entry["vendor_id"] in VENDORS]
        mice = [entry for entry in found if "space" in (entry.get("product_string") or "").lower()]
        if not mice:
            raise DeviceLost("no SpaceMouse found; plug it in, and check that this user may read its hidraw device")
        path = str(mice[0]["path"].decode())
    made = hid.device()
    try:
        made.open_path(path.encode())
    except OSError as error:
        raise DeviceLost(f"{path} cannot be opened ({error}); check that this user may read it") from error
    return made
