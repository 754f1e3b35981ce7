"""What is sent to one server is sent to no other."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from labctl.errors import Unreachable
from labctl.reporting.times.spans import send
from labctl.requesting import answer_of


class Redirecting(HTTPServer):
    """It answers each request with a place of its own elsewhere, and keeps what it was asked."""

    def __init__(self, status: int) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def do_GET(self) -> None:
                asked.append(f"{self.command} {self.path}")
                self.send_response(status if self.path != "/elsewhere" else 200)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.address = asked, f"http://127.0.0.1:{self.server_address[1]}/here"


@pytest.fixture(params=[301, 302, 303, 307, 308])
def server(request: pytest.FixtureRequest) -> Iterator[Redirecting]:
    with Redirecting(request.param) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_no_redirect_is_followed(server: Redirecting) -> None:
    with pytest.raises(urllib.error.HTTPError):
        answer_of(urllib.request.Request(server.address, b"pictures"), 30.0)
    assert server.asked == ["POST /here"]


def test_times_and_a_token_go_to_the_collector_that_was_named_alone(server: Redirecting) -> None:
    with pytest.raises(Unreachable):
        send(b"{}", server.address, {"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20t0k3n"})
    assert server.asked == ["POST /here"]
