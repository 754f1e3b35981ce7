"""A robot's states taken from the network card's side of the client: every one, stamped by the kernel as it arrived.

A client of the FCI that comes a millisecond late keeps the newest state and drops those before it. A raw socket gets a
copy of each datagram in a queue of its own, whatever the client does; it takes part in nothing.

May not: send, take another host's datagrams, or be needed: it wants CAP_NET_RAW, and a robot is driven without as well.
"""

from __future__ import annotations

import contextlib
import socket
import struct

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.franka.state import STATE_BYTES, Datagram

UDP_HEADER = 8
QUEUE_BYTES = 8 << 20  # some seconds of states
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33  # linux/asm-generic/socket.h; the socket module does not name them
STAMP = struct.Struct("@qq")  # struct timespec
MOST_BYTES = 2048
STAMP_BYTES = socket.CMSG_SPACE(STAMP.size)


class Capture:
    """States of the robot at an address; one thread at a time. Raises PermissionError without the right to raw sockets,
    or another OSError.
    """

    def __init__(self, host: str) -> None:
        self._clock = MonotonicClock()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        try:
            self._socket.setblocking(False)
            self._socket.connect((host, 0))  # of that address only, from now on
            self._clear()
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, QUEUE_BYTES)
            with contextlib.suppress(PermissionError):  # beyond the system's most: CAP_NET_ADMIN
                self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
            self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        except OSError:
            self._socket.close()
            raise

    def _clear(self) -> None:
        """Until it was connected it took what all hosts sent: another robot's states."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._socket.recv(MOST_BYTES)

    def drain(self) -> list[tuple[int, Datagram]]:
        """What arrived since the last call: times of arrival on this host's monotonic clock in ns, and states.

        The kernel stamps only from some time after it was asked to; what it has not stamped has the time of reading.
        None arrived after those behind it.
        """
        ahead_ns = self._clock.wall_ahead_ns()
        found: list[tuple[int, Datagram]] = []
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(MOST_BYTES, STAMP_BYTES)
            except OSError:  # nothing more; or the robot's ICMP answer to what the client sent, which comes once
                break
            at = 4 * (data[0] & 15) + UDP_HEADER
            if len(data) == at + STATE_BYTES:
                seconds, ns = STAMP.unpack(ancillary[0][2])
                found.append((SECOND * seconds + ns - ahead_ns, Datagram(data[at:])))
        latest_ns = self._clock.now_ns()
        for place in range(len(found) - 1, -1, -1):
            latest_ns = min(latest_ns, found[place][0])
            found[place] = latest_ns, found[place][1]
        return found

    def close(self) -> None:
        """Any number of times."""
        self._socket.close()
