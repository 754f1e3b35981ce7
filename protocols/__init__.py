"""Packaged protocols: experiments as TOML, found by name. May not: parse them; `labctl.config.conditions` does."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from labctl.errors import InputError


def names() -> list[str]:
    """Names of the packaged files, without `.toml`."""
    return sorted(
        entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if entry.name.endswith(".toml")
    )


def path(name: str) -> Path:
    """Path of a packaged file. Raises InputError for a name that is not packaged."""
    if name not in names():
        raise InputError(f"no packaged file named {name!r} in labctl.protocols; there are: {', '.join(names())}")
    return Path(str(files(__name__) / f"{name}.toml"))
