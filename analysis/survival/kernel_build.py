"""Makes a library of the files in `compiled/` with the machine's own C compiler, once, and loads it.

May not: know what the code computes. Raises ImportError where there is no compiler or it fails, so that the plain
kernel runs instead. A library is named by everything it was made from and for, and written whole or not at all.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path

from labctl.user_cache import made_in_cache

FOLDER = Path(__file__).with_name("compiled")
COMPILERS = ("cc", "gcc", "clang")
OPTIONS = (
    *("-O2", "-ftree-vectorize", "-fvect-cost-model=unlimited"),  # -O3 unrolls the lanes: half as fast, slow to compile
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w"),
)
PROCESSOR = (("-march=native",), ())
"""Tried in order: not every compiler knows every processor."""
LONGEST_S = 60.0


@functools.cache
def library(weight: str) -> ctypes.CDLL:
    """The kernel with weights of the C type `weight`, uint8_t or double; made where it is not in `cache_folder` yet,
    and once more where what lies there cannot be loaded.
    """
    compiler = compiler_here()
    if compiler is None:
        raise ImportError(f"no C compiler ({', '.join(COMPILERS)}) on this machine")
    path = cache_folder() / f"kernel-{_made_from(compiler, weight)}-{weight}{sysconfig.get_config_var('SHLIB_SUFFIX')}"
    try:
        if path.exists():
            with suppress(OSError):  # a copy of the folder that a full disk ended, say
                return ctypes.CDLL(str(path))
        _make(compiler, weight, path)
        return ctypes.CDLL(str(path))
    except OSError as problem:
        raise ImportError(f"the kernel cannot be made or loaded at {path}: {problem}") from problem


def compiler_here() -> str | None:
    """The C compiler that makes the kernel: `$CC`, else the first of cc, gcc and clang."""
    named = os.environ.get("CC")
    return next((found for name in ([named] if named else COMPILERS) if (found := shutil.which(name))), None)


def cache_folder() -> Path:
    """Where made libraries lie: `labctl` in the user's cache folder, else one of its own in the temporary one."""
    with suppress(OSError, RuntimeError):
        folder = made_in_cache()
        if os.access(folder, os.W_OK) and _mine(folder):
            return folder
    return _temporary()


@functools.cache
def _temporary() -> Path:
    """A fresh folder that nobody else can write to; the library in it serves this process, and goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="labctl-kernel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _mine(folder: Path) -> bool:
    """Whether nobody else may put a library there, which would run as this user."""
    found = folder.stat()
    return os.name != "posix" or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _made_from(compiler: str, weight: str) -> str:
    """What a library depends on, as one short name: source, options, compiler and processor."""
    found = Path(compiler).resolve().stat()
    parts = [*OPTIONS, weight, compiler, str(found.st_size), str(found.st_mtime_ns), platform.machine(), _processor()]
    parts += [path.read_text() for path in _sources()]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def _sources() -> list[Path]:
    return sorted(path for path in FOLDER.iterdir() if path.suffix in (".c", ".h"))


def _processor() -> str:
    """What `-march=native` looks at, where it can be read: a home folder may be shared by machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "".join(sorted({line for line in lines if line.startswith(("flags", "model name", "Features", "CPU part"))}))


def _make(compiler: str, weight: str, path: Path) -> None:
    sources = "".join(f'#include "{source.name}"\n' for source in _sources() if source.suffix == ".c")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="making-") as folder:
        made, failure = Path(folder) / path.name, ""
        for processor in PROCESSOR:
            command = [compiler, *OPTIONS, *processor, f"-DWEIGHT={weight}", "-shared", "-fPIC", "-I", str(FOLDER)]
            command += ["-o", str(made), "-x", "c", "-", "-lm"]
            try:
                done = subprocess.run(command, input=sources, capture_output=True, text=True, timeout=LONGEST_S)
            except subprocess.TimeoutExpired as problem:
                raise OSError(f"{compiler} took longer than {LONGEST_S:g} s") from problem
            if done.returncode == 0:
                with made.open("rb") as whole:
                    os.fsync(whole.fileno())  # its name comes after its bytes: a power cut leaves no half of it
                made.replace(path)
                return
            failure = (done.stderr.strip().splitlines() or [str(done.returncode)])[-1]
        raise OSError(f"{compiler} failed: {failure}")
