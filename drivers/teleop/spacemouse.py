"""A 3Dconnexion SpaceMouse over HID: the puck is the twist, one button the clutch, another the gripper.

May not: be held as dead-man by the puck alone (nothing is engaged while the clutch's button is up), take a puck that
falls silent away from rest for one that is still pushed, or read a model whose reports and signs are not in `pucks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.drivers.teleop.gate import Reading
from labctl.drivers.teleop.options import SpaceMouseOptions
from labctl.drivers.teleop.pucks import BUTTONS, PUCKS, VENDORS, WITHOUT_BUTTONS, Puck, deflection
from labctl.errors import DeviceLost, MissingExtra

CLUTCH, GRIP = 1, 2
WAIT_MS = 20
KEEP_NS = 50_000_000  # a puck at rest sends nothing; while the clutch is held its last word is repeated this often
LOST_NS = SECOND // 2  # so long silent while pushed (a flat battery, out of reach): whoever held the clutch has let go
REST = 0.05  # of full deflection: a puck that falls silent so near to rest is at rest
PUCK_USAGE = (1, 8)  # HID: generic desktop, multi-axis controller


class Found(TypedDict):
    """What `hid.enumerate` says of a device, as far as it is looked at."""

    vendor_id: int
    product_id: int
    product_string: str
    path: bytes
    usage_page: int
    usage: int


class SpaceMouse:
    """See the module. `open_device` gives an object with read(size, timeout_ms) -> list of bytes and close(), and the
    model it is.
    """

    leader = False
    quiet = False

    def __init__(self, open_device: Callable[[], tuple[Any, Puck]], clock: Clock) -> None:
        self._open_device = open_device
        self._clock = clock
        self._hid: Any = None
        self._presses = 0

    def open(self) -> None:
        self._hid, self._puck = self._open_device()
        self._axes = np.full(6, np.nan)  # not known before the first report, or the first silence
        self._buttons = 0
        self._reported_ns = self._pushed_ns = self._clock.now_ns()

    def poll(self) -> Reading | None:
        try:
            report = bytes(self._hid.read(64, WAIT_MS))
        except (OSError, ValueError) as error:
            raise DeviceLost(f"its connection broke ({error})") from error
        now_ns = self._clock.now_ns()
        if not report and now_ns - self._reported_ns < KEEP_NS:
            return None
        self._take(report, now_ns)
        self._reported_ns = now_ns
        most, axes = float(np.abs(self._axes).max()), np.nan_to_num(self._axes)
        said_ns = self._pushed_ns if axes.any() else now_ns  # of one that is pushed only its own reports are fresh
        engaged = bool(self._buttons & CLUTCH)
        return Reading(said_ns, axes=axes, engaged=engaged, presses=self._presses, parts={"puck": most})

    def _take(self, report: bytes, now_ns: int) -> None:
        if not report:  # away from rest it sends all the time
            self._axes[np.isnan(self._axes)] = 0.0
            if np.abs(self._axes).max() <= REST:
                self._axes[:] = 0.0
            elif now_ns - self._pushed_ns > LOST_NS:
                self._buttons = 0
        elif (found := deflection(self._puck, report)) is not None:
            part, values = found
            self._axes[part], self._pushed_ns = values, now_ns
        elif report[0] == BUTTONS and len(report) >= 2:
            held, pressed = report[1] & CLUTCH, report[1] & GRIP and not self._buttons & GRIP
            if pressed and held:
                self._presses += 1
            self._buttons = report[1]

    def close(self) -> None:
        if self._hid is not None:
            self._hid.close()
            self._hid = None


def build(options: SpaceMouseOptions) -> SpaceMouse:
    """The SpaceMouse that is plugged in, or the one at `path`."""
    return SpaceMouse(lambda: _open(options.path), MonotonicClock())


def _open(path: str | None) -> tuple[Any, Puck]:
    try:
        import hid
    except ModuleNotFoundError as error:
        raise MissingExtra("teleop", "a SpaceMouse") from error
    found: list[Found] = [entry for entry in hid.enumerate() if path is None or entry["path"].decode() == path]
    entry, puck = chosen(found, path)
    made = hid.device()
    try:
        made.open_path(entry["path"])
    except OSError as error:
        where = entry["path"].decode()
        raise DeviceLost(f"{where} cannot be opened ({error}); check that this user may read it") from error
    return made, puck


def chosen(found: list[Found], path: str | None) -> tuple[Found, Puck]:
    """Of HID's devices the one to open, and its model. Raises DeviceLost where there is none that labctl can read."""
    puck_first = sorted(found, key=lambda entry: (entry["usage_page"], entry["usage"]) != PUCK_USAGE)
    for entry in puck_first:
        if (puck := PUCKS.get((entry["vendor_id"], entry["product_id"]))) is not None:
            return entry, puck
    at = "" if path is None else f" at {path}"
    for entry in found:
        ids = (entry["vendor_id"], entry["product_id"])
        what = f"{entry.get('product_string') or 'a device'} ({ids[0]:04x}:{ids[1]:04x}){at}"
        if ids in WITHOUT_BUTTONS:
            raise DeviceLost(f"{what} has no button to hold as a clutch; take another device")
        if path is not None or (ids[0] in VENDORS and "space" in (entry["product_string"] or "").lower()):
            known = ", ".join(sorted(puck.name for puck in PUCKS.values()))
            raise DeviceLost(f"{what} is not among the models whose reports labctl knows: {known}")
    raise DeviceLost(f"no SpaceMouse found{at}; plug it in, and check that this user may read its hidraw device")
