"""What a console needs of a link to a run: `labctl.runtime.attach.Attachment` is the real one, tests have another.

May not: open a socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from labctl.bus import Message

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"


class Link(Protocol):
    """See `labctl.runtime.attach.Attachment`."""

    read_only: bool

    def poll(self) -> list[Message]: ...
    def command(
        self,
        verb: str,
        *,
        who: str,
        role: str,
        version: int | None = None,
        args: Mapping[str, Json] | None = None,
        keys: int | None = None,
    ) -> str: ...
    def stop_robot(self) -> bool: ...
    def alive(self) -> bool: ...
    def ended(self) -> bool: ...
    def renew(self) -> bool: ...
