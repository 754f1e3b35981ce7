"""Test pictures that say which frame they are and when they were made, and the reading of them after any codec.

May not: read a clock; the caller gives the time. A code is 16 x 8 cells of black and white in the upper left corner: 32
bits of frame number, 64 of time in ns, 32 of CRC. A cell is a sixteenth of the height, in fractions of pixels too, so
a picture that was made smaller or larger still reads. Patches of red, green and blue lie along the bottom.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import NamedTuple

import numpy as np

COLUMNS, ROWS = 16, 8
BLACK, WHITE = 16, 235  # inside what limited-range video can hold
PATCHES = ((220, 40, 40), (40, 200, 40), (40, 40, 220))


class Mark(NamedTuple):
    """What a picture says of itself: its number, and the source's time in ns."""

    number: int
    t_ns: int


def paint(width: int, height: int, number: int, t_ns: int) -> np.ndarray:
    """A picture (height, width, 3) uint8 RGB with its mark; height of 48 or more, and no more than width."""
    image = _background(width, height).copy()
    payload = number.to_bytes(4, "little") + t_ns.to_bytes(8, "little")
    payload += zlib.crc32(payload).to_bytes(4, "little")
    bits = np.unpackbits(np.frombuffer(payload, np.uint8)).reshape(ROWS, COLUMNS)
    levels = np.where(bits, WHITE, BLACK).astype(np.uint8)
    of_pixel = np.arange(height) * COLUMNS // height  # the cell that each line, and each column, belongs to
    image[: height // 2, :height] = levels[np.ix_(of_pixel[: height // 2], of_pixel)][:, :, None]
    side = height // COLUMNS
    left = number * 4 % (width - side)  # something that moves, for eyes
    image[9 * side : 11 * side, left : left + side] = (250, 180, 30)
    return image


def read(image: np.ndarray) -> Mark | None:
    """The mark of a picture (height, width, 3) or (height, width); None when there is none or it is too damaged."""
    height = image.shape[0]
    middles = (np.arange(COLUMNS) + 0.5) * height / COLUMNS
    inner = np.arange(-1, 2) * height / COLUMNS / 6  # edges blur, so only the inner third of a cell counts
    at = (middles[:, None] + inner).astype(int).ravel()
    corner = image[np.ix_(at[: 3 * ROWS], at[at < image.shape[1]])].astype(float)
    if corner.shape[1] < 3 * COLUMNS:
        return None
    means = corner.reshape(ROWS, 3, COLUMNS, 3, -1).mean(axis=(1, 3, 4))
    payload = np.packbits(means > (means.min() + means.max()) / 2).tobytes()
    if zlib.crc32(payload[:12]).to_bytes(4, "little") != payload[12:]:
        return None
    return Mark(int.from_bytes(payload[:4], "little"), int.from_bytes(payload[4:12], "little"))


def patches(image: np.ndarray) -> np.ndarray:
    """Mean colours (3, 3) of the red, green and blue patch, in the order of the image's channels."""
    height, width = image.shape[:2]
    return np.array([image[14 * height // 16 :, slot].reshape(-1, 3).mean(axis=0) for slot in _slots(width)])


def _slots(width: int) -> list[slice]:
    return [slice(i * width // 3 + width // 12, i * width // 3 + width // 4) for i in range(3)]


@cache
def _background(width: int, height: int) -> np.ndarray:
    """What never changes: patches, and blocks of grey by which two pictures can be laid over each other."""
    side = max(2, height // 24)
    levels = np.random.default_rng(0).integers(0, 256, (-(-height // side), -(-width // side)), dtype=np.uint8)
    image = levels.repeat(side, 0).repeat(side, 1)[:height, :width, None].repeat(3, 2)
    for slot, colour in zip(_slots(width), PATCHES, strict=True):
        image[13 * height // 16 :, slot] = colour
    return image
