"""Processes that run with a library of ours before the system's: C of this folder, compiled when it is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path


def preloaded(name: str, folder: Path) -> Mapping[str, str]:
    """This environment with the library of NAME.c in it, compiled into `folder`."""
    compiler = shutil.which("cc")
    assert compiler, "this test needs a C compiler (cc)"
    library, source = folder / f"{name}.so", Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}
