"""What an emulated controller reads of a client's connection, without waiting.

May not: keep what came, or close anything.
"""

from __future__ import annotations

import socket


def received(sock: socket.socket) -> bytes | None:
    """What a client has sent; None while it has sent nothing, empty when it is gone."""
    try:
        return sock.recv(65536)
    except BlockingIOError:
        return None
    except OSError:
        return b""
