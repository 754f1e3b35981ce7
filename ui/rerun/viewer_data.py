"""Hands the web viewer's recordings on to its page in a browser of this machine.

May not: listen itself, answer to another name than loopback's, or change what the viewer says of whom it lets ask
(CORS). A page of another site whose name was led here asks as this address's own page, and Host alone tells it.

Rerun's page asks by grpc-web: POST, after OPTIONS since the page is at another port; an answer may go on for hours.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from labctl.doors import Visit
from labctl.loopback import FOREIGN_HOST, LOOPBACK, own_host
from labctl.ui.rerun.viewer_page import PATIENCE_S, listening

PART = 1 << 16  # bytes handed on at once
LARGEST = 1 << 20  # of a question; a page sends some hundred bytes
_OF_THE_LINK = ("connection", "keep-alive", "transfer-encoding", "content-length", "host", "accept-encoding")


@contextmanager
def data_handed_on(viewer_port: int, data_port: int) -> Iterator[None]:
    """Serve what the viewer serves on viewer_port at data_port of loopback while the block runs. Raises OSError when
    the port is taken.
    """

    class Handler(Visit):
        protocol_version = "HTTP/1.1"

        def do_OPTIONS(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            self.close_connection = True
            if not own_host(self.headers.get("Host"), data_port):
                self.send_error(403, f"{FOREIGN_HOST}:{data_port}; a tunnel has to keep both ports")
                return
            length = self.headers.get("Content-Length", "0")
            if not length.isdecimal() or int(length) > LARGEST or "Transfer-Encoding" in self.headers:
                self.send_error(413, f"at most {LARGEST} bytes, with a Content-Length")
                return
            with (
                suppress(ConnectionError),  # a browser that went away needs no answer
                closing(http.client.HTTPConnection(LOOPBACK, viewer_port, timeout=PATIENCE_S)) as inner,
            ):
                body = self.rfile.read(int(length))
                self.let_in()
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_THE_LINK}
                try:
                    inner.request(self.command, self.path, body=body, headers=headers)
                    found = inner.getresponse()
                except ValueError:  # as a path in other letters than ASCII
                    self.send_error(400, "this is no path, or no header")
                    return
                except (OSError, http.client.HTTPException):
                    self.send_error(502, "the viewer does not answer")
                    return
                if inner.sock is not None:
                    inner.sock.settimeout(None)  # of a live view nothing may come for long
                self._hand_on(found)

        def _hand_on(self, found: http.client.HTTPResponse) -> None:
            self.send_response_only(found.status)
            for name, value in found.getheaders():
                if name.lower() not in _OF_THE_LINK:
                    self.send_header(name, value)
            self.send_header("Connection", "close")  # which ends the answer too: of its length nothing is known
            self.end_headers()
            with suppress(http.client.HTTPException):
                while part := found.read1(PART):
                    self.wfile.write(part)

    with listening(data_port, Handler):
        yield
