"""A policy reads what the card says and nothing else: keys, conventions, shapes, and pictures of the right moment."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.policies.cards import CAMERA, card

from labctl.clock import MILLISECOND, SECOND
from labctl.config.policy_card import Card, Image, Input
from labctl.devices import Observation, Picture
from labctl.drivers.policy import inputs as inputs
from labctl.errors import DeviceRefused

POSE = np.array([0.4, 0.1, 0.3, *Rotation.from_euler("xyz", [3.0, 0.2, -0.5]).as_quat()])
ARRAYS = {"q": np.linspace(0, 0.6, 7), "dq": np.full(7, 0.1), "tcp": POSE, "gripper": np.array([0.02])}


def flat(value: int, height: int = 48, width: int = 64) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def seen(*values: int, period_ns: int = SECOND // 20, camera: str = "wrist") -> Observation:
    """An observation with one picture of each brightness, the last one now."""
    pictures = tuple(Picture(flat(value), i * period_ns) for i, value in enumerate(values))
    return Observation((len(values) - 1) * period_ns, ARRAYS, "Move the items.", {camera: pictures} if values else {})


def entry(**given: Any) -> Input:
    return Input(key=given.pop("key", "k"), **given)


def read_of(made: dict[str, Any]) -> Card:
    """A card, from the table that `card` makes of its text."""
    return Card.model_validate_json(json.dumps(made))


def test_every_source_gives_its_value_under_its_key():
    made = card(inputs=CAMERA.format(key="observation/wrist", camera="wrist"))
    more = [entry(key="prompt", prompt=True), entry(key="bias", constant=[1.0, 2.0]), entry(key="n", constant=3)]
    made["input"] += [one.model_dump(mode="json") for one in more]
    read = inputs.read(read_of(made), seen(9))
    assert list(read) == ["observation/joint_position", "observation/wrist", "prompt", "bias", "n"]
    assert read["observation/joint_position"].dtype == np.float32
    assert read["observation/joint_position"] == pytest.approx(ARRAYS["q"])
    assert read["observation/wrist"].shape == (48, 64, 3) and read["observation/wrist"].dtype == np.uint8
    assert read["prompt"] == "Move the items." and read["bias"].tolist() == [1.0, 2.0] and read["n"] == 3


def test_states_are_joined_in_the_order_of_the_card():
    made = card()
    made["input"][0] |= {"state": ["tcp_position", "tcp_quaternion_wxyz", "gripper"], "dtype": "float64"}
    (vector,) = inputs.read(read_of(made), seen()).values()
    assert vector.dtype == np.float64
    assert vector == pytest.approx([*POSE[:3], POSE[6], *POSE[3:6], 0.75])  # 20 of 80 mm open: three quarters closed


def test_droids_cartesian_position_is_a_place_and_three_fixed_axis_angles():
    made = card()
    made["input"][0] |= {"state": ["tcp_position", "tcp_euler_xyz"]}
    (vector,) = inputs.read(read_of(made), seen()).values()
    assert vector == pytest.approx([0.4, 0.1, 0.3, 3.0, 0.2, -0.5], abs=1e-6)


def test_gr00ts_nine_numbers_are_a_place_and_two_rows_of_the_turned_matrix():
    """Isaac-GR00T examples/DROID: R(euler xyz) @ [[0, 0, -1], [-1, 0, 0], [0, 1, 0]], its first two rows."""
    made = card()
    made["tool"] = {"shift_m": [0.0, 0.0, 0.0], "turn_xyzw": [0.5, -0.5, -0.5, 0.5]}
    made["input"][0] |= {"state": ["tcp_position", "tcp_rot6d_rows"]}
    (vector,) = inputs.read(read_of(made), seen()).values()
    turned = Rotation.from_quat(POSE[3:]).as_matrix() @ np.array([[0, 0, -1], [-1, 0, 0], [0, 1, 0]])
    assert vector == pytest.approx([*POSE[:3], *turned[:2].ravel()], abs=1e-6)


def test_a_camera_without_a_picture_is_an_error_and_not_a_black_one():
    made = card(inputs=CAMERA.format(key="k", camera="wrist"))
    with pytest.raises(DeviceRefused, match="no picture of camera 'wrist'"):
        inputs.read(read_of(made), seen(1, camera="other"))


@pytest.mark.parametrize(
    ("steps", "brightness"),
    [([0], 40), ([-1, 0], [30, 40]), ([-3, -1, 0], [10, 30, 40]), ([-9, 0], [0, 40])],
)
def test_earlier_pictures_are_those_nearest_in_time_and_the_oldest_where_there_was_none(
    steps: list[int], brightness: Any
):
    """Pictures every 50 ms, actions at 20 Hz: a step back is one picture back."""
    made = card(inputs=CAMERA.format(key="k", camera="wrist"))
    made["input"][1]["steps"] = steps
    picture = inputs.read(read_of(made), seen(0, 10, 20, 30, 40))["k"]
    assert picture[..., 0, 0, 0].tolist() == brightness
    assert picture.shape == ((48, 64, 3) if steps == [0] else (len(steps), 48, 64, 3))


def test_steps_count_in_actions_and_not_in_pictures():
    made = card(inputs=CAMERA.format(key="k", camera="wrist"), rate=10.0)
    made["input"][1]["steps"] = [-1, 0]  # 100 ms back; pictures come every 50 ms
    assert inputs.read(read_of(made), seen(0, 10, 20, 30, 40))["k"][:, 0, 0, 0].tolist() == [20, 40]
    assert inputs.history_s(read_of(made)) == pytest.approx(0.1)


def test_padding_keeps_the_shape_of_what_is_seen_between_black_bars():
    padded = inputs.padded(flat(200, 180, 320), 224, 224)
    assert padded.shape == (224, 224, 3)
    rows = padded[:, :, 0].max(axis=1)
    assert (rows > 0).nonzero()[0][[0, -1]].tolist() == [49, 174]  # 126 = int(180 / (320 / 224)) rows, centred


@given(st.integers(1, 90), st.integers(1, 90), st.integers(8, 64), st.integers(8, 64))
def test_a_padded_picture_has_the_size_asked_for(height: int, width: int, out_h: int, out_w: int):
    ratio = max(width / out_w, height / out_h)
    if int(height / ratio) and int(width / ratio):
        assert inputs.padded(flat(7, height, width), out_w, out_h).shape == (out_h, out_w, 3)


def test_stretching_fills_the_whole_picture():
    stretched = inputs.shaped(flat(200, 180, 320), entry(resize="stretch", width=64, height=48), defaults())
    assert stretched.shape == (48, 64, 3) and (stretched == 200).all()


def defaults(**given: Any) -> Image:
    return Image(resize="none", **given)


def test_colours_layout_and_range_are_the_cards():
    red = np.zeros((4, 5, 3), np.uint8)
    red[:, :, 0] = 255
    assert inputs.shaped(red, entry(), defaults()) is not None
    assert inputs.shaped(red, entry(), defaults(colour="bgr"))[0, 0].tolist() == [0, 0, 255]
    assert inputs.shaped(red, entry(), defaults(layout="chw")).shape == (3, 4, 5)
    unit = inputs.shaped(red, entry(), defaults(values="unit"))
    assert unit.dtype == np.float32 and unit[0, 0].tolist() == [1.0, 0.0, 0.0]


def test_the_picture_that_was_taken_is_not_changed():
    image = np.random.default_rng(1).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    image.setflags(write=False)
    before = image.copy()
    made = card(inputs=CAMERA.format(key="k", camera="wrist"))
    inputs.read(read_of(made), Observation(0, ARRAYS, "", {"wrist": (Picture(image, 5 * MILLISECOND),)}))
    assert (image == before).all()
