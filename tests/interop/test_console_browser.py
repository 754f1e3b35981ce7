"""The console in a browser: Chromium runs one trial by its keys, asks nobody else for anything, and needs the token.

Opt-in: needs Chromium and labctl[web]. pytest -m interop tests/interop/test_console_browser.py
"""

from __future__ import annotations

import http.server
import re
import shlex
import socket
import socketserver
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.live_campaign import running, wait_for
from support.screens.browser import browsing

from labctl.cli.console import free_port
from labctl.core.events import Kind

pytestmark = pytest.mark.interop


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    cell = {'operator = "sim_operator"': 'operator = "console"'}
    arms = [HUMAN, policy("policy-a", skill="swift")]
    opened = make_campaign(tmp_path, arms, cell=cell, live=True, items=2, budget=30.0, arming=4.0, cameras=True)
    with running(opened.folder, tmp_path / "run.log"):
        wait_for("the run", lambda: (opened.folder / "run.json").is_file())
        yield opened.folder


@pytest.fixture
def address(folder: Path, tmp_path: Path) -> Iterator[str]:
    """The address that `labctl console --web` prints."""
    log = tmp_path / "web.log"
    command = [sys.executable, "-P", "-c", "from labctl.cli import main; main()", "console", str(folder), "--web"]
    with log.open("wb") as out:
        child = subprocess.Popen([*command, "--who", "ann"], stdout=out, stderr=out)
    try:
        found = wait_for("the page", lambda: re.search(r"http://\S+", log.read_text()))
        yield found.group(0)  # type: ignore[attr-defined]
    finally:
        child.terminate()
        child.wait(timeout=20)


def test_a_trial_from_the_browser(folder: Path, address: str, tmp_path: Path) -> None:
    def happened(kind: Kind) -> bool:
        return any(event.kind == kind for event in events_of(folder))

    with browsing() as page:
        page.open(address)

        def press_until(kind: Kind, *keys: str) -> None:
            def tried() -> bool:
                for key in keys:
                    page.press(key)
                    page.rest(1.0)
                return happened(kind)

            wait_for(kind, tried)

        wait_for("the terminal", lambda: page.value("!!document.querySelector('.xterm-helper-textarea')"))
        page.rest(3.0)
        press_until(Kind.SESSION_OPENED, "Enter")
        press_until(Kind.TRIAL_STAGING, "Enter")
        press_until(Kind.SCENE_COMMITTED, "Enter")
        press_until(Kind.GO, "Enter")
        press_until(Kind.ITEM_COUNTED, "m")
        page.shot(tmp_path / "running.png")
        press_until(Kind.EPISODE_ENDED, " ")
        assert {re.match(r"\w+://[^/:]+", url).group(0) for url in page.requests} <= {"http://127.0.0.1"}  # type: ignore[union-attr]
        assert page.errors == []
    ended = next(event for event in events_of(folder) if event.kind == Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "safety_stop"


@contextmanager
def tunnel(to: int) -> Iterator[int]:
    """A port of loopback's that leads to another, as that of `ssh -L`."""

    def copy(one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the browser left

    class Ends(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", to)) as there:
                back = threading.Thread(target=copy, args=(there, self.request), daemon=True)
                back.start()
                copy(self.request, there)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ends) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def test_the_console_is_drawn_at_the_other_end_of_a_tunnel_that_begins_at_another_port(address: str) -> None:
    with tunnel(int(address.split(":")[2].split("/")[0])) as port, browsing() as page:
        page.open(f"http://localhost:{port}/?{address.partition('?')[2]}")
        wait_for("a drawn console", lambda: page.value("!!document.querySelector('body.-first-byte .xterm-screen')"))
        assert {url.split("/")[2] for url in page.requests if url.startswith("http")} == {f"localhost:{port}"}
        assert page.errors == []


def test_a_page_at_another_port_cannot_type_into_a_console_of_the_same_browser(address: str, tmp_path: Path) -> None:
    """Another account's, say: a browser takes all ports of 127.0.0.1 for one site."""
    opened = (
        "new Promise(r => {{ const w = new WebSocket('{}'); w.onopen = () => r(true); w.onerror = () => r(false); }})"
    )
    kept: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kept.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other, browsing() as page:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page.open(address)
        wait_for("the terminal", lambda: page.value("!!document.querySelector('.xterm-helper-textarea')"))
        socket_of_ours = page.value("document.querySelector('#terminal').dataset.sessionWebsocketUrl")
        page.open(f"http://127.0.0.1:{other.server_address[1]}/")
        wait_for("the other page", lambda: kept)
        page.rest(1.0)
        answer = page.ask("Runtime.evaluate", expression=opened.format(socket_of_ours), awaitPromise=True)
        assert answer["result"]["value"] is False and set(kept) == {""}
        other.shutdown()


def test_without_the_token_there_is_nothing_to_see(address: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for path in ("/", "/static/js/textual.js", "/ws", "/?token=wrong"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            opener.open(address.split("/?")[0] + path)


def test_off_loopback_the_browser_is_asked_for_the_code_before_it_draws_anything(folder: Path, tmp_path: Path) -> None:
    """As `--host` with an address of this computer serves it, tried on loopback: no other is asked for in a test."""
    log, port = tmp_path / "paired.log", free_port("127.0.0.1")
    serve = (
        "import sys; from labctl.ui.console.web import PairedServer; "
        "say = lambda line: print(line, flush=True); "
        "PairedServer(sys.argv[1], '127.0.0.1', int(sys.argv[2]), 'labctl', say).serve()"
    )
    python = [sys.executable, "-P", "-c"]
    own = [*python, "from labctl.cli import main; main()", "console", str(folder), "--who", "ann"]
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", serve, shlex.join(own), str(port)], stdout=out, stderr=out
        )
    try:
        found = wait_for("the code", lambda: re.search(r"type the code (\d{4}-\d{4})", log.read_text()))
        code = found.group(1)  # type: ignore[attr-defined]
        with browsing(flags=("--ignore-certificate-errors",)) as page:
            page.open(f"https://127.0.0.1:{port}/")
            for typed in ("0" * 8, code):
                wait_for("the question", lambda: page.value("document.querySelector('#code') !== null"))
                page.value(f"document.querySelector('#code').value = '{typed}'")
                page.value("document.querySelector('form').submit()")
                if typed != code:
                    wait_for("the refusal", lambda: "not the code" in (page.value("document.body.innerText") or ""))
            wait_for("the console", lambda: page.value("document.querySelector('.xterm-screen') !== null"))
            assert {url.rsplit(":", 1)[0] for url in page.requests if url.startswith("http")} == {"https://127.0.0.1"}
    finally:
        child.terminate()
        child.wait(timeout=20)
