"""The headless operator node: reads the published state, sends commands, as a person at a console would. For
simulated cells.

May not: see more than a console sees, or act on a state it was not shown (every command carries the version it saw).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from labctl.bus import Message, Step
from labctl.core.published_state import PublishedState, published
from labctl.messages.processes import CommandSent
from labctl.messages.typed import read
from labctl.plain import Json


class OperatorScript(Protocol):
    """What stands in for a person: `decide` gets the published state and answers with a command (verb, role, who,
    args) or None.

    `delay_ns` is how long this person takes for that verb.
    """

    def decide(self, state: PublishedState) -> Mapping[str, Json] | None: ...
    def delay_ns(self, verb: str) -> int: ...


class OperatorNode:
    """Sends one command per published state version, after the person's delay."""

    name = "operator"
    topics = ("@state",)

    def __init__(self, script: OperatorScript) -> None:
        self._script = script
        self._state: PublishedState | None = None
        self._pending: tuple[int, Message] | None = None
        self._sent = 0
        self._answered: object = None
        self.finished = True  # nothing of its own to finish

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        for message in inbox:
            if message.kind == "state":
                self._state = published(message.body)
        step = Step()
        state = self._state
        if state is not None and (state["version"], state["moment"]) != self._answered:
            self._pending = self._plan(state, now_ns)
            if self._pending is not None:  # who has nothing to say yet is shown the same state again
                self._answered = (state["version"], state["moment"])
        if self._pending and now_ns >= self._pending[0]:
            step.out.append(self._pending[1])
            self._pending = None
        step.due_ns = self._pending[0] if self._pending else None
        return step

    def _plan(self, state: PublishedState, now_ns: int) -> tuple[int, Message] | None:
        wanted = self._script.decide(state)
        if wanted is None:
            return None
        self._sent += 1
        body = {"id": f"operator-{state['run']}-{self._sent}", "version": state["version"], **wanted}
        command = read(CommandSent, Message("run", CommandSent.KIND, body))
        return now_ns + self._script.delay_ns(command.verb), command.to("run")
