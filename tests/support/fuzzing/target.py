"""What a parser under spoilt input is.

May not: know one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labctl.errors import LabctlError

Parse = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """A parser: good inputs, how it is called with bytes and an empty folder, and what else it may raise."""

    samples: Callable[[], Sequence[bytes]]
    parse: Parse
    raises: tuple[type[Exception], ...] = field(default=(LabctlError,))
    refused: bool = False  # its good input too, as it stands alone there


def one_line(error: BaseException) -> None:
    """Whatever is refused is refused in one line that says something."""
    said = str(error)
    assert said.strip() and "\n" not in said and "\r" not in said, f"not one line: {said[:200]!r}"
