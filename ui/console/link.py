"""What a console needs of a link to a run: `labctl.runtime.attach.Attachment` is the real one, tests have another.

May not: know sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from labctl.bus import Message


class Link(Protocol):
    """See `labctl.runtime.attach.Attachment`."""

    folder: Path
    read_only: bool

    def poll(self) -> list[Message]: ...
    def command(
        self, verb: str, *, who: str, role: str, version: int | None = None, args: Mapping[str, Any] | None = None
    ) -> str: ...
    def stop_arm(self) -> bool: ...
    def alive(self) -> bool: ...
    def renew(self) -> bool: ...
    def close(self) -> None: ...
