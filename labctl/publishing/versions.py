"""Of what the bytes of a report depend on: which versions are here, and how they differ from those of a manifest.

May not: refuse anything.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata

from labctl.software import collect_pins

PACKAGES = ("av", "jinja2", "markupsafe", "matplotlib", "numpy", "pillow", "scipy")


def versions() -> dict[str, str]:
    """Name -> version: labctl and its code, Python, the machine, and the packages that compute and draw."""
    pins = collect_pins()
    commit = pins["git"]
    found = {"labctl": pins["labctl"], "code": pins.get("code", ""), "python": platform.python_version()}
    if commit is not None:
        found["commit"] = commit["commit"] + (" with local changes" if commit["dirty"] else "")
    found["machine"] = platform.machine()
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """A line for each that is another one here."""
    names = sorted({*then, *now})
    return [
        f"{name} {then.get(name) or 'none'} then, {now.get(name) or 'none'} here"
        for name in names
        if then.get(name, "") != now.get(name, "")
    ]
