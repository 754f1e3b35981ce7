"""The process beside a run that sends what the run records to somewhere else. The run never waits for it: what the
other side has not yet lies in the campaign's folder, whole.

May not: hold up or end a run, write into the folder but its log, or give up on a server that is away.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from labctl.clock import MonotonicClock
from labctl.errors import BrokenRecord, LabctlError, MissingExtra, StorageError

PERIOD_S = 1.0  # between looks; traces come in chunks of about a second
LONGEST_S = 10.0  # between tries of a server that is away
NICER = 10


class Away(Protocol):
    """The other side, once it answers."""

    @property
    def where(self) -> str: ...
    def close(self) -> None: ...


class Sent(Protocol):
    """What was sent, in words; broken: what was not, because it does not hold."""

    @property
    def broken(self) -> Sequence[str]: ...


To = TypeVar("To", bound=Away)
What = TypeVar("What", bound=Sent)
Log = Callable[[str], None]


class Following(Generic[To, What]):
    """What is known of one campaign's copy. `look` sends what is new; after a failure the next look is at all of it."""

    def __init__(self, connect: Callable[[], To], send: Callable[[To, bool], What], log: Log) -> None:
        """send: what is missing there; with True all of it is looked at."""
        self._connect, self._send, self._log = connect, send, log
        self._server: To | None = None
        self._first = True  # or the first since the server was away: what it has of all episodes is looked at
        self._away = ""
        self._broken: set[str] = set()
        self.wait_s = PERIOD_S

    def look(self, *, all_of_it: bool = False) -> What | None:
        """Send what is missing; None when the server did not take it. Raises BrokenRecord: nothing more is sent."""
        try:
            server = self._server = self._server or self._connect()
            copied = self._send(server, all_of_it or self._first)
        except StorageError as error:
            self._leave(str(error))
            return None
        except BaseException:
            self.close()
            raise
        if self._first:
            self._log(f"{server.where}: {copied}")
        for line in copied.broken:
            if line not in self._broken:
                self._log(f"not copied: {line}")
        self._broken |= set(copied.broken)
        self._first, self._away, self.wait_s = False, "", PERIOD_S
        return copied

    def _leave(self, why: str) -> None:
        if why != self._away:
            self._log(f"{why}; it is tried again")
        self._away, self._first = why, True
        self.wait_s = min(2 * self.wait_s, LONGEST_S)
        self.close()

    def close(self) -> None:
        """Let go of the server. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None


def follow(follower: Following[To, What], over: Callable[[float], bool]) -> bool:
    """Look until `over`, which waits so many seconds at most and says whether the run has ended; then once at all of
    it. Whether the server has everything. Raises BrokenRecord.
    """
    try:
        while not over(follower.wait_s):
            follower.look()
        last = follower.look(all_of_it=True)
        return last is not None and not last.broken
    finally:
        follower.close()


def follow_until_closed(make: Callable[[Path, Log], Following[To, What] | None]) -> None:
    """The process: the campaign's folder is its argument; it ends once standard input is closed, with 0 if the server
    has everything then. make: None where the lab names no server.
    """
    folder, clock = Path(sys.argv[1]), MonotonicClock()
    with suppress(OSError):
        os.nice(NICER)

    def log(text: str) -> None:
        sys.stdout.write(f"{clock.anchor().wall} {text}\n")
        sys.stdout.flush()

    def over(seconds: float) -> bool:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return bool(ready) and not os.read(sys.stdin.fileno(), 4096)

    try:
        follower = make(folder, log)
        if follower is None:
            return
        whole = follow(follower, over)
    except (BrokenRecord, MissingExtra) as error:
        log(f"nothing more is copied: {error}")
        sys.exit(int(error.exit_code))
    except LabctlError as error:
        log(str(error))
        sys.exit(int(error.exit_code))
    sys.exit(0 if whole else int(StorageError.exit_code))
