"""The folder in which labctl keeps what it can make or fetch again, of this user's own.

May not: hold what is recorded, or open what lies there to others.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE_FOLDER = 0o700


def user_cache() -> Path:
    """`labctl` below $XDG_CACHE_HOME, else ~/.cache; it may not be there. Raises RuntimeError without a home folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "labctl"


def made_in_cache(*names: str) -> Path:
    """A folder in it, or itself; what is made of it is its owner's alone, each folder on the way too: `mkdir` gives a
    mode to the last one only, and a folder that others can write to holds no library.

    Raises OSError, RuntimeError.
    """
    folder = user_cache()
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    for name in names:
        folder /= name
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return folder
