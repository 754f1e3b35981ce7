"""librealsense's Python module `rs`, with the libusb that its wheel needs and does not bring.

May not: take another libusb than the system's while there is one, or let librealsense report how it is used unless
the lab has set RS2_RUM_CLOUD_ENABLED=1.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

LIBUSB = "libusb-1.0.so.0"


def ready_libusb() -> None:
    """Load the package's libusb where the system has none: a wheel that asks for one then finds it."""
    try:
        ctypes.CDLL(LIBUSB)
    except OSError:
        import libusb_package

        with contextlib.suppress(OSError):  # importing pyrealsense2 says what is missing
            ctypes.CDLL(str(libusb_package.get_library_path()), mode=ctypes.RTLD_GLOBAL)


ready_libusb()
# From 2.59 on librealsense counts its use in ~/.rum/rum.json, whatever one says, and sends that to its makers where
# this says so, or where its own settings do and this is not set.
os.environ.setdefault("RS2_RUM_CLOUD_ENABLED", "0")
import pyrealsense2  # noqa: E402 - finds the libusb that is loaded by now

rs: Any = pyrealsense2  # made of C++: a type checker sees none of it
