"""librealsense's Python module `rs`, with the libusb that its wheel needs and does not bring.

May not: take another libusb than the system's while there is one.
"""

from __future__ import annotations

import contextlib
import ctypes
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
import pyrealsense2  # noqa: E402 - finds the libusb that is loaded by now

rs: Any = pyrealsense2  # made of C++: a type checker sees none of it
