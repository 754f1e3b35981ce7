"""Campaigns that many tests only read: each is recorded once in a run of the tests, whichever worker asks first.

May not: be written to. A test that writes takes a copy; what was changed all the same is named to whoever asks next.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

PASSING = ("-wal", "-shm", ".lock")  # what readers of a database leave beside it


class Recordings:
    """Recorded campaigns in a folder that all workers of a run share, addressed by how they are made."""

    def __init__(self, shared: Path) -> None:
        self._shared = shared

    def of(self, make: Callable[..., Path], **given: Any) -> Path:
        """The campaign folder that `make(lab, **given)` returned, now or for whoever asked before.

        Raises AssertionError when a test has written to it.
        """
        asked = f"{make.__module__}.{make.__qualname__} {json.dumps(given, sort_keys=True, default=repr)}"
        place = self._shared / hashlib.sha256(asked.encode()).hexdigest()[:16]
        place.mkdir(parents=True, exist_ok=True)
        with (place / "asked").open("a") as asking:
            fcntl.flock(asking, fcntl.LOCK_EX)
            lab, made = place / "lab", place / "made.json"
            if not made.exists():
                shutil.rmtree(lab, ignore_errors=True)  # of a worker that was killed while it recorded
                lab.mkdir()
                folder = make(lab, **given)
                made.write_text(json.dumps({"folder": str(folder.relative_to(lab)), "files": digests(lab)}))
            told = json.loads(made.read_text())
            found = digests(lab)
        changed = sorted(name for name in {*told["files"], *found} if told["files"].get(name) != found.get(name))
        assert not changed, f"a test wrote to the shared recording of {asked}, which others read: {changed}"
        return lab / told["folder"]


def copied(folder: Path, to: Path) -> Path:
    """A copy to write to, of a folder that others may be reading meanwhile; `to`, which may be there."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(*(f"*{end}" for end in PASSING)), dirs_exist_ok=True)
    return to


def digests(lab: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its path in it."""
    files = (path for path in sorted(lab.rglob("*")) if path.is_file() and not path.name.endswith(PASSING))
    return {str(path.relative_to(lab)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
