"""Hands the web viewer's page on to a browser of this machine, with a rule that lets it speak to nobody else.

May not: listen beyond loopback, answer to another name than loopback's, or change what the viewer serves.

Left to itself the page reports its usage, asks for the newest version and fetches examples and a font from the
internet, whatever the viewer's settings say: a browser keeps its own. The rule (Content-Security-Policy) is kept by the
browser.
"""

from __future__ import annotations

import http.client
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from labctl.doors import QuietServer, Visit
from labctl.loopback import FOREIGN_HOST, LOOPBACK, own_host

PATIENCE_S = 30.0
_HANDED_ON = ("Content-Type", "Content-Encoding", "Content-Length", "Cache-Control")
_ASKED_FOR = ("Accept", "Accept-Encoding")


def rule(data_port: int) -> str:
    """What the page may load and whom it may speak to: itself, and the recording's port."""
    here = "'self' 'unsafe-inline' 'wasm-unsafe-eval' data: blob:"
    return f"default-src {here}; connect-src 'self' data: blob: http://{LOOPBACK}:{data_port}"


@contextmanager
def handed_on(viewer_port: int, page_port: int, data_port: int) -> Iterator[None]:
    """Serve what the viewer serves on viewer_port at page_port of loopback, under the rule, while the block runs.

    Raises OSError when the port is taken.
    """

    class Handler(Visit):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            if not own_host(self.headers.get("Host"), page_port):
                self.send_error(403, f"{FOREIGN_HOST}:{page_port}; a tunnel has to keep both ports")
                return
            self.let_in()
            headers = {name: self.headers[name] for name in _ASKED_FOR if name in self.headers}
            with (
                suppress(ConnectionError),  # a browser that went away needs no answer
                closing(http.client.HTTPConnection(LOOPBACK, viewer_port, timeout=PATIENCE_S)) as inner,
            ):
                try:
                    inner.request(self.command, self.path, headers=headers)
                    found = inner.getresponse()
                except ValueError:  # as a path in other letters than ASCII
                    self.send_error(400, "this is no path, or no header")
                    return
                except (OSError, http.client.HTTPException):
                    self.send_error(502, "the viewer does not answer")
                    return
                self.send_response(found.status)
                for name in _HANDED_ON:
                    if found.getheader(name) is not None:
                        self.send_header(name, str(found.getheader(name)))
                self.send_header("Content-Security-Policy", rule(data_port))
                self.send_header("Referrer-Policy", "no-referrer")
                self.send_header("Connection", "close")
                self.end_headers()
                if body:
                    shutil.copyfileobj(found, self.wfile)

    with listening(page_port, Handler):
        yield


@contextmanager
def listening(port: int, handler: type[Visit]) -> Iterator[None]:
    """Answer at a port of loopback while the block runs. Raises OSError when the port is taken."""
    server = QuietServer((LOOPBACK, port), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="viewer-page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
