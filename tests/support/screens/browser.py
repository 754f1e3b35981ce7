"""A headless Chromium driven over its own protocol: pages are opened, keys pressed, pictures taken."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from labctl.clock import SECOND, MonotonicClock

CLOCK = MonotonicClock()
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--mute-audio")
DRAWS_3D = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")  # WebGL without a GPU
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "Backspace": (8, ""), ".": (190, ".")}


def chromium() -> str | None:
    """The browser of this machine, if there is one."""
    return shutil.which("chromium") or shutil.which("google-chrome")


class Page:
    """One tab. `requests` are the addresses it asked for, `errors` what it complained of."""

    def __init__(self, address: str) -> None:
        self._socket = connect(address, max_size=None, ping_interval=None)
        self._sent = 0
        self.requests: list[str] = []
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("id") == self._sent:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        if message["method"] == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message["method"] == "Runtime.exceptionThrown":
            self.errors.append(str(message["params"]["exceptionDetails"].get("exception", message["params"])))
        elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])

    def open(self, url: str) -> None:
        self.ask("Page.navigate", url=url)

    def rest(self, seconds: float) -> None:
        """Let the page work."""
        self.ask("Runtime.evaluate", expression=f"new Promise(r => setTimeout(r, {1000 * seconds}))", awaitPromise=True)

    def press(self, key: str) -> None:
        code, text = KEYS.get(key, (ord(key.upper()) if len(key) == 1 else 0, key))
        params = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **params)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **{**params, "text": ""})

    def size(self, width: int, height: int) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def shot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def close(self) -> None:
        self._socket.close()


@contextmanager
def browsing(width: int = 1400, height: int = 900, flags: tuple[str, ...] = ()) -> Iterator[Page]:
    """A fresh browser with one page; nothing of it is left."""
    program = chromium()
    assert program, "no Chromium on this machine"
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as profile:
        command = [program, *FLAGS, *flags, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = _port(Path(profile) / "DevToolsActivePort")
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            tabs = json.loads(opener.open(f"http://127.0.0.1:{port}/json").read())
            page = Page(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
            page.size(width, height)
            yield page
            page.close()
        finally:
            child.terminate()
            child.wait(timeout=20)


def _port(path: Path) -> int:
    until = CLOCK.now_ns() + 30 * SECOND
    while CLOCK.now_ns() < until:
        if path.is_file() and (lines := path.read_text().splitlines()):
            return int(lines[0])
        CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 10)
    raise AssertionError("the browser did not start")
