"""A stand-in for a planner or a vision-language model: an emulator of an OpenAI-compatible endpoint, over real HTTP on
loopback. It is no model and says so: it answers by a rule that a test gives it.
"""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image

MODEL = "stand-in-that-is-no-model"
Rule = Callable[[str, np.ndarray], str | None]  # from the words and the last picture to the answer; None: it hangs up


@dataclass
class StandIn:
    """Where it is, and what it was asked: the words and the last picture's size; `requests`: headers and body."""

    url: str
    asked: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    requests: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)


@contextmanager
def stand_in(rule: Rule, *, status: int = 200, whole: dict[str, Any] | None = None, key: str = "") -> Iterator[StandIn]:
    """Serve it. status, whole: what is sent instead of an answer, to see what a client makes of that; key: what it asks
    for as a bearer token.
    """
    found = StandIn("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/chat/completions" and body["model"] == MODEL and body["temperature"] == 0
            words, *pictures = body["messages"][0]["content"]
            data = pictures[-1]["image_url"]["url"].removeprefix("data:image/png;base64,")
            image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
            found.asked.append((words["text"], image.shape))
            found.requests.append((dict(self.headers), body))
            answer = rule(words["text"], image)
            if answer is None:
                self.close_connection = True
                return
            said = {"model": MODEL, "choices": [{"message": {"role": "assistant", "content": answer}}]}
            allowed = not key or self.headers["Authorization"] == f"Bearer {key}"
            sent = json.dumps(said if whole is None else whole).encode()
            self.send_response(status if allowed else 401)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
