"""Every exception a vendor's module exports becomes one of labctl's, in one line that keeps the vendor's words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.robots.emulators import leave_out_without_client

FRANKA = """
import franky
from labctl.drivers.franka import {module}
from labctl.errors import DeviceLost, DeviceRefused
found = [v for v in vars(franky).values() if isinstance(v, type) and issubclass(v, BaseException)]
found = [v for v in found if v.__module__ == "franky._franky"]  # not those of Desk's web pages
assert len(found) >= 14, found
if {module!r} == "hand":  # it runs no motions
    found = [v for v in found if issubclass(v, (franky.Exception, franky.GripperException))]
for kind in found:
    error = {module}.mapped(kind("two\\nlines of words"))
    assert isinstance(error, (DeviceLost, DeviceRefused)), kind
    assert "two lines of words" in str(error) and "\\n" not in str(error), kind
    assert any(issubclass(kind, caught) for caught in {module}.VENDOR), f"{{kind}} is not caught"
    gone = kind in (franky.NetworkException, franky.ProtocolException, franky.IncompatibleVersionException)
    assert isinstance(error, DeviceLost) == gone, kind
print(len(found))
"""
# What pybind11 makes of C++ exceptions (its documentation, "Built-in C++ to Python exception translation")
UR = """
from labctl.drivers.ur import robot as ur5
from labctl.errors import DeviceLost, DeviceRefused
for kind in (RuntimeError, ValueError, IndexError, OverflowError, MemoryError):
    error = ur5.mapped(kind("not in range"))
    assert isinstance(error, DeviceRefused) and "not in range" in str(error), kind
    assert kind in ur5.VENDOR
for words in ("Timeout connecting to UR dashboard server.", "RTDE: connection lost", "end of file", "Broken pipe"):
    assert isinstance(ur5.mapped(RuntimeError(words)), DeviceLost), words
print(9)
"""

# librealsense throws C++ exceptions alone, so pybind11's are all there are; OpenCV has one of its own
REALSENSE = """
from labctl.drivers.realsense.librealsense import rs
from labctl.drivers.realsense import device as realsense_device
from labctl.errors import DeviceLost, DeviceRefused
own = [v for v in vars(rs).values() if isinstance(v, type) and issubclass(v, BaseException)]
assert own == [], own
for kind in (RuntimeError, ValueError, IndexError, OverflowError, MemoryError):
    error = realsense_device.mapped(kind("two\\nlines of words"))
    assert isinstance(error, DeviceLost) and str(error) == "two lines of words", kind
    assert kind in realsense_device.VENDOR
assert isinstance(realsense_device.mapped(RuntimeError("xioctl failed: Device or resource busy")), DeviceRefused)
print(6)
"""
OPENCV = """
import cv2
from labctl.drivers.opencv import camera as opencv_camera
from labctl.errors import DeviceLost
found = [v for v in vars(cv2).values() if isinstance(v, type) and issubclass(v, BaseException)]
assert set(found) == {cv2.error}, found
error = opencv_camera.mapped(cv2.error("two\\nlines of words"))
assert isinstance(error, DeviceLost) and str(error) == "two lines of words"
print(1)
"""


@pytest.mark.parametrize(
    ("code", "least"),
    [
        (FRANKA.format(module="robot"), 14),
        (FRANKA.format(module="hand"), 8),
        (UR, 9),
        (REALSENSE, 6),
        (OPENCV, 1),
    ],
    ids=["franka", "franka_hand", "ur5", "realsense", "opencv_camera"],
)
def test_every_exception_is_mapped(code: str, least: int, request: pytest.FixtureRequest) -> None:
    leave_out_without_client(request.node.callspec.id)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= least
