"""The client of an emulator's control port (see `labctl.drivers.sim.control_port`): one request, one answer.

May not: connect to anything but loopback: a real robot has no such door.
"""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Mapping
from typing import Any

from labctl.errors import DeviceLost, DeviceRefused, InputError

PORT = 13370
MOST_BYTES = 262144
TIMEOUT_S = 2.0


def loopback(host: str) -> str:
    """The host, if it is an address of this machine's loopback. Raises InputError otherwise."""
    try:
        if ipaddress.ip_address(host).is_loopback:
            return host
    except ValueError:
        pass  # a name: said below
    raise InputError(f"an emulator lives on loopback only (127.x.y.z), found {host!r}")


class ControlLink:
    """A connection to the emulator on `host`, opened at the first request and again after it was lost."""

    def __init__(self, host: str, timeout_s: float = TIMEOUT_S) -> None:
        self.host, self._timeout_s = loopback(host), timeout_s
        self._socket: socket.socket | None = None
        self._rest = b""

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The emulator's answer. Raises DeviceLost when none comes, DeviceRefused when it says no."""
        try:
            if self._socket is None:
                self._socket = socket.create_connection((self.host, PORT), self._timeout_s)
                self._rest = b""
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(self._line())
            refused = None if answer.pop("ok") else str(answer["error"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self.close()
            said = getattr(error, "strerror", None) or error
            raise DeviceLost(
                f"no emulator answers on {self.host}:{PORT} ({said}); start one: labctl emulate … --host {self.host}"
            ) from error
        if refused is not None:
            raise DeviceRefused(f"emulator on {self.host}: {refused}")
        return answer

    def _line(self) -> bytes:
        assert self._socket is not None
        while b"\n" not in self._rest:
            more = self._socket.recv(MOST_BYTES)
            if not more:
                raise ConnectionError("closed by the emulator")
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def close(self) -> None:
        """Any number of times."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
