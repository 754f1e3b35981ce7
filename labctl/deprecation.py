"""Names that go: each warns for two releases, and a build fails that keeps one beyond them.

May not: warn of anything that `GOING` does not list. A name that is renamed keeps its old one like this, in its module:

    def __getattr__(name: str) -> object:
        return renamed(__name__, name, globals())
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import NamedTuple

RELEASES = 2
"""How many releases (the second number of a version) a name still works in."""


class Going(NamedTuple):
    """since: the first release that warns, "0.3". instead: what to use, a name of the same module or words."""

    since: str
    instead: str


GOING: dict[str, Going] = {}
"""The full name of what goes ("labctl.api.old_name") -> since when, and what to use instead."""


def gone_in(going: Going) -> str:
    """The release that has it no more: "0.5" for what warns since "0.3"."""
    major, minor = _release(going.since)
    return f"{major}.{minor + RELEASES}"


def overdue(version: str) -> list[str]:
    """Names that a release of this version may no longer have."""
    return [name for name, going in GOING.items() if _release(version) >= _release(gone_in(going))]


def warn_deprecated(name: str, depth: int = 1) -> None:
    """Warn whoever calls the caller. Raises KeyError for a name that is not listed."""
    going = GOING[name]
    message = f"{name} goes in labctl {gone_in(going)}; use {going.instead}"
    warnings.warn(message, FutureWarning, stacklevel=depth + 2)  # of all warnings the one that Python shows to users


def renamed(module: str, name: str, inside: Mapping[str, object]) -> object:
    """What a module gives for a name that it has no more: the new one's value, and a warning. Raises AttributeError."""
    full = f"{module}.{name}"
    going = GOING.get(full)
    if going is None or going.instead not in inside:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn_deprecated(full, depth=2)
    return inside[going.instead]


def _release(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        raise ValueError(f"{version!r} is no version")
    return int(found[1]), int(found[2])
