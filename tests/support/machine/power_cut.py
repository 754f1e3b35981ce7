"""What a loss of power leaves of a folder: the names and bytes that had been synced, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("synced_writes.c")


def watched(folder: Path) -> Mapping[str, str]:
    """The environment of a process whose synced writes are to be known; what is known is kept in `folder`."""
    compiler = shutil.which("cc")
    assert compiler, "this test needs a C compiler (cc)"
    folder.mkdir()
    library = folder.with_suffix(".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library), "SYNCED": str(folder)}


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
