"""Two kinds of workers side by side: those started with a `nice` compute, the others run what goes by the clock.

A campaign in real time waits most of its time for robots, and a computation for nothing. Side by side they fill the
machine, and as the kernel lets a process that is not `nice` go first, a robot hardly meets its neighbour. A file is
one worker's, but each live campaign of tests/system stands for itself, and so does each robot of a file that tries
several. How many live ones run at once, turns.py says. Of those that emulate a controller at 1 kHz, or run a
campaign on an emulated one (marker `busy`), there is never more than one: one worker that is not nice runs them all.

What takes long begins first, for a run lasts as long as its last test: costs.tsv says what took how long once. Anew, of
what `--costs FILE` wrote down: `.venv/bin/python -P tests/harness/pools.py FILE… > tests/harness/costs.tsv`.

May not: decide what is run. Without pytest-xdist nothing here is asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from execnet import XSpec
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import parse_tx_spec_config

LIVE, BUSY = "@", "@@"  # before the scope of what goes by the clock, and of what is `busy` besides
RIGS = ("rig", "robot_of")  # fixtures whose parameter is the robot that a test is tried on
LONG_S = 12.0
COSTS = Path(__file__).with_name("costs.tsv")  # of one case of a test: s, CPU s, its id without the case
WHERE = "harness_scopes"  # in a worker's input: the file in which it writes scopes down


def scope_of(item: pytest.Item) -> str:
    """Tests of one scope are run by one worker, one after the other."""
    file = item.nodeid.partition("::")[0]
    if item.get_closest_marker("real_time") is None:
        return file
    busy = item.get_closest_marker("busy")
    lane = LIVE if busy is None else BUSY
    return lane + (item.nodeid if file.startswith("tests/system/") else f"{file} {rig_of(item)}".rstrip())


def rig_of(item: pytest.Item) -> str:
    """The robot that a test is tried on, or nothing."""
    call = getattr(item, "callspec", None)
    return "" if call is None else next((str(call.params[name]) for name in RIGS if name in call.params), "")


def known_costs(path: Path = COSTS) -> dict[str, tuple[float, float]]:
    """Seconds and CPU seconds of a case of a test, by its id without the case; of those that are worth a line."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return {test: (float(wall), float(cpu)) for wall, cpu, test in rows}


def worth_a_line(files: Iterable[Path]) -> Iterator[str]:
    """The lines of costs.tsv: what all cases of a test took in a run, where that is long, by the number of cases."""
    cases: dict[str, dict[str, tuple[float, float]]] = {}
    for path in files:
        for line in path.read_text("utf-8").splitlines():
            wall, cpu, nodeid = line.split("\t")
            cases.setdefault(nodeid.partition("[")[0], {})[nodeid] = float(wall), float(cpu)
    for test, taken in sorted(cases.items()):
        wall, cpu = (sum(one[by] for one in taken.values()) for by in (0, 1))
        if wall >= LONG_S or cpu >= LONG_S / 3:
            yield f"{wall / len(taken):.1f}\t{cpu / len(taken):.1f}\t{test}"


def longest_first(scopes: Mapping[str, Collection[str]], costs: Mapping[str, tuple[float, float]]) -> list[str]:
    """Scopes by what their tests take: the clock's time where they go by it, the processor's otherwise. Those of which
    nothing is known come last, as they were.
    """

    def takes(scope: str) -> float:
        by = 0 if scope.startswith(LIVE) else 1
        return sum(costs.get(nodeid.partition("[")[0], (0.0, 0.0))[by] for nodeid in scopes[scope])

    return sorted(scopes, key=takes, reverse=True)


class Pools(LoadScopeScheduling):
    """pytest-xdist's distribution by scope, with a queue for each kind of worker."""

    def __init__(self, config: pytest.Config, log: Any, scopes: Path) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the order is ours
        self._file = scopes
        self._scopes: dict[str, str] = {}
        self._order: dict[str, int] = {}

    def schedule(self) -> None:
        if not self._scopes and self._file.exists():
            self._scopes = json.loads(self._file.read_text())
            together: dict[str, list[str]] = {}
            for nodeid, scope in self._scopes.items():
                together.setdefault(scope, []).append(nodeid)
            self._order = {scope: at for at, scope in enumerate(longest_first(together, known_costs()))}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._scopes[nodeid]

    def _next_for(self, node: Any) -> str | None:
        """A scope for this worker: live ones for those that are not nice, who compute when no such is left."""
        eager = [other for other in self.nodes if not other.gateway.spec.nice and not other.shutting_down]
        live = [scope for scope in self.workqueue if scope.startswith(LIVE)]
        if node in eager or not eager:
            busy = [scope for scope in live if scope.startswith(BUSY)] if self._owner(eager) in (node, None) else []
            if busy or (live := [scope for scope in live if not scope.startswith(BUSY)]):
                return min(busy or live, key=self._order.__getitem__)
        pure = (scope for scope in self.workqueue if not scope.startswith(LIVE))
        return min(pure, key=self._order.__getitem__, default=None)

    def _owner(self, eager: Sequence[Any]) -> Any | None:
        """Which worker that is not nice takes what keeps a core busy: who has not ended its last, else the first."""
        for node in eager:
            under_way = (done for scope, done in self.assigned_work[node].items() if scope.startswith(BUSY))
            if any(not all(done.values()) for done in under_way):
                return node
        return eager[0] if eager else None

    def _assign_work_unit(self, node: Any) -> None:
        scope = self._next_for(node)
        if scope is not None:
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        if self._pending_of(self.assigned_work[node]) > 2:  # as the original; it asks after each test
            return
        if self._next_for(node) is not None:
            super()._reschedule(node)
        elif not node.shutting_down:
            node.shutdown()

    def remove_node(self, node: Any) -> str | None:
        """As the original, but a test that took its worker with it is not run again."""
        workload = self.assigned_work.pop(node)
        left = [(unit, nodeid) for unit in workload.values() for nodeid, done in unit.items() if not done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
        for other in self.nodes:
            self._reschedule(other)
        return crashed


class Controller:
    """Registered where workers are started."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._scopes = Path(config.rootpath) / ".pytest_cache" / f"scopes-{os.getpid()}.json"

    def pytest_configure_node(self, node: Any) -> None:
        self._scopes.parent.mkdir(exist_ok=True)
        nice = max(int(XSpec(spec).nice or 0) for spec in parse_tx_spec_config(self._config))
        node.workerinput |= {
            WHERE: str(self._scopes),
            "harness_turns": str(self._scopes.with_suffix(".turns")),
            "harness_nice": nice - int(node.gateway.spec.nice or 0),
        }

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Pools:
        return Pools(config, log, self._scopes)

    def pytest_unconfigure(self) -> None:
        self._scopes.unlink(missing_ok=True)
        self._scopes.with_suffix(".turns").unlink(missing_ok=True)


AUTOGROUP = Path("/proc/self/autogroup")
ASKED, AGAIN_S = 100, 0.1  # the kernel takes one in a tenth of a second (but for root): workers begin at once


def step_back(nice: int, autogroup: Path = AUTOGROUP) -> None:
    """A session of its own, and for one that is nice, let other sessions go first too.

    Where the kernel schedules by session (sched(7), autogroup), all processes of a session have the weight of one
    process, and one that is nice gives way within its own session alone. Beside two workers that computed as nobody
    does who is nice, robots, cameras and runs, each in its own session, stood still together until leases lapsed; and
    beside a program that takes a core, a process that wakes each millisecond woke up to 24 ms late (99 of 100 times)
    where its session had a worker that computes, and up to 11 ms late in one of its own.
    """
    if not autogroup.exists():
        return
    with contextlib.suppress(OSError):  # it leads one already
        os.setsid()
    for _ in range(ASKED if nice > 0 else 0):
        try:
            autogroup.write_text(str(nice))
        except BlockingIOError:
            time.sleep(AGAIN_S)
        except OSError:
            return
        else:
            return


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        step_back(os.nice(0))
    if config.getoption("dist", "no") != "no":
        config.pluginmanager.register(Controller(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Each worker writes down the same; the last one stands."""
    where = getattr(session.config, "workerinput", {}).get(WHERE)
    if where:
        draft = Path(f"{where}.{os.getpid()}")
        draft.write_text(json.dumps({item.nodeid: scope_of(item) for item in session.items}))
        draft.replace(where)


if __name__ == "__main__":
    print(*worth_a_line(map(Path, sys.argv[1:])), sep="\n")
