"""A node's messages as data: for each kind, in which phases it counts, what is done, and the phase that follows. A node
without phases has a table of the same rows, made by `on` and `on_raw`.

May not: send anything, know what a phase or a message means, or let a message through that does not fit its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from labctl.bus import Message, Step
from labctl.errors import StateError
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
    """As `On`, of what the handler looks at itself, or that needs no look: what came of a call that this node made, or
    arrays that come at a high rate. The handler may raise Misfit.
    """

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


class Always(StrEnum):
    """The one phase of a node that has none."""

    ALWAYS = "always"


_ALWAYS = frozenset(Always)


def on(message: type[T], handler: Callable[[N, T, int, Step], None]) -> On[N, Always, T]:
    """A row of a node without phases."""
    return On(message, _ALWAYS, handler)


def on_raw(kind: str, handler: Callable[[N, Message, int, Step], None]) -> OnRaw[N, Always]:
    """As `on`, of what the handler looks at itself."""
    return OnRaw(kind, _ALWAYS, handler)


def by_kind(rows: Iterable[Row[N, P]]) -> Mapping[str, Row[N, P]]:
    """The rows by the message's kind. Raises ValueError for a kind with two rows."""
    found: dict[str, Row[N, P]] = {}
    for row in rows:
        if row.kind in found:
            raise ValueError(f"two rows for the message {row.kind}")
        found[row.kind] = row
    return found


def hear(
    table: Mapping[str, Row[N, P]],
    phase: P,
    node: N,
    message: Message,
    now_ns: int,
    step: Step,
    enter: Callable[[P], None] = lambda phase: None,
) -> bool:
    """Enter the phase that a message leads to and do what it asks for, unless it does not fit its type; False when it
    does not count.
    """
    row = table.get(message.kind)
    if row is None or phase not in row.phases:
        return False
    try:
        act = row.act(message)
        if row.then is not None:
            enter(row.then)
        act(node, now_ns, step)
    except Misfit as error:
        step.refused.append(f"{error}; refused, from {message.sender or 'nobody'}")
    return True


def carry_out(table: Mapping[str, Row[N, Always]], node: N, message: Message, now_ns: int, step: Step) -> bool:
    """As `hear`, of a node without phases."""
    return hear(table, Always.ALWAYS, node, message, now_ns, step)


def entered(follows: Mapping[P, frozenset[P]], phase: P, then: P) -> P:
    """The phase `then`, which is `phase` or may follow it. Raises StateError for one that may not."""
    if then != phase and then not in follows[phase]:
        raise StateError(f"{then} may not follow {phase}")
    return then
