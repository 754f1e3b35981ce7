"""What labctl's web servers share: what a stranger sends that is no request fills nobody's terminal.

May not: listen by itself, or keep quiet about an error of labctl's own.
"""

from __future__ import annotations

import logging
import socket
import sys
from http.server import ThreadingHTTPServer

LOG = "labctl.door"


class _Own(logging.Filter):
    """Leaves out aiohttp's own errors, which tell of bytes that are no HTTP, or not packed as they say."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not type(error).__module__.startswith("aiohttp.")


def told() -> dict[str, logging.Logger]:
    """For `aiohttp.web.Application(handler_args=...)`: where it says what is wrong."""
    log = logging.getLogger(LOG)
    if not log.filters:
        log.addFilter(_Own())
    return {"logger": log}


class QuietServer(ThreadingHTTPServer):
    """A server of the standard library's kind; a client that breaks off is no news."""

    daemon_threads = True

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: tuple[str, int]
    ) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
