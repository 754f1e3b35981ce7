"""The run's end of the process that copies its campaign to the lab's server.

May not: wait for a server while anything can move, or import what speaks to one.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from labctl.config.cell_schema import Lab
from labctl.logs import appended
from labctl.store.lab_folder import lab_settings

LOG = "logs/store.log"
MAIN = "from labctl.store.server.following import main; main()"
START_S = 5.0


class StoreCopy:
    """Copies as long as it is open; without [store] in lab.toml nothing."""

    def __init__(self, folder: Path) -> None:
        """Comes back at once, whatever the server does. Raises InputError for a lab.toml that is wrong."""
        settings: Lab = lab_settings(folder)
        self._folder, self._table = folder, settings.store
        self._process: subprocess.Popen[bytes] | None = None
        if self._table is None:
            return
        with suppress(OSError), appended(folder / LOG) as out:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", MAIN, str(folder)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def close(self) -> str:
        """After the run: the last of it is sent, waited for as long as the lab allows; a line where the server lacks
        something then.
        """
        if self._table is None:
            return ""
        later = f"later: labctl database copy {self._folder.name}"
        if self._process is None:
            return f"the lab's server got no copy: no process could be started; {later}"
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(2 * self._table.timeout_s + START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"the lab's server has not all of it: see {LOG}; {later}" if code else ""
