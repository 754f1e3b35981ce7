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
        self._leash: subprocess.Popen[bytes] | None = None
        self._said = b""

    def start(self) -> None:
        """Begin to start it; `problem` says if that goes wrong."""
        self._leash = subprocess.Popen(
            [sys.executable, "-P", "-c", WATCHDOG],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._leash.stdin is not None and self._leash.stdout is not None
        os.set_blocking(self._leash.stdout.fileno(), False)
        self._leash.stdin.write((json.dumps(self._spec) + "\n").encode())
        self._leash.stdin.flush()

    def problem(self) -> str | None:
        """Why there is no server and will be none, or None."""
        if self._leash is None or self._leash.stdout is None:
            return None
        self._said += self._leash.stdout.read() or b""
        for line in self._said.decode(errors="replace").splitlines():
            if line.startswith("{") and "problem" in line:
                return str(json.loads(line)["problem"])
        code = self._leash.poll()
        return None if code is None else f"what holds the policy server ended with exit code {code}"

    def stop(self) -> None:
        """Let go of the watchdog, which ends the server within the card's `stop_s`; returns at once. Idempotent."""
        if self._leash is not None and self._leash.stdin is not None and not self._leash.stdin.closed:
            self._leash.stdin.close()

    def join(self, timeout_s: float) -> bool:
        """Wait until a server that was told to stop is gone; whether it is."""
        if self._leash is None:
            return True
        try:
            self._leash.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        assert self._leash.stdout is not None
        self._leash.stdout.close()
        return True
