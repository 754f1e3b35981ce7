"""A simulated operator of campaigns in real time, who lets a trial start once what drives the robot is ready.

How long a process takes to begin is the machine's matter: beside two programs that took a core each a controller was
later than 4 s of arming again and again, and every such episode is void, as it has to be.

May not: be taken for a person at a console, who is not shown whether an arm is ready: it looks behind the seal.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.config.options import NoOptions
from labctl.core.published_state import PublishedState
from labctl.drivers.sim.operator import Order, PromptOperator
from labctl.store.ledger import OPENINGS
from support.machine.processes import open_files

PATIENCE_NS = 20 * SECOND  # with what is never ready, by this machine's clock


class ReadyOperator(PromptOperator):
    """In the run's process, whose campaign it finds by the journal that is open there."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or MonotonicClock()
        self._asked_ns: dict[str | None, int] = {}  # by episode: when it was first to be started

    def decide(self, state: PublishedState) -> Order | None:
        order, episode = super().decide(state), state["episode"]
        if order is None or order["verb"] != "start":
            return order
        now_ns = self._clock.now_ns()
        waited_ns = now_ns - self._asked_ns.setdefault(episode, now_ns)
        return order if waited_ns > PATIENCE_NS or is_ready(self._folder, episode) else None

    @cached_property
    def _folder(self) -> Path:
        return next(Path(path).parent for path in open_files(Path("/proc/self")) if path.endswith("/journal.db"))


def is_ready(folder: Path, episode: str | None) -> bool:
    """Whether what drives the robot in an episode is loaded and warmed; of a campaign that runs here."""
    openings = map(json.loads, (folder / "seal" / OPENINGS).read_text("utf-8").splitlines())
    return any(opening["field"] == "start_up" and opening["episode"] == episode for opening in openings)


def build(options: NoOptions) -> ReadyOperator:
    return ReadyOperator()
