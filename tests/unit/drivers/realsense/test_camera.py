"""The RealSense driver on librealsense itself: a pipeline fed by its software_device."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.cameras.camera_grabs import frames, until, until_lost

from labctl.devices import Camera, load
from labctl.errors import DeviceLost, DeviceRefused, InputError
from labctl.testing.given import SIMULATED

pytest.importorskip("labctl.drivers.realsense.librealsense")
from support.cameras.alignment import check_alignment
from support.cameras.software_realsense import BASELINE_M, CLOCK, FOCAL, SoftRealSense

pytestmark = pytest.mark.real_time

WITHOUT_LIBUSB = """
from labctl.drivers.realsense import librealsense
librealsense.LIBUSB = "libof-no-system.so.0"
librealsense.ready_libusb()
print("libusb_package" in open("/proc/self/maps").read())
"""
SIZE = {"width": 320, "height": 240, "rate_hz": 30.0}


def camera(**options: Any) -> Camera:
    return load("realsense", {**SIZE, **options}, **SIMULATED)


def test_a_system_without_libusb_takes_the_packages() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_LIBUSB], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.fixture
def live(soft: SoftRealSense) -> Iterator[Camera]:
    made = camera()
    made.connect(CLOCK.now_ns())
    yield made
    made.close()


# -- live


def test_frames_carry_the_pixels_number_time_and_domain_that_were_sent(soft: SoftRealSense, live: Camera) -> None:
    for _ in range(25):
        (frame,) = frames(live, 1)
        assert np.array_equal(frame.image, soft.picture(frame.number))
        assert frame.device_time == pytest.approx(frame.number * 1000 / 30)
        assert frame.domain == "global_time" and soft.sent_ns[frame.number] <= frame.host_ns <= CLOCK.now_ns()
    assert live.kind == "real" and isinstance(live, Camera)


def test_depth_is_seen_from_the_colour_sensor(live: Camera) -> None:
    check_alignment(until(live, lambda frame: frame.depth is not None))


def test_a_picture_whose_depth_stays_away_is_a_frame_without_depth(soft: SoftRealSense, live: Camera) -> None:
    until(live, lambda frame: frame.depth is not None)
    soft.fault = "no_depth"
    alone = until(live, lambda frame: frame.depth is None)
    assert np.array_equal(alone.image, soft.picture(alone.number))
    soft.fault = ""
    both = until(live, lambda frame: frame.depth is not None)
    check_alignment(both)
    assert live.about()["counts"]["picture_without_depth"] >= 1


def test_depth_alone_is_no_frame_but_is_counted_and_at_last_a_loss(soft: SoftRealSense, live: Camera) -> None:
    frames(live, 2)
    soft.fault = "no_color"
    error = until_lost(live)
    assert isinstance(error, DeviceLost) and "no picture for" in str(error)
    assert live.about()["counts"]["depth_without_picture"] >= 1


@pytest.mark.parametrize(("fault", "says"), [("silent", "no picture for"), ("frozen", "same picture over and over")])
def test_a_camera_that_falls_silent_or_freezes_is_lost_and_can_be_connected_again(
    soft: SoftRealSense, live: Camera, fault: Any, says: str
) -> None:
    last = frames(live, 3)[-1]
    soft.fault = fault
    error = until_lost(live)
    assert isinstance(error, DeviceLost) and says in str(error)
    soft.fault = ""
    live.connect(CLOCK.now_ns())
    again = frames(live, 3)
    assert again[0].host_ns > last.host_ns and np.array_equal(again[0].image, soft.picture(again[0].number))


def test_unplugged_it_is_lost_and_plugged_in_again_it_comes_back(
    soft: SoftRealSense, live: Camera, plugged: list[SoftRealSense]
) -> None:
    frames(live, 2)
    soft.fault = "silent"
    plugged.clear()
    assert isinstance(until_lost(live), DeviceLost)
    with pytest.raises(DeviceLost, match="no RealSense camera is connected; check its cable"):
        live.connect(CLOCK.now_ns())
    with SoftRealSense() as anew:  # what was plugged in again is another device to the library
        plugged.append(anew)
        live.connect(CLOCK.now_ns())
        assert frames(live, 2)
        live.close()


def test_colour_alone_takes_no_depth(soft: SoftRealSense) -> None:
    made = camera(depth=False)
    made.connect(CLOCK.now_ns())
    assert all(frame.depth is None for frame in frames(made, 3))
    assert made.about()["depth_scale_m"] is None and made.about()["extrinsics"] is None
    made.close()


def test_what_is_known_of_it_is_what_the_camera_says(live: Camera) -> None:
    about = json.loads(json.dumps(live.about()))
    said = {key: about[key] for key in ("model", "serial", "firmware", "usb", "depth_scale_m")}
    assert said == {
        "model": "Soft D435",
        "serial": "soft-1",
        "firmware": "5.16.0.1",
        "usb": "3.2",
        "depth_scale_m": 0.001,
    }
    lens = about["intrinsics"]
    assert (lens["fx"], lens["cx"], lens["cy"], lens["width"]) == (FOCAL["color"], 159.5, 120.25, 320)
    between = about["extrinsics"]["color_from_depth"]
    assert between["translation_m"] == pytest.approx([BASELINE_M, 0, 0]) and between["rotation"][0] == [1, 0, 0]
    assert about["settings"]["RGB Camera"]["exposure"] == 156


# -- which camera


def test_without_a_serial_several_cameras_are_refused(plugged: list[SoftRealSense]) -> None:
    plugged += [SoftRealSense("one"), SoftRealSense("two")]
    with pytest.raises(DeviceRefused, match="2 cameras are connected; say which: serial = 'one' or 'two'"):
        camera().connect(0)


def test_the_serial_chooses_and_an_unknown_one_lists_what_is_there(plugged: list[SoftRealSense]) -> None:
    with SoftRealSense("one"), SoftRealSense("two") as two:
        plugged += [SoftRealSense("one"), two]
        made = camera(serial="two")
        made.connect(CLOCK.now_ns())
        assert made.about()["serial"] == "two"
        made.close()
        with pytest.raises(DeviceLost, match=r"RealSense three: .*no camera with this serial.*connected: one, two"):
            camera(serial="three").connect(0)


def test_a_real_computer_without_cameras_says_so() -> None:
    with pytest.raises(DeviceLost, match="no RealSense camera is connected"):
        camera().connect(0)


# -- what is asked of it


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ({"width": 640, "height": 480}, "no color of 640 x 480 at 30 pictures per second, connected by USB 3.2"),
        ({"rate_hz": 60.0}, "it gives 320 x 240 at 30"),
        ({"rate_hz": 30.5}, "at 30.5 pictures per second"),
    ],
)
def test_a_size_or_rate_it_does_not_offer_is_refused_with_what_it_does(
    plugged: list[SoftRealSense], size: dict[str, Any], says: str
) -> None:
    plugged.append(SoftRealSense())
    with pytest.raises(DeviceRefused) as caught:
        camera(**size).connect(0)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_options_are_set_in_order_and_read_back(soft: SoftRealSense) -> None:
    made = camera(
        color_sensor={"exposure": 120, "enable_auto_exposure": False, "white_balance": 5000},
        depth_sensor={"laser_power": 210, "emitter_enabled": True, "visual_preset": 3},
    )
    made.connect(CLOCK.now_ns())
    settings = made.about()["settings"]
    assert (settings["RGB Camera"]["exposure"], settings["RGB Camera"]["enable_auto_exposure"]) == (120, 0)
    assert (settings["Stereo Module"]["laser_power"], settings["Stereo Module"]["visual_preset"]) == (210, 3)
    made.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"color_sensor": {"exposure": 20000}}, "RGB Camera: exposure must be from 1 to 10000, found 20000"),
        ({"color_sensor": {"laser_power": 30}}, "RGB Camera has no laser_power to set; it has enable_auto_exposure"),
        ({"depth_sensor": {"stereo_baseline": 3}}, "Stereo Module has no stereo_baseline to set"),
    ],
)
def test_an_option_the_camera_does_not_take_is_refused_in_one_line(
    plugged: list[SoftRealSense], options: dict[str, Any], says: str
) -> None:
    plugged.append(SoftRealSense())
    with pytest.raises(DeviceRefused) as caught:
        camera(**options).connect(0)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_an_option_that_reads_back_differently_is_refused() -> None:
    from labctl.drivers.realsense.device import check_options, set_options

    class Stubborn:
        """A sensor that says yes and keeps another value; the preset aside, which others change."""

        def __init__(self) -> None:
            self._inner = SoftRealSense().device.query_sensors()[0]

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def get_option(self, option: Any) -> float:
            return 0.0

    says = "Stereo Module did not take laser_power = 90, it has 0; steps are of 30"
    for read_back in (set_options, check_options):
        with pytest.raises(DeviceRefused, match=says):
            read_back(Stubborn(), {"laser_power": 90.0})
    check_options(Stubborn(), {"visual_preset": 3.0})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"serial": 123}, "serial must be a text, found 123"),
        ({"color_sensor": {"exposition": 3}}, "color_sensor has no option 'exposition'"),
        ({"color_sensor": {"exposure": "long"}}, "color_sensor must be a table of librealsense's options"),
        ({"depth_sensor": 3}, "depth_sensor must be a table of"),
        ({"pace": False}, "pace means nothing for a camera"),
        ({"file": "no-such.db3"}, "there is no file no-such.db3"),
        ({"file": __file__, "serial": "x"}, "serial means nothing for a recording"),
        ({"depth": 1}, "depth must be true or false"),
        ({"laser": 1}, "no option 'laser'"),
    ],
)
def test_a_bad_option_is_one_line(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        camera(**options)
    assert says in str(caught.value) and "\n" not in str(caught.value)
