"""Live tests wait for their turn: so many run at once that this machine's cores have time for each of them.

A worker knows by costs.tsv what share of a core a scope keeps busy, and begins it when that much is free of what live
tests may have together. Who waits first is next: nothing waits behind what is smaller for ever. What is taken are
locked bytes of a file (fcntl(2)), which the kernel gives back whatever a worker dies of.

A worker for live tests that computes because none of those is left steps back as the others that compute.

May not: decide which tests a worker runs. Without pytest-xdist nobody waits.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.pools import LIVE, known_costs, scope_of, step_back

WHERE, NICE = "harness_turns", "harness_nice"  # in a worker's input: the file; how far it steps back to compute
PARTS = 20  # of a core: a byte each
CORES = 0.65  # of each core: what live tests may use together
LEAST, UNKNOWN = 0.15, 0.35  # of a core: of what waits nearly always; of what nothing is known of
KNOWN_S = 10.0  # of the time of a scope's tests
AGAIN_S = 0.1


def share_of(tests: Iterable[str], costs: Mapping[str, tuple[float, float]]) -> float:
    """Cores that the tests of a scope keep busy, LEAST to 1: CPU seconds a second of those whose costs are known."""
    names = (nodeid.partition("[")[0] for nodeid in tests)
    known = [costs[name] for name in names if name in costs]
    wall_s, cpu_s = (sum(cost[by] for cost in known) for by in (0, 1))
    return min(max(cpu_s / wall_s, LEAST), 1.0) if wall_s >= KNOWN_S else UNKNOWN


class Turns:
    """What one worker has of a file that all of a run share: byte 0 is whose turn is next, the others parts of a core.
    The locks are a process's own (lockf): what a test starts inherits none.
    """

    def __init__(self, path: Path, cores: float) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._parts = range(1, 1 + max(1, round(cores * PARTS)))
        self._of = ""

    def take(self, scope: str, share: float) -> None:
        """Wait until `share` of a core is free, or all that there is; the scope keeps it from test to test."""
        if scope == self._of:
            return
        self.give_back()
        wanted = min(max(1, round(share * PARTS)), len(self._parts))
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, 0)
        have: set[int] = set()
        while True:
            for part in self._parts:
                if len(have) < wanted and part not in have and self._free(part):
                    have.add(part)
            if len(have) == wanted:
                break
            time.sleep(AGAIN_S)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, 0)
        self._of = scope

    def _free(self, part: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, part)
        except OSError:
            return False
        return True

    def give_back(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, len(self._parts), 1)
        self._of = ""


class Waiting:
    """Registered in a worker."""

    def __init__(self, turns: Turns, nice: int) -> None:
        self._turns, self._nice = turns, nice
        self._shares: dict[str, float] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        together: dict[str, list[str]] = {}
        for item in session.items:
            together.setdefault(scope_of(item), []).append(item.nodeid)
        costs = known_costs()
        self._shares = {scope: share_of(tests, costs) for scope, tests in together.items() if scope.startswith(LIVE)}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Before the time that a test may take begins."""
        scope = scope_of(item)
        if scope in self._shares:
            self._turns.take(scope, self._shares[scope])
        elif self._nice and not scope.startswith(LIVE):
            step_back(os.nice(self._nice))
            self._nice = 0
        try:
            return (yield)
        finally:
            if nextitem is None or scope_of(nextitem) != scope:
                self._turns.give_back()


def pytest_configure(config: pytest.Config) -> None:
    given: dict[str, Any] = getattr(config, "workerinput", {})
    if WHERE in given:
        turns = Turns(Path(given[WHERE]), CORES * len(os.sched_getaffinity(0)))
        config.pluginmanager.register(Waiting(turns, given[NICE]))
