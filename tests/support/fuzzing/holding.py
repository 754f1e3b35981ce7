"""One input to one parser: does it hold?"""

from __future__ import annotations

import os
import random
import resource
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.fuzzing.mutations import mutated
from support.fuzzing.target import Target, one_line
from support.fuzzing.targets import TARGETS

FINDS = Path(__file__).parent / "finds"
"""Inputs on which a parser once failed, one folder a parser: each stays, and is tried in every run of the tests."""
MEMORY = Path("/dev/shm")
CPU_S = 5.0
"""Of one input, however it was spoilt: what takes longer hangs."""
MOST_TRIES = 3000


def held(target: Target, data: bytes) -> None:
    """Hand `data` to a parser. Raises AssertionError where it raises what it may not, takes CPU_S or says two lines."""
    folder, begun = _empty(), _cpu_s()
    try:
        target.parse(data, folder)
    except target.raises as error:
        one_line(error)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error
    finally:
        if any(folder.iterdir()):
            _empty.cache_clear()
            shutil.rmtree(folder, ignore_errors=True)
    assert _cpu_s() - begun < CPU_S, f"{_cpu_s() - begun:.1f} s of CPU"


def shortened(target: Target, data: bytes) -> bytes:
    """A shorter input that fails as `data` does, by leaving out pieces, of MOST_TRIES; `data` where none does."""
    how, tries, size = failure(target, data), MOST_TRIES, max(1, len(data) // 2)
    while how and size and tries > 0:
        at = 0
        while at < len(data) and tries > 0:
            fewer, tries = data[:at] + data[at + size :], tries - 1
            if failure(target, fewer) == how:
                data = fewer
            else:
                at += size
        size //= 2
    return data


def failure(target: Target, data: bytes) -> str:
    """In what way a parser fails: the class of what it raises it may not, "" where it holds."""
    try:
        held(target, data)
    except AssertionError as error:
        return type(error.__cause__).__name__ if error.__cause__ else str(error).partition(":")[0][:20]
    return ""


@cache
def _empty() -> Path:
    """A folder with nothing in it, in memory where there is such a place; another one once it was written to."""
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))


def inputs(name: str, seed: int) -> Iterator[bytes]:
    """Spoilt inputs of a parser without end; the same for the same seed."""
    draw = random.Random(f"{name} {seed}")
    samples = list(TARGETS[name].samples())
    while True:
        yield mutated(draw, samples)


def finds(name: str) -> list[Path]:
    """What is kept of a parser."""
    return sorted((FINDS / name.replace(" ", "-")).glob("*"))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
