"""What labctl's web servers share: what a stranger sends that is no request fills nobody's terminal.

May not: listen by itself, or keep quiet about an error of labctl's own.
"""

from __future__ import annotations

import logging
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOG = "labctl.door"


class _Own(logging.Filter):
    """Leaves out aiohttp's own errors, which tell of bytes that are no HTTP, or not packed as they say."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not type(error).__module__.startswith("aiohttp.")


def told() -> dict[str, Any]:
    """For `aiohttp.web.Application(handler_args=...)`: where it says what is wrong."""
    log = logging.getLogger(LOG)
    if not log.filters:
        log.addFilter(_Own())
    return {"logger": log}


class Door(ThreadingHTTPServer):
    """A server of the standard library's kind; a client that breaks off is no news. Raises OSError for a port that is
    taken.
    """

    daemon_threads = True

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(place, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
