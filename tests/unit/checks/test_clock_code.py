"""A number on a screen is read through what a camera does to it, or not at all: never as another number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from labctl.checks.clock_code import BITS, cells, paint, read

WIDTH, HEIGHT = 640, 480


def filmed(
    number: int, corners, *, seed: int = 0, noise: float = 6.0, blur: float = 1.0, light=(30, 200)
) -> np.ndarray:
    """A room with a screen in it: the code's picture (with its margin) stretched over the quadrilateral `corners`."""
    code = paint(number, 8).astype(float) / 255
    size = code.shape[0]
    rows, right = [], []
    for (u, v), (x, y) in zip(((0, 0), (size, 0), (size, size), (0, size)), corners, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    plane = np.append(np.linalg.solve(np.array(rows, float), np.array(right, float)), 1.0).reshape(3, 3)
    xs, ys = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    u, v, w = plane @ np.stack([xs.ravel(), ys.ravel(), np.ones(xs.size)])
    u, v = (u / w).reshape(HEIGHT, WIDTH), (v / w).reshape(HEIGHT, WIDTH)
    inside = (u >= 0) & (u < size) & (v >= 0) & (v < size)
    drawing = np.random.default_rng(seed)
    room = ndimage.gaussian_filter(drawing.uniform(0, 255, (HEIGHT, WIDTH)), 12) * 1.5 - 64
    dark, bright = light
    screen = dark + (bright - dark) * ndimage.map_coordinates(code, [v, u], order=0, mode="nearest")
    picture = ndimage.gaussian_filter(np.where(inside, screen, room), blur) + drawing.normal(0, noise, room.shape)
    return np.repeat(np.clip(picture, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)


def square(x: float, y: float, side: float, degrees: float = 0.0) -> np.ndarray:
    """Corners of an upright square, turned about its middle."""
    turn = np.deg2rad(degrees)
    offsets = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * side / 2
    return np.array([x, y]) + offsets @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])


@pytest.mark.parametrize("number", [0, 1, 2, 12_345, 2**23, 2**BITS - 1])
def test_a_painted_number_is_read(number):
    assert read(paint(number)) == number


def test_from_one_number_to_the_next_one_bit_changes():
    for number in (0, 1, 7, 4095, 99_999):
        assert (cells(number) != cells(number + 1)).sum() == 2, "the two cells of one pair"


@pytest.mark.parametrize("degrees", [0, 10, -25, 45, 90, 130, 180, 271])
def test_a_screen_turned_by_any_angle_is_read(degrees):
    assert read(filmed(54_321, square(320, 240, 300, degrees))) == 54_321


@pytest.mark.parametrize("mirror", [np.fliplr, np.flipud])
def test_a_camera_that_mirrors_is_read(mirror):
    assert read(mirror(filmed(777, square(300, 240, 300, 8)))) == 777


def test_a_screen_seen_from_the_side_is_read():
    assert read(filmed(4_000_000, [(120, 90), (430, 140), (440, 360), (100, 420)])) == 4_000_000


@pytest.mark.parametrize("light", [(5, 250), (90, 150), (10, 60), (180, 250)])
def test_dim_flat_and_glaring_screens_are_read(light):
    assert read(filmed(31_337, square(320, 240, 360, 5), light=light)) == 31_337


def test_a_small_and_a_cut_off_code_are_not_read_as_anything():
    assert read(filmed(5, square(320, 240, 40))) is None
    assert read(filmed(5, square(40, 240, 300))) is None


@pytest.mark.thorough
def test_while_the_screen_changes_one_of_the_two_numbers_is_read():
    for number in (41, 127, 2**20 - 1):
        before, after = (filmed(n, square(320, 240, 320, 4)).astype(float) for n in (number, number + 1))
        for share in (0.0, 0.3, 0.5, 0.8, 1.0):
            assert read(((1 - share) * before + share * after).astype(np.uint8)) in (number, number + 1)
        rolled = np.where(np.arange(HEIGHT)[:, None, None] < 240, after, before)  # a rolling shutter
        assert read(rolled.astype(np.uint8)) in (number, number + 1)


def test_two_numbers_far_apart_in_one_picture_are_none():
    before, after = (filmed(n, square(320, 240, 320)).astype(float) for n in (1000, 5555))
    assert read((0.5 * before + 0.5 * after).astype(np.uint8)) is None


def test_a_room_without_a_code_has_no_number():
    for seed in range(10):
        blurred = ndimage.gaussian_filter(np.random.default_rng(seed).uniform(0, 255, (HEIGHT, WIDTH)), 6)
        assert read(np.clip(4 * (blurred - 128) + 128, 0, 255).astype(np.uint8)) is None
    assert read(np.zeros((HEIGHT, WIDTH, 3), np.uint8)) is None
    assert read(np.full((HEIGHT, WIDTH, 3), 255, np.uint8)) is None


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(
    number=st.integers(0, 2**BITS - 1),
    degrees=st.floats(0, 360),
    side=st.floats(150, 320),
    noise=st.floats(0, 12),
    seed=st.integers(0, 100),
)
def test_what_is_read_is_what_was_shown(number, degrees, side, noise, seed):
    found = read(filmed(number, square(320, 240, side, degrees), seed=seed, noise=noise))
    assert found in (number, None)
    assert found == number or side < 200 or noise > 8
