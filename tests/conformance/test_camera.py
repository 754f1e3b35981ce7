"""What every camera does, whichever it is: the contract of labctl.devices.Camera."""

import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.devices import Camera, load

ROOT = Path(__file__).parents[2]
FIXTURE = tomllib.loads((ROOT / "fixtures" / "two_totes.toml").read_text())
CELL = tomllib.loads((ROOT / "hw_configs" / "sim_fr3.toml").read_text())
SIZE = {"width": 320, "height": 240, "rate_hz": 10.0}
CAMERAS = [entry["name"] for entry in CELL["camera"]]


@pytest.fixture(params=CAMERAS)
def camera(request):
    entry = next(entry for entry in CELL["camera"] if entry["name"] == request.param)
    made = load(entry["driver"], {**entry["options"], **SIZE}, cell=CELL, fixture=FIXTURE)
    made.connect(0)
    yield made
    made.close()


def test_it_is_a_camera_and_says_what_kind(camera):
    assert isinstance(camera, Camera)
    assert camera.kind in ("real", "sim", "replay", "faults", "emulated")
    assert (camera.width, camera.height, camera.rate_hz) == (320, 240, 10.0)


def test_frames_are_rgb_bytes_of_the_promised_size(camera):
    frame = camera.grab(SECOND)
    assert frame.image.shape == (camera.height, camera.width, 3)
    assert frame.image.dtype == np.uint8


def test_frames_come_at_the_promised_rate_with_rising_numbers_and_device_times(camera):
    frames = [frame for ms in range(0, 3000, 10) if (frame := camera.grab(ms * 1_000_000)) is not None]
    assert 29 <= len(frames) <= 31
    for before, after in pairwise(frames):
        assert after.number > before.number
        assert after.device_time > before.device_time
        assert after.host_ns > before.host_ns


def test_connecting_and_closing_twice_is_harmless(camera):
    camera.connect(SECOND)
    assert camera.grab(SECOND) is not None
    camera.close()
    camera.close()


def test_a_frame_belongs_to_the_caller(camera):
    first = camera.grab(SECOND)
    kept = first.image.copy()
    camera.grab(2 * SECOND)
    assert np.array_equal(first.image, kept)
