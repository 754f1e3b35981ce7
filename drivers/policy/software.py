"""What a policy runs on: the distributions that a module loaded in this process has brought, or what a server says of
itself. Its versions tell arms apart, so they go where an arm's name goes.

May not: import anything of the policy's, or believe what a server says: it is the server's own account.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from labctl.plain import Json

TABLES = ("versions", "packages", "software")  # of a server's metadata: name -> version
ENDING = "_version"  # and "torch_version" beside them
MOST, LONG = 300, 80
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def loaded(module: str) -> dict[str, str]:
    """Name and version of every distribution of which a module is loaded in this process, and of `module`, where no
    distribution has it, the first 16 digits of its file's SHA-256.
    """
    names = {name.partition(".")[0] for name in list(sys.modules)}
    owners = metadata.packages_distributions()
    found = {owner for name in names for owner in owners.get(name, ())}
    versions = {name: metadata.version(name) for name in sorted(found, key=str.lower)}
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if top not in owners and file is not None:
        try:
            versions[f"{module} (file)"] = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
        except OSError:  # it was taken away after it was loaded
            versions[f"{module} (file)"] = "no longer there"
    return versions


def reported(table: Mapping[str, Json]) -> dict[str, str]:
    """Name and version of what a server's metadata says it runs on: tables by one of TABLES, entries that end in
    ENDING. What is no name, or too long, is passed over.
    """
    said: dict[str, Json] = {key[: -len(ENDING)]: value for key, value in table.items() if str(key).endswith(ENDING)}
    for name in TABLES:
        inner = table.get(name)
        said |= inner if isinstance(inner, Mapping) else {}
    kept = {
        str(name): " ".join(str(version).split())
        for name, version in said.items()
        if isinstance(version, str | int | float) and _NAME.fullmatch(str(name))
    }
    return dict([(name, version) for name, version in kept.items() if 0 < len(version) <= LONG][:MOST])
