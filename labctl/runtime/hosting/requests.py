"""What the run's node asks of whoever hosts the others: that one begins, that one ends. By table, as any mail.

May not: begin or end anything itself; a supervisor does with processes, the loop with nodes.
"""

from __future__ import annotations

from typing import Protocol

from labctl.bus import Message, Step
from labctl.messages.processes import Kill, Spawn
from labctl.nodes.phase_table import by_kind, carry_out, on


class Host(Protocol):
    """Where nodes live."""

    def spawn(self, name: str) -> None: ...
    def kill(self, name: str, now_ns: int) -> None: ...


class Processes(Host, Protocol):
    """Where nodes live as processes: which of them have ended is asked once a turn."""

    def poll(self, now_ns: int) -> list[Message]: ...


def _spawn(host: Host, sent: Spawn, now_ns: int, step: Step) -> None:
    host.spawn(sent.name)


def _kill(host: Host, sent: Kill, now_ns: int, step: Step) -> None:
    host.kill(sent.name, now_ns)


REQUESTS = by_kind((on(Spawn, _spawn), on(Kill, _kill)))


def obey(host: Host, message: Message, now_ns: int) -> None:
    """Do what a message to "@host" asks. Raises ValueError for one that does not fit: only this program writes here."""
    step = Step()
    if not carry_out(REQUESTS, host, message, now_ns, step) or step.refused:
        raise ValueError(f"a host cannot do this: {step.refused[0] if step.refused else message.kind}")
