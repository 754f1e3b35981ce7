"""Of what the bytes of a report depend on: which versions and which processor are here, and how they differ from those
of a manifest.

May not: refuse anything.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import import_module, metadata

from labctl.software import collect_pins

PACKAGES = ("av", "jinja2", "markupsafe", "matplotlib", "numpy", "pillow", "scipy")


def versions() -> dict[str, str]:
    """Name -> version: labctl and its code, Python, the machine, and the packages that compute and draw. cpu: what
    numpy uses of this processor: it takes logarithms otherwise on another one, to some 1e-16 of each.
    """
    pins = collect_pins()
    commit = pins["git"]
    found = {"labctl": pins["labctl"], "code": pins.get("code", ""), "python": platform.python_version()}
    if commit is not None:
        found["commit"] = commit["commit"] + (" with local changes" if commit["dirty"] else "")
    found["machine"], found["cpu"] = platform.machine(), _used_of_the_processor()
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def _used_of_the_processor() -> str:
    """The instruction sets that numpy has code for and that this processor has; empty where numpy does not say."""
    try:
        inside = vars(import_module("numpy._core._multiarray_umath"))
        return " ".join(name for name in inside["__cpu_dispatch__"] if inside["__cpu_features__"].get(name))
    except (ImportError, KeyError):
        return ""


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """A line for each that is another one here."""
    names = sorted({*then, *now})
    return [
        f"{name} {then.get(name) or 'none'} then, {now.get(name) or 'none'} here"
        for name in names
        if then.get(name, "") != now.get(name, "")
    ]
