"""The server process of a policy, when labctl starts it: begun before the clock, ended with its episode.

May not: block, or hold the server itself: `server_watchdog` does, which ends it even if this process is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from labctl.config.policy_card import Server

WATCHDOG = "from labctl.drivers.policy.server_watchdog import main; main()"
KEYS = ("start", "folder", "env", "ready_s", "stop_s", "gpu", "gpu_memory_gb")


class ServerProcess:
    """A server started as a card's [server] table says. Its output goes where this process's errors go."""

    def __init__(self, server: Server) -> None:
        self._spec = server.model_dump(mode="json", include=set(KEYS))
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._output = b""

    def start(self) -> None:
        """Begin to start it; `problem` says if that goes wrong."""
        watchdog = subprocess.Popen(
            [sys.executable, "-P", "-c", WATCHDOG],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert watchdog.stdin is not None and watchdog.stdout is not None
        os.set_blocking(watchdog.stdout.fileno(), False)
        watchdog.stdin.write((json.dumps(self._spec) + "\n").encode())
        watchdog.stdin.flush()
        self._watchdog = watchdog  # last: `stop` may come from another thread

    def problem(self) -> str | None:
        """Why there is no server and will be none, or None."""
        if self._watchdog is None:
            return None
        code = self._watchdog.poll()  # first: it says why and then ends, and what it said last would be passed over
        for what, text in self._said():
            if what == "problem":
                return text
        return None if code is None else f"what holds the policy server ended with exit code {code}"

    def waits_for(self) -> str | None:
        """What keeps it from being started yet, or None."""
        what, text = [("", ""), *self._said()][-1]
        return text if what == "waiting" else None

    def _said(self) -> list[tuple[str, str]]:
        """What the watchdog has said until now, in its order: what it is, and its text."""
        if self._watchdog is None or self._watchdog.stdout is None:
            return []
        self._output += self._watchdog.stdout.read() or b""
        *whole, _ = self._output.split(b"\n")
        return [(what, str(text)) for line in whole if line.startswith(b"{") for what, text in json.loads(line).items()]

    def stop(self) -> None:
        """Let go of the watchdog, which ends the server within the card's `stop_s`; returns at once. Idempotent."""
        if self._watchdog is not None and self._watchdog.stdin is not None and not self._watchdog.stdin.closed:
            self._watchdog.stdin.close()
