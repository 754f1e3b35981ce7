"""Reads a device in a thread of its own, so that a question for the newest reading never waits.

May not: interpret a reading, or hide that the device is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from labctl.clock import SECOND, Clock
from labctl.drivers.common.thread_faults import fault_of
from labctl.drivers.teleop.gate import Device, Reading
from labctl.errors import DeviceError, DeviceLost

FIRST_S = 5.0


class Poller:
    """One device. `newest` raises DeviceLost once it is gone; `see` gets every reading, in the thread that reads."""

    def __init__(self, device: Device, what: str, clock: Clock, see: Callable[[Reading], None]) -> None:
        self._device = device
        self._see = see
        self._what = what
        self._clock = clock
        self._reading: Reading | None = None
        self._lost: str | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Open the device and wait for its first word; a keyboard has none. Raises DeviceLost."""
        try:
            self._device.open()
        except DeviceError:
            self._device.close()
            raise
        self._thread = threading.Thread(target=self._run, name="teleop", daemon=True)
        self._thread.start()
        until = self._clock.now_ns() + round(FIRST_S * SECOND)
        while not self._device.quiet and self.newest() is None:
            if self._clock.now_ns() > until:
                self.stop()
                raise DeviceLost(f"{self._what} is there and says nothing for {FIRST_S:g} s; move it, or plug it again")
            self._over.wait(0.01)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                found = self._device.poll()
            except DeviceError as error:
                self._lost = str(error)
                return
            except Exception as error:  # a bug in a driver: whoever drives must hear of it
                self._lost = fault_of(f"reading the {self._what}", error)
                return
            if found is not None:
                self._see(found)
                self._reading = found

    def newest(self) -> Reading | None:
        """The last reading; None before there was one. Raises DeviceLost."""
        if self._lost is not None:
            raise DeviceLost(f"{self._what} is gone: {self._lost}")
        return self._reading

    def rest(self, seconds: float) -> bool:
        """Wait; True when it is over."""
        return self._over.wait(seconds)

    def stop(self) -> None:
        """End the thread and close the device. Idempotent."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
            self._thread = None
            self._device.close()
