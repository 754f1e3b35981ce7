"""Packages of third parties for tests: put on disk as pip does, without pip."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    site: Path, name: str, files: Mapping[str, str], drivers: Mapping[str, str], *, version: str = "1.0"
) -> None:
    """Write a distribution into the folder `site`: its files by relative path, and its entry points in the group
    `labctl.drivers` by name.
    """
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, "utf-8")
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    lines = [f"{driver} = {place}\n" for driver, place in drivers.items()]
    (about / "entry_points.txt").write_text("[labctl.drivers]\n" + "".join(lines), "utf-8")
