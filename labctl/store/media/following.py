"""The process that uploads a campaign's media while it is run (`labctl.store.server.beside`).

May not: hold up or end a run, write into the journal (the run does; `labctl media upload` verifies and journals once
nobody runs it), or give up on a store that is away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from labctl.config.media import MediaTable
from labctl.errors import BrokenRecord
from labctl.plain import count
from labctl.store.lab_folder import lab_settings
from labctl.store.media.held import held
from labctl.store.media.opening import open_store
from labctl.store.media.places import MediaStore
from labctl.store.media.uploading import events_that_hold, pending, send
from labctl.store.server.beside import Following, follow_until_closed
from labctl.store.server.host_record import HostRecord

MAIN = "from labctl.store.media.following import main; main()"


@dataclass(slots=True)
class Sending:
    """What one look sent. waits: files that may not leave yet; they are no failure."""

    files: int = 0
    bytes: int = 0
    waits: int = 0
    broken: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        waits = f"; {count(self.waits, 'file')} may not leave yet" if self.waits else ""
        return f"{count(self.files, 'file')} sent ({self.bytes / 1e6:.1f} MB){waits}"


class Uploader(Following[MediaStore, Sending]):
    """Of videos; each is asked for once, and again after the store was away."""

    def __init__(
        self, folder: Path, table: MediaTable, connect: Callable[[], MediaStore], log: Callable[[str], None]
    ) -> None:
        self._folder, self._table, self._host = folder, table, HostRecord(folder)
        self._there: set[str] = set()
        self._seen, self._waits = 0, 0
        super().__init__(connect, self._send_new, log)

    def _send_new(self, store: MediaStore, everything: bool) -> Sending:
        """Nothing is read where the journal has not grown."""
        done = Sending(waits=self._waits)
        new = self._host.entries(self._seen)
        if everything:
            self._there.clear()
        elif not new:
            return done
        files, done.waits = pending(held(events_that_hold(self._folder)), self._table)
        for file in files:
            if file.sha256 in self._there:
                continue
            try:
                if (self._folder / file.file).is_file():
                    done.bytes += send(self._folder, file, store, self._table)
                    done.files += 1
            except BrokenRecord as error:
                done.broken.append(str(error))
            self._there.add(file.sha256)
        self._seen, self._waits = (new[-1].seq if new else self._seen), done.waits
        return done


def main() -> None:
    """The process, as `follow_until_closed` has it."""

    def make(folder: Path, log: Callable[[str], None]) -> Uploader | None:
        table = lab_settings(folder).media
        return table and Uploader(folder, table, lambda: open_store(table), log)

    follow_until_closed(make)
