"""A policy server as a process of its own: `python -m support.submissions.policy_process POLICY`; it prints its port.

POLICY: hold (the arm stays where it is), leap (two radians further at once), slow (half a second an answer), short
(six numbers an action), lend (sends whoever asks to the address in $ELSEWHERE).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from support.machine.processes import end_with_parent
from support.policies.policy_servers import FakeServer, hold

TESTS = Path(__file__).resolve().parents[2]


def leap(seen: dict[str, Any]) -> dict[str, Any]:
    """Every joint two radians further in one step."""
    answer = hold(seen)
    answer["actions"] = answer["actions"] + np.float32(2.0)
    return answer


def slow(seen: dict[str, Any]) -> dict[str, Any]:
    """After the card's deadline."""
    time.sleep(0.5)
    return hold(seen)


def short(seen: dict[str, Any]) -> dict[str, Any]:
    """Actions of a robot with fewer joints."""
    return {"actions": hold(seen)["actions"][:, 2:]}


@contextmanager
def serving(policy: str = "hold", **environment: str) -> Iterator[str]:
    """The address of a policy server in a process that ends with the block."""
    words = [sys.executable, "-m", "support.submissions.policy_process", policy]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
        preexec_fn=end_with_parent,
    )
    try:
        assert process.stdout is not None
        yield f"ws://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


def main(policy: str) -> None:
    """Serve until the process is ended."""
    kept = (
        {"fault": "lend", "elsewhere": os.environ["ELSEWHERE"]} if policy == "lend" else {"policy": globals()[policy]}
    )
    with FakeServer(**kept) as server:
        print(server.port, flush=True)
        server.over.wait()


if __name__ == "__main__":
    main(sys.argv[1])
