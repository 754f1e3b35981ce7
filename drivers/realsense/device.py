"""A RealSense device before and after it streams: finding it and its streams, setting options, describing it.

May not: stream. Everything here is called before or just after streaming begins.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from labctl.drivers.realsense.librealsense import rs
from labctl.errors import DeviceError, DeviceLost, DeviceRefused
from labctl.plain import CameraAbout, Lens, Placed

# librealsense's own exceptions arrive as RuntimeError, C++'s as the others (pybind11's documentation, "Built-in C++ to
# Python exception translation").
VENDOR = (RuntimeError, ValueError, IndexError, OverflowError, MemoryError)
FORMATS = {rs.stream.color: rs.format.rgb8, rs.stream.depth: rs.format.z16}


def mapped(error: Exception) -> DeviceError:
    """labctl's error for one of librealsense's, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return DeviceRefused(f"{text}; another program may use it") if "busy" in text.lower() else DeviceLost(text)


@contextlib.contextmanager
def mapping() -> Iterator[None]:
    """Raises labctl's error for librealsense's."""
    try:
        yield
    except VENDOR as error:
        raise mapped(error) from error


def choose(devices: Sequence[Any], serial: str) -> Any:
    """The device of that serial number, or the only one. Raises DeviceLost, or DeviceRefused if there are several."""
    found = {device.get_info(rs.camera_info.serial_number): device for device in devices}
    if not found:
        raise DeviceLost("no RealSense camera is connected; check its cable, and the udev rules of librealsense")
    if not serial and len(found) > 1:
        raise DeviceRefused(f"{len(found)} cameras are connected; say which: serial = {' or '.join(map(repr, found))}")
    if serial and serial not in found:
        raise DeviceLost(f"there is no camera with this serial number; connected: {', '.join(sorted(found))}")
    return found[serial or next(iter(found))]


def find_stream(device: Any, stream: Any, size: tuple[int, int], rate_hz: float) -> tuple[Any, Any]:
    """The sensor and profile of a stream as asked for. Raises DeviceRefused naming what there is instead."""
    offers: dict[tuple[int, int, float], tuple[Any, Any]] = {}
    for sensor in device.query_sensors():
        for profile in sensor.get_stream_profiles():
            if profile.stream_type() == stream and profile.format() == FORMATS[stream]:
                video = profile.as_video_stream_profile()
                offers[video.width(), video.height(), video.fps()] = sensor, profile
    wanted = (*size, rate_hz)
    if wanted in offers:
        return offers[wanted]
    listed = ", ".join(f"{w} x {h} at {fps}" for w, h, fps in sorted(offers)) or "nothing"
    usb = rs.camera_info.usb_type_descriptor
    by = f", connected by USB {device.get_info(usb)}" if device.supports(usb) else ""
    raise DeviceRefused(
        f"it gives no {stream.name} of {size[0]} x {size[1]} at {rate_hz:g} pictures per second{by}; it gives {listed}"
    )


def set_options(sensor: Any, wanted: Mapping[str, float]) -> None:
    """Set options in order and read each back. Raises DeviceRefused for one that was not taken."""
    name_of = sensor.get_info(rs.camera_info.name)
    for name, value in wanted.items():
        option = rs.option.__members__[name]
        if not sensor.supports(option) or sensor.is_option_read_only(option):
            offered = [o.name for o in sensor.get_supported_options() if not sensor.is_option_read_only(o)]
            raise DeviceRefused(f"{name_of} has no {name} to set; it has {', '.join(sorted(offered)) or 'none'}")
        limits = sensor.get_option_range(option)
        if not limits.min <= value <= limits.max:
            raise DeviceRefused(f"{name_of}: {name} must be from {limits.min:g} to {limits.max:g}, found {value:g}")
        sensor.set_option(option, value)
        _check_option(sensor, name, value)


def check_options(sensor: Any, wanted: Mapping[str, float]) -> None:
    """Read options back once more, when all are set and frames come. Raises DeviceRefused for one that has changed."""
    for name, value in wanted.items():
        if name != "visual_preset":  # reads "custom" once anything that it sets has been set otherwise
            _check_option(sensor, name, value)


def _check_option(sensor: Any, name: str, value: float) -> None:
    option = rs.option.__members__[name]
    found, step = sensor.get_option(option), sensor.get_option_range(option).step
    if abs(found - value) >= max(step / 2, 1e-6):
        who = sensor.get_info(rs.camera_info.name)
        raise DeviceRefused(f"{who} did not take {name} = {value:g}, it has {found:g}; steps are of {step:g}")


def describe(device: Any, profiles: Mapping[Any, Any]) -> CameraAbout:
    """What is to be known beside the pictures; depth is aligned, so the intrinsics are those of the colour sensor."""

    def info(key: Any) -> str | None:
        return device.get_info(key) if device.supports(key) else None

    colour, depth = profiles[rs.stream.color].as_video_stream_profile(), profiles.get(rs.stream.depth)
    sensors = {sensor.get_info(rs.camera_info.name): sensor for sensor in device.query_sensors()}
    between = None
    if depth is not None:
        with contextlib.suppress(*VENDOR):  # a recording that has no depth knows none
            between = {"color_from_depth": _extrinsics(depth, colour)}
    scale = device.first_depth_sensor().get_depth_scale() if depth is not None else None
    return {
        "model": info(rs.camera_info.name),
        "serial": info(rs.camera_info.serial_number),
        "firmware": info(rs.camera_info.firmware_version),
        "usb": info(rs.camera_info.usb_type_descriptor),
        "software": f"librealsense {rs.__version__}",
        "settings": {name: _read_options(sensor) for name, sensor in sensors.items()},
        "intrinsics": _intrinsics(colour),
        "extrinsics": between,
        "depth_scale_m": None if scale is None else round(scale, 9),  # a float32: 0.001 reads 0.0010000000475
        "depth_intrinsics": None if depth is None else _intrinsics(depth.as_video_stream_profile()),
    }


def _read_options(sensor: Any) -> dict[str, float]:
    found = {}
    for option in sensor.get_supported_options():
        with contextlib.suppress(*VENDOR):  # some can be read in some modes only
            found[option.name] = float(sensor.get_option(option))
    return found


def _intrinsics(profile: Any) -> Lens:
    """Of the image, in pixels from the middle of its upper left one: focal lengths, principal point, distortion."""
    found = profile.get_intrinsics()
    return {
        "width": found.width,
        "height": found.height,
        "fx": found.fx,
        "fy": found.fy,
        "cx": found.ppx,
        "cy": found.ppy,
        "distortion": found.model.name,
        "coefficients": list(found.coeffs),
    }


def _extrinsics(source: Any, target: Any) -> Placed:
    """rotation (3 x 3, rows) and translation_m of x_target = rotation x_source + translation."""
    found = source.get_extrinsics_to(target)
    return {
        "rotation": np.reshape(found.rotation, (3, 3), order="F").tolist(),
        "translation_m": list(found.translation),
    }
