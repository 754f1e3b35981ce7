"""Builds what a policy reads from what a controller sees, by the card's [[input]] tables.

May not: change the observation, invent a picture or a state that is not there, or know a wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labctl.clock import SECOND
from labctl.config.policy_card import Card, Image, Input
from labctl.devices import Observation, Picture
from labctl.drivers.policy.actions import gripper_state, to_policy_tool, turn_values, turns
from labctl.errors import DeviceRefused, MissingExtra

Question = Mapping[str, Any]  # what a policy reads: arrays, texts, constants by its keys
State = Callable[[str, Card, Mapping[str, np.ndarray]], np.ndarray]


def read(card: Card, seen: Observation, of: State | None = None) -> Question:
    """What the policy reads: {key: array, text or constant}. of: who tells a named state, `state` unless another is
    given. Raises DeviceRefused when a source is not there.
    """
    step_ns = round(SECOND / card.timing.rate_hz)
    return {entry.key: _value(entry, card, seen, step_ns, of or state) for entry in card.input}


def history_s(card: Card) -> float:
    """How far back a card's pictures go, in seconds."""
    first = min((entry.steps[0] for entry in card.input if entry.camera is not None), default=0)
    return -first / card.timing.rate_hz


def _value(entry: Input, card: Card, seen: Observation, step_ns: int, of: State) -> Any:
    if entry.prompt:
        return seen.instruction
    if entry.constant is not None:
        constant = entry.constant
        return np.array(constant, dtype=entry.dtype) if isinstance(constant, list) else constant
    if entry.state is not None:
        parts = [of(name, card, seen.arrays) for name in entry.state]
        return np.concatenate(parts).astype(entry.dtype)
    pictures = seen.images.get(entry.camera or "") or ()
    if not pictures:
        raise DeviceRefused(f"there is no picture of camera {entry.camera!r}")
    chosen = [shaped(picture.image, entry, card.image) for picture in chosen_pictures(pictures, entry, step_ns)]
    return chosen[0] if entry.steps == (0,) else np.stack(chosen)


def state(name: str, card: Card, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """One named state as a vector (k,), in the policy's conventions."""
    match name:
        case "joint_position":
            return np.asarray(arrays["q"], dtype=float)
        case "joint_velocity":
            return np.asarray(arrays["dq"], dtype=float)
        case "gripper":
            return gripper_state(np.asarray(arrays["gripper"], dtype=float), card.fingers)
        case "axes":  # as an action of space "axes" has them
            return np.concatenate([np.asarray(arrays["q"], dtype=float), np.ravel(arrays["gripper"]).astype(float)])
    pose = to_policy_tool(np.asarray(arrays["tcp"], dtype=float)[None, :], card.tool)
    if name == "tcp_position":
        return pose[0, :3]
    return turn_values(turns(pose[:, 3:], "quaternion_xyzw"), name.removeprefix("tcp_"))[0]


def chosen_pictures(pictures: Sequence[Picture], entry: Input, step_ns: int) -> list[Picture]:
    """The picture nearest in time to each of the entry's steps before the newest; the oldest where there was none."""
    times = np.array([picture.t_ns for picture in pictures])
    wanted = times[-1] + step_ns * np.array(entry.steps)
    return [pictures[int(np.abs(times - at).argmin())] for at in wanted]


def shaped(image: np.ndarray, entry: Input, defaults: Image) -> np.ndarray:
    """A picture (h, w, 3) uint8 RGB resized and laid out as a card asks."""
    resize = entry.resize or defaults.resize
    width, height = entry.width or defaults.width, entry.height or defaults.height
    if resize in ("pad", "stretch"):
        assert width is not None and height is not None, "a card's pictures that are resized have a size"
        image = padded(image, width, height) if resize == "pad" else _resized(image, width, height)
    if defaults.colour == "bgr":
        image = image[:, :, ::-1]
    if defaults.layout == "chw":
        image = np.moveaxis(image, 2, 0)
    if defaults.values == "unit":
        return image.astype(np.float32) / np.float32(255)
    return np.ascontiguousarray(image)


def padded(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """A picture made to fit width x height without distortion, black on both sides; as openpi's own client does it."""
    if image.shape[:2] == (height, width):
        return image
    ratio = max(image.shape[1] / width, image.shape[0] / height)
    small = _resized(image, int(image.shape[1] / ratio), int(image.shape[0] / ratio))
    out = np.zeros((height, width, 3), np.uint8)
    top, left = (height - small.shape[0]) // 2, (width - small.shape[1]) // 2
    out[top : top + small.shape[0], left : left + small.shape[1]] = small
    return out


def _resized(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """Bilinear with a filter as wide as the reduction, by Pillow: what openpi, GR00T's examples and RoboArena use."""
    if image.shape[:2] == (height, width):
        return image
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise MissingExtra("policy", "resizing pictures for a policy") from error
    resized = Image.fromarray(np.ascontiguousarray(image)).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized)
