"""The process that copies a campaign to the lab's server while it is run (`labctl.store.server.beside`).

May not: hold up or end a run, write into the folder but its log, or give up on a server that is away.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from labctl.store.lab_folder import lab_settings
from labctl.store.server.beside import Following, follow_until_closed
from labctl.store.server.connecting import Server
from labctl.store.server.copying import Copied, copy
from labctl.store.server.host_record import HostRecord

MAIN = "from labctl.store.server.following import main; main()"


class Follower(Following[Server, Copied]):
    """Of journal and traces."""

    def __init__(self, folder: Path, connect: Callable[[], Server], log: Callable[[str], None]) -> None:
        host = HostRecord(folder)
        super().__init__(connect, lambda server, everything: copy(host, server, everything=everything), log)


def main() -> None:
    """The process, as `follow_until_closed` has it."""

    def make(folder: Path, log: Callable[[str], None]) -> Follower | None:
        table = lab_settings(folder).store
        return table and Follower(folder, lambda: Server(table.url, table.timeout_s), log)

    follow_until_closed(make)
