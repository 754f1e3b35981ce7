"""The run's end of the processes that send what it records elsewhere: journal and traces to the lab's server, videos to
its media store.

May not: wait for a server while anything can move, or import what speaks to one.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labctl.config.cell_schema import Lab
from labctl.logs import appended
from labctl.store.lab_folder import lab_settings

START_S = 5.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """main: what the process does; log: where it says so; where, verb: who lacks what it did not send, and the command
    that sends it later.
    """

    main: str
    log: str
    where: str
    verb: str


STORE = _Kind(
    "from labctl.store.server.following import main; main()", "logs/store.log", "the lab's server", "database copy"
)
MEDIA = _Kind(
    "from labctl.store.media.following import main; main()", "logs/media.log", "the media store", "media upload"
)


class _Beside:
    """Sends as long as it is open; for how long the rest is waited for is `timeout_s`, None where nothing is named."""

    def __init__(self, folder: Path, kind: _Kind, timeout_s: float | None) -> None:
        self._folder, self._kind, self._timeout_s = folder, kind, timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        if timeout_s is None:
            return
        with suppress(OSError), appended(folder / kind.log) as out:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", kind.main, str(folder)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def let_go(self) -> None:
        """The run has ended: what is left is sent now. Nothing is waited for."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def close(self) -> str:
        """After the run: the last of it is sent, waited for as long as the lab allows; a line where something is
        lacking then.
        """
        if self._timeout_s is None:
            return ""
        later = f"later: labctl {self._kind.verb} {self._folder.name}"
        if self._process is None:
            return f"{self._kind.where} got no copy: no process could be started; {later}"
        self.let_go()
        try:
            code = self._process.wait(2 * self._timeout_s + START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"{self._kind.where} has not all of it: see {self._kind.log}; {later}" if code else ""


class StoreCopy:
    """Both of them, of which each is there where lab.toml names it; without either nothing."""

    def __init__(self, folder: Path) -> None:
        """Comes back at once, whatever a server does. Raises InputError for a lab.toml that is wrong."""
        settings: Lab = lab_settings(folder)
        store, media = settings.store, settings.media
        self._beside = [
            _Beside(folder, STORE, store and store.timeout_s),
            _Beside(folder, MEDIA, media and min(media.timeout_s, 10.0)),
        ]

    def close(self) -> str:
        """After the run: the last is sent, waited for a few seconds; in words, where something is lacking then."""
        for one in self._beside:
            one.let_go()
        return "; ".join(filter(None, [one.close() for one in self._beside]))
