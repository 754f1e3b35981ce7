"""A picture of a number that a camera can read off a screen while it changes: for measuring how late cameras are.

May not: read a clock, or know what the number counts.

The code is a black square of 10 x 10 cells on white: a frame one cell thick around 8 x 8 cells. Cells lie in pairs, one
white and one black; which one is white is a bit, so that brightness and contrast do not matter. The first and the last
row of pairs never change and tell which way up the code is; the six between hold 24 bits in Gray code. From one number
to the next a single bit changes: a picture taken while the screen changes shows one of the two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import ndimage

SIDE = 8  # cells of a row
FRAME = 1  # cells
BITS = 24
TOP, BOTTOM = (1, 1, 0, 1), (1, 0, 1, 1)  # neither is the other, nor itself, turned round or in a mirror
LEAST_CONTRAST = 30.0  # grey levels between black and white
LEAST_DIFFERENCE = 0.4  # of that, between the two cells of a pair; one pair may be changing
LEAST_PIXELS = 40  # of the square's side
MOST_CANDIDATES = 12
WINDOWS = (4, 12)  # dark is what is darker than around it, in a window of such a part of the picture


def cells(number: int) -> np.ndarray:
    """Which of the 8 x 8 cells are white, bool. The number counts modulo 2^24."""
    number %= 1 << BITS
    gray = number ^ (number >> 1)
    bits = [*TOP, *((gray >> place) & 1 for place in reversed(range(BITS))), *BOTTOM]
    pairs = np.array(bits, dtype=bool).reshape(SIDE, SIDE // 2)
    return np.stack([pairs, ~pairs], axis=2).reshape(SIDE, SIDE)


def paint(number: int, cell_px: int = 24) -> np.ndarray:
    """The code with a white margin of one cell, (12 cell_px, 12 cell_px) uint8."""
    whole = np.ones((SIDE + 4, SIDE + 4), dtype=bool)
    whole[1:-1, 1:-1] = False
    whole[2:-2, 2:-2] = cells(number)
    return np.kron(np.where(whole, 255, 0).astype(np.uint8), np.ones((cell_px, cell_px), np.uint8))


def read(image: np.ndarray) -> int | None:
    """The number of the code in a picture (height, width, 3) or (height, width) uint8; None when none can be read.

    The code may be turned by any angle, mirrored and seen from the side; it has to be whole and some 40 pixels large.
    """
    grey = image.mean(axis=2) if image.ndim == 3 else image.astype(float)
    for corners in _squares(grey):
        number = _decode(grey, corners)
        if number is not None:
            return number
    return None


def _squares(grey: np.ndarray) -> Iterator[np.ndarray]:
    """Corners (4, 2) as x, y of what may be the frame: dark regions, the largest first, each in two readings."""
    for part in WINDOWS:
        around = ndimage.uniform_filter(grey, size=max(grey.shape) // part | 1, mode="nearest")
        regions = np.zeros(grey.shape, dtype=np.int32)
        ndimage.label(grey < around, output=regions)
        boxes = ndimage.find_objects(regions)
        large = [i for i, box in enumerate(boxes) if min(s.stop - s.start for s in box) >= LEAST_PIXELS]
        large.sort(key=lambda i: -(boxes[i][0].stop - boxes[i][0].start) * (boxes[i][1].stop - boxes[i][1].start))
        for i in large[:MOST_CANDIDATES]:
            y, x = np.nonzero(regions[boxes[i]] == i + 1)
            points = np.column_stack([x + boxes[i][1].start, y + boxes[i][0].start]).astype(float)
            plus, minus = points.sum(axis=1), points[:, 0] - points[:, 1]
            yield points[[plus.argmin(), minus.argmax(), plus.argmax(), minus.argmin()]]
            yield points[[points[:, 1].argmin(), points[:, 0].argmax(), points[:, 1].argmax(), points[:, 0].argmin()]]


def _decode(grey: np.ndarray, corners: np.ndarray) -> int | None:
    plane = _plane(corners)
    if plane is None:
        return None
    whole = SIDE + 2 * FRAME
    middles = np.arange(whole) + 0.5
    levels = _levels(grey, plane, middles)
    inner = levels[FRAME:-FRAME, FRAME:-FRAME]
    ring = np.ones_like(levels, dtype=bool)
    ring[FRAME:-FRAME, FRAME:-FRAME] = False
    black, white = float(np.median(levels[ring])), float(np.percentile(inner, 90))
    if white - black < LEAST_CONTRAST or levels[ring].max() - black > 0.5 * (white - black):
        return None
    for turned in (inner, inner[:, ::-1]):
        for quarter in range(4):
            number = _number(np.rot90(turned, quarter), white - black)
            if number is not None:
                return number
    return None


def _number(levels: np.ndarray, contrast: float) -> int | None:
    """The number of 8 x 8 grey levels that are the right way up, else None."""
    difference = (levels[:, 0::2] - levels[:, 1::2]) / contrast
    bits = difference > 0
    fixed = np.array([TOP, BOTTOM], dtype=bool)
    sure = np.abs(difference) >= LEAST_DIFFERENCE
    if not (bits[[0, -1]] == fixed).all() or not sure[[0, -1]].all() or (~sure).sum() > 1:
        return None
    gray = int("".join("1" if bit else "0" for bit in bits[1:-1].ravel()), 2)
    number = gray
    for shift in (1, 2, 4, 8, 16):
        number ^= number >> shift
    return number


def _plane(corners: np.ndarray) -> np.ndarray | None:
    """The perspective map (3, 3) from cells (0..10, 0..10) to pixels whose corners these are; None if there is none."""
    size = SIDE + 2 * FRAME
    rows, right = [], []
    for (u, v), (x, y) in zip(((0, 0), (size, 0), (size, size), (0, size)), corners, strict=True):
        rows += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        right += [x, y]
    try:
        solved = np.linalg.solve(np.array(rows, dtype=float), np.array(right))
    except np.linalg.LinAlgError:
        return None
    return np.append(solved, 1.0).reshape(3, 3)


def _levels(grey: np.ndarray, plane: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """Mean grey level of the middle of every cell, (10, 10)."""
    spread = np.array([-0.2, 0.0, 0.2])
    u = (middles[:, None] + spread).ravel()
    us, vs = np.meshgrid(u, u)
    x, y, w = plane @ np.stack([us.ravel(), vs.ravel(), np.ones(us.size)])
    values = ndimage.map_coordinates(grey, [y / w, x / w], order=1, mode="nearest")
    return values.reshape(len(middles), 3, len(middles), 3).mean(axis=(1, 3))
