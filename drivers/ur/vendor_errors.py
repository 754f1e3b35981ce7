"""labctl's errors for those of ur_rtde.

May not: import ur_rtde.
"""

from __future__ import annotations

from labctl.errors import DeviceError, DeviceLost, DeviceRefused

# What pybind11 makes of the C++ exceptions of ur_rtde and boost: std::exception and its families.
VENDOR = (RuntimeError, ValueError, IndexError, OverflowError, MemoryError)
GONE = ("connect", "timeout", "timed out", "socket", "end of file", "broken pipe", "reset by peer")


def mapped(error: BaseException) -> DeviceError:
    """labctl's error for one of ur_rtde's, which says in words alone whether the link is gone."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RuntimeError) and any(word in text.lower() for word in GONE):
        return DeviceLost(f"UR: {text}")
    return DeviceRefused(f"UR: {text}")
