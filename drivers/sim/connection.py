"""What emulated controllers' servers share: reading a connection without waiting, and a thread for each client.

May not: keep what came, or know what it means.
"""

from __future__ import annotations

import socket
import socketserver
import threading


def received(sock: socket.socket) -> bytes | None:
    """What a client has sent; None while it has sent nothing, empty when it is gone."""
    try:
        return sock.recv(65536)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class ThreadedServer(socketserver.ThreadingTCPServer):
    """Serves at once, each client in a thread of its own, until closed. Raises OSError for a port that is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host: str, port: int, handler: type[socketserver.BaseRequestHandler], name: str) -> None:
        super().__init__((host, port), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
