"""Driver "support.robots.virtual_hand:build": the real gamepad driver on a joystick that SDL alone has, in one process.

A test moves it through a socket, as a hand would: see `Fingers`. Options: socket, the path of that socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labctl.clock import MonotonicClock
from labctl.drivers.teleop.gamepad import Gamepad
from labctl.drivers.teleop.gate import Reading
from support.robots.teleop_devices import VirtualPad

CLUTCH, DONE, OPEN, SHUT = 5, 7, 0, 1


class VirtualHand:
    """A gamepad whose cable, sticks and buttons obey datagrams {"axes": {"0": 1.0}, "buttons": {"5": true}, "unplug":
    true}. It is taken in the thread that reads the gamepad, so that SDL is spoken to from one thread alone.
    """

    leader = False
    quiet = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> None:
        os.environ["SDL_VIDEODRIVER"] = "dummy"
        self._pad = VirtualPad()
        self._inner = Gamepad(self._pad.number, MonotonicClock())
        self._inner.open()
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(self._path))

    def poll(self) -> Reading | None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._obey(json.loads(self._socket.recv(4096)))
        return self._inner.poll()

    def _obey(self, told: Mapping[str, Any]) -> None:
        for number, value in told.get("axes", {}).items():
            self._pad.axis(int(number), value)
        for number, down in told.get("buttons", {}).items():
            self._pad.button(int(number), down)
        if told.get("unplug"):
            self._pad.unplug()

    def close(self) -> None:
        self._inner.close()
        self._socket.close()
        self._path.unlink(missing_ok=True)


class Fingers:
    """The test's end: `press`, `push`, `unplug`. What nobody is there to feel is lost, and False."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def _tell(self, **told: Any) -> bool:
        try:
            self._socket.sendto(json.dumps(told).encode(), str(self.path))
        except OSError:
            return False
        return True

    def press(self, *down: int, up: tuple[int, ...] = ()) -> bool:
        return self._tell(buttons={**{str(n): True for n in down}, **{str(n): False for n in up}})

    def push(self, **axes: float) -> bool:
        """Sticks by SDL's numbers: push(a1=-1.0) is the left stick away from the person, the base's x."""
        return self._tell(axes={name[1:]: value for name, value in axes.items()})

    def drive(self, axes: Sequence[float]) -> bool:
        """x, y, z and turns about them from -1 to 1, by the raw axes that `VirtualPad` has; no stick turns about x."""
        x, y, z, _, tilt, turn = (float(value) for value in axes)
        left, right = 2 * max(-z, 0.0) - 1, 2 * max(z, 0.0) - 1
        return self.push(a0=-y, a1=-x, a2=left, a3=-turn, a4=tilt, a5=right)

    def unplug(self) -> bool:
        return self._tell(unplug=True)

    def close(self) -> None:
        self._socket.close()


def build(options: Mapping[str, Any]) -> VirtualHand:
    """See the module."""
    return VirtualHand(Path(options["socket"]))
