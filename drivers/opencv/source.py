"""Where a camera's pictures come from: a device, a URL or a file, as a cell file names it, and what a device is called.

May not: open anything, or show a password or an address that the environment holds.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from labctl.errors import DeviceRefused

SCHEMES = ("http", "https", "rtsp")
SYSFS = Path("/sys/class/video4linux")
BY_ID = Path("/dev/v4l/by-id")


@dataclass(frozen=True, slots=True)
class Source:
    """`opened` is what is handed to a library; `shown` the same as a person may read it, without a password. Where an
    environment variable holds a URL, `variable` is its name and `opened` is empty until it is `looked_up`.
    """

    sort: Literal["device", "url", "file"]
    opened: str
    shown: str
    variable: str | None = None

    def looked_up(self) -> Source:
        """With the address that is to be opened. Raises DeviceRefused, which does not show it."""
        if self.variable is None:
            return self
        address = os.environ.get(self.variable, "").strip()
        if not address:
            raise DeviceRefused(f"the environment variable {self.variable} (source_env) is not set")
        if address.partition("://")[0] not in SCHEMES or "://" not in address:
            begins = f"{', '.join(f'{scheme}://' for scheme in SCHEMES[:-1])} or {SCHEMES[-1]}://"
            raise DeviceRefused(f"${self.variable} (source_env) holds no address that begins with {begins}")
        return Source("url", address, self.shown)


def parse_source(given: int | str) -> Source:
    """The source an option names: an index, a /dev path, a URL of a known scheme, or a file that exists.

    Raises ValueError with what is wrong, as what is said of the option.
    """
    if isinstance(given, int) and given >= 0:
        return Source("device", f"/dev/video{given}", f"/dev/video{given}")
    if isinstance(given, int) or not given.strip():
        raise ValueError(
            f"must be an index, a device, a URL or a file, found {given!r}; "
            'best source = "/dev/v4l/by-id/…", which does not change'
        )
    if "://" in given:
        parts = urlsplit(given)
        if parts.scheme not in SCHEMES:
            raise ValueError(f"has the scheme {parts.scheme!r}; known are {', '.join(SCHEMES)}")
        query = re.sub("=[^&]*", "=…", parts.query)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query)
        return Source("url", given, shown.geturl())
    if Path(given).is_file():  # also below /dev/shm
        return Source("file", given, given)
    if given.startswith("/dev/"):
        return Source("device", given, given)
    raise ValueError(f"names nothing: there is no file {given}")


def why_absent(source: Source) -> str:
    """What to tell a person when a live source cannot be opened."""
    if source.sort == "url":
        return "no stream of pictures comes from there; open it in a browser or a player to see"
    if not Path(source.opened).exists():
        there = sorted(str(path) for path in BY_ID.glob("*")) if BY_ID.is_dir() else []
        return f"there is no such device; found: {', '.join(there) or 'no camera at all'}"
    return "it cannot be opened as a camera; another program may use it, or you are not in the group video"


def device_names(source: Source) -> tuple[str, str | None]:
    """Model and serial number of a device, as the kernel has them; of anything else its sort and None."""
    if source.sort != "device":
        return source.sort, None
    folder = SYSFS / Path(source.opened).resolve().name
    # `device` is the USB interface; its parent, found through the link, is the camera
    return _line(folder / "name") or "unknown", _line((folder / "device").resolve().parent / "serial")


def _line(path: Path) -> str | None:
    try:
        return path.read_text("utf-8").strip() or None
    except OSError:
        return None
