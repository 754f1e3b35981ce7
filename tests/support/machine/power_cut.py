"""What a loss of power leaves of a folder: the names and bytes that had been synced, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from support.machine.preloading import preloaded


def watched(folder: Path) -> Mapping[str, str]:
    """The environment of a process whose synced writes are to be known; what is known is kept in `folder`."""
    folder.mkdir()
    return {**preloaded("synced_writes", folder.parent), "SYNCED": str(folder)}


def left_of(folder: Path, synced: Path, into: Path) -> None:
    """Rebuild a folder as it is found when power is back. A name without its bytes is an empty file."""
    into.mkdir(parents=True)
    names = synced / f"d.{folder.stat().st_ino}"
    for line in names.read_text().splitlines() if names.is_file() else ():
        inode, name = line.split(" ", 1)
        if (folder / name).is_dir():
            left_of(folder / name, synced, into / name)
        elif (bytes_ := synced / f"f.{inode}").is_file():
            shutil.copyfile(bytes_, into / name)
        else:
            (into / name).touch()
