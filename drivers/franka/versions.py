"""Which libfranka is in the installed franky, and so which robot server it speaks to.

May not: connect to anything. Neither franky nor the FCI tells the version of the robot's system. A robot whose server
is of another version refuses the connection (`IncompatibleVersionException`), so the one that answers is known.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

from labctl.drivers.common.about import library

FRANKY = "franky-control"
_BUILT_IN = re.compile(r"libfranka[^/]*\.so\.(\d+)\.(\d+)\.(\d+)$")
# libfranka's docs/compatibility_matrix.rst: the first version of the library, and the robot server it speaks to
SERVERS = (((0, 18), 10), ((0, 15), 9), ((0, 14), 8), ((0, 13, 3), 7), ((0, 10), 6), ((0, 9, 1), 5))


@cache
def libfranka() -> tuple[int, ...] | None:
    """Its version, by the name of the file that franky's wheel brings; None of a franky that was built otherwise."""
    try:
        files = metadata.files(FRANKY) or ()
    except metadata.PackageNotFoundError:
        return None
    found = next(filter(None, (_BUILT_IN.search(str(file)) for file in files)), None)
    return None if found is None else tuple(map(int, found.groups()))


def client() -> str:
    """franky and its libfranka, in words."""
    built_in = libfranka()
    return library(FRANKY) + ("" if built_in is None else f", libfranka {'.'.join(map(str, built_in))}")


def robot_server(version: tuple[int, ...] | None) -> str | None:
    """The robot server that this libfranka speaks to, in words; None of one that is not known."""
    speaks = None if version is None else next((server for first, server in SERVERS if version >= first), None)
    return None if speaks is None else f"robot server {speaks}"
