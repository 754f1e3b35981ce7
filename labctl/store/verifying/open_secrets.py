"""Where an address in a TOML file that is sealed, and published as it is, holds a password or a key.

May not: show that password, open files, or find a secret that stands elsewhere than in an address.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

from labctl.config.toml_text import Location, place
from labctl.plain import Json

# An address with a password before its host; else what its query begins with and every name with a value in it.
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s@:]*:[^/?#\s]+@")
_QUERY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^?#\s]*\?([^#\s]+)")
_GIVEN = re.compile(r"(?:^|[&;])([^=&;]+)=[^&;]")
_SECRET = re.compile(r"pass|pwd|secret|token|key(?!frame|int)|auth(?!ors?$)|credential|signature|^sig$", re.IGNORECASE)


def secrets_in(text: str, where: str) -> list[str]:
    """A line for each text value of a TOML file in which an address holds a password, or a part of its query that is
    called like a secret: its place, table and key. where: the file's name. [] of what is no TOML.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError):
        return []
    found = [(at, name, what) for at, name, value in _texts(document) if (what := _secret_of(value)) is not None]
    return [f"{place(where, text, at)}: {name} holds {what}" for at, name, what in found]


def _secret_of(value: str) -> str | None:
    """What is secret in the addresses of a text, in words."""
    if _PASSWORD.search(value):
        return "an address with a password"
    given = (name for query in _QUERY.findall(value) for name in _GIVEN.findall(query))
    return "an address with a key or password in its query" if any(map(_SECRET.search, given)) else None


def _texts(value: Json, at: Location = (), table: str = "", key: str = "") -> Iterator[tuple[Location, str, str]]:
    """Every text: its place, its table and key in words ("source of [camera room.options]"), itself."""
    if isinstance(value, str):
        yield at, f"{key} of [{table}]" if table else key, value
    elif isinstance(value, Mapping):
        inside = ".".join(part for part in (table, key) if part)
        for name, one in value.items():
            yield from _texts(one, (*at, name), inside, name)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            named = one.get("name", number + 1) if isinstance(one, Mapping) else None
            yield from _texts(one, (*at, number), table, key if named is None else f"{key} {named}")
