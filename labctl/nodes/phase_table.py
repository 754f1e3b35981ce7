"""A node's messages as data: for each kind, in which phases it counts, what is done, and the phase that follows.

May not: send anything, or know what a phase or a message means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from labctl.bus import Message, Step

N = TypeVar("N")
P = TypeVar("P", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class On(Generic[N, P]):
    """One row of a table. In any other phase than `phases` the message is ignored. `then` is entered before `handler`
    (node, message, time, step) is called; None: the phase stays, unless the handler ends the node's work.
    """

    kind: str
    phases: frozenset[P]
    handler: Callable[[N, Message, int, Step], None]
    then: P | None = None


def by_kind(rows: Iterable[On[N, P]]) -> Mapping[str, On[N, P]]:
    """The rows by the message's kind. Raises ValueError for a kind with two rows."""
    found: dict[str, On[N, P]] = {}
    for row in rows:
        if row.kind in found:
            raise ValueError(f"two rows for the message {row.kind}")
        found[row.kind] = row
    return found
