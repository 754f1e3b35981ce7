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
        for said in self._said():
            if "problem" in said:
                return str(said["problem"])
        return None if code is None else f"what holds the policy server ended with exit code {code}"

    def waits_for(self) -> str | None:
        """What keeps it from being started yet, or None."""
        said = self._said()
        return str(said[-1]["waiting"]) if said and "waiting" in said[-1] else None

    def _said(self) -> list[dict[str, object]]:
        """What the watchdog has said until now, in its order."""
        if self._watchdog is None or self._watchdog.stdout is None:
            return []
        self._output += self._watchdog.stdout.read() or b""
        *whole, _ = self._output.split(b"\n")
        return [json.loads(line) for line in whole if line.startswith(b"{")]

    def stop(self) -> None:
        """Let go of the watchdog, which ends the server within the card's `stop_s`; returns at once. Idempotent."""
        if self._watchdog is not None and self._watchdog.stdin is not None and not self._watchdog.stdin.closed:
            self._watchdog.stdin.close()
