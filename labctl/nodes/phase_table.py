"""A node's messages as data: for each kind, in which phases it counts, what is done, and the phase that follows.

May not: send anything, know what a phase or a message means, or let a message through that does not fit its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from labctl.bus import Message, Step
from labctl.messages.typed import Misfit, Typed, read

N = TypeVar("N")
P = TypeVar("P", bound=StrEnum)
T = TypeVar("T", bound=Typed)
N_in = TypeVar("N_in", contravariant=True)
P_out = TypeVar("P_out", bound=StrEnum, covariant=True)
Act = Callable[[N, int, Step], None]


@dataclass(frozen=True, slots=True)
class On(Generic[N, P, T]):
    """One row of a table: a message from another process. In any other phase than `phases` it is ignored. `then` is
    entered before `handler` (node, message, time, step) is called; None: the phase stays, unless the handler ends the
    node's work.
    """

    message: type[T]
    phases: frozenset[P]
    handler: Callable[[N, T, int, Step], None]
    then: P | None = None

    @property
    def kind(self) -> str:
        return self.message.KIND

    def act(self, message: Message) -> Act[N]:
        """What is done about a message. Raises Misfit."""
        sent, handler = read(self.message, message), self.handler
        return lambda node, now_ns, step: handler(node, sent, now_ns, step)


@dataclass(frozen=True, slots=True)
class OnRaw(Generic[N, P]):
    """As `On`, of what needs no look: what came of a call that this node made, or arrays that come at a high rate."""

    kind: str
    phases: frozenset[P]
    handler: Callable[[N, Message, int, Step], None]
    then: P | None = None

    def act(self, message: Message) -> Act[N]:
        handler = self.handler
        return lambda node, now_ns, step: handler(node, message, now_ns, step)


class Row(Protocol[N_in, P_out]):
    """What a table holds, whatever the type of the message."""

    @property
    def kind(self) -> str: ...
    @property
    def phases(self) -> frozenset[P_out]: ...
    @property
    def then(self) -> P_out | None: ...
    def act(self, message: Message) -> Callable[[N_in, int, Step], None]: ...


def by_kind(rows: Iterable[Row[N, P]]) -> Mapping[str, Row[N, P]]:
    """The rows by the message's kind. Raises ValueError for a kind with two rows."""
    found: dict[str, Row[N, P]] = {}
    for row in rows:
        if row.kind in found:
            raise ValueError(f"two rows for the message {row.kind}")
        found[row.kind] = row
    return found


def heard(table: Mapping[str, Row[N, P]], phase: P, message: Message, step: Step) -> tuple[P, Act[N]] | None:
    """The phase that a message leads to and what is done about it; None when it does not count, or was refused."""
    row = table.get(message.kind)
    if row is None or phase not in row.phases:
        return None
    try:
        return row.then or phase, row.act(message)
    except Misfit as error:
        step.refused.append(f"{error}; refused, from {message.sender or 'nobody'}")
        return None
