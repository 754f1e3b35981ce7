"""How far a camera has moved: shift and turn of one picture against another, from what most of the background agrees
on.

May not: be misled by what lies in the scene. Small places with structure are found again one by one (phase
correlation); the movement that most of them share is the camera's, whatever the others did.

Pictures are grey, (height, width) float32. A movement is in pixels to the right and down, and an angle in radians,
positive when the picture has turned clockwise about its middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft, ndimage

TILE = 40  # pixels: side of a place; it must hold some structure and still be found after the largest likely move
STEP = 32
MOST_PLACES = 40
CORNERS = 4.0  # grey levels squared a pixel: less structure than this, along the weaker direction, is no place
BLANK = 0.7  # grey levels: a place of the live picture that varies less shows nothing
AGREE_PX = 0.6
NEAR_PX = 32.0  # two places closer than this say nothing about a turn
MOST_TURN = 0.14  # rad; a camera that turned further is not looked for
FEWEST = 4
ENOUGH = 0.4  # of the places must agree, or the view is not recognised
PLENTY = 0.7  # of the places agree: no better start is looked for
STILL_PX = 0.25  # less than this at the edge has no bias worth a second look


@dataclass(frozen=True, slots=True)
class Pose:
    """A camera's movement: shift (right, down) in pixels and angle in radians; how many of how many places agree."""

    shift: tuple[float, float]
    angle: float
    agreeing: int
    places: int

    @property
    def recognised(self) -> bool:
        """Enough of the places agree for this to be the same view."""
        return self.agreeing >= max(FEWEST, ENOUGH * self.places)

    def edge(self, width: float, height: float) -> float:
        """The farthest that any point of a picture of this size has moved, in its pixels."""
        return float(np.hypot(*self.shift) + abs(self.angle) * np.hypot(width, height) / 2)


NOWHERE = Pose((0.0, 0.0), 0.0, 0, 0)


def camera_pose(reference: np.ndarray, live: np.ndarray, usable: np.ndarray) -> Pose | None:
    """The movement of `live` against `reference`, both (height, width); `usable` is False where not to look.

    None when the reference has too little structure to tell. The pose of a view that is not found again has
    `recognised` False.
    """
    places = _places(reference, usable)
    if len(places) < FEWEST:
        return None
    best = _follow(reference, live, places, NOWHERE)
    if best.agreeing < PLENTY * len(places):
        coarse = Pose(_coarse(reference, live), 0.0, 0, len(places))
        best = max(best, _follow(reference, live, places, coarse), key=lambda pose: pose.agreeing)
    return best


def moved_back(picture: np.ndarray, pose: Pose) -> np.ndarray:
    """A picture (height, width) as it would look had the camera not moved; -1 where it did not see."""
    height, width = picture.shape
    c, s = np.cos(pose.angle), np.sin(pose.angle)
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    turn = np.array([[c, s], [-s, c]])
    offset = middle + np.array(pose.shift[::-1]) - turn @ middle
    return ndimage.affine_transform(picture, np.column_stack([turn, offset]), order=1, mode="constant", cval=-1.0)


def _places(picture: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Upper left corners (n, 2) as (y, x) of the places with most structure, best first."""
    height, width = picture.shape
    down, right = np.gradient(picture)
    products = [_tile_means(product) for product in (right * right, down * down, right * down, ~usable)]
    xx, yy, xy, hidden = products
    weaker = (xx + yy) / 2 - np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    found = np.argwhere((weaker > CORNERS) & (hidden < 0.2))
    order = np.argsort(-weaker[found[:, 0], found[:, 1]], kind="stable")[:MOST_PLACES]
    first = np.array([(height - TILE) % STEP // 2, (width - TILE) % STEP // 2])
    return first + found[order] * STEP


def _tile_means(values: np.ndarray) -> np.ndarray:
    """Mean of `values` (height, width) over every tile of the grid, (rows, columns)."""
    height, width = values.shape
    if height < TILE or width < TILE:
        return np.empty((0, 0))
    sums = np.zeros((height + 1, width + 1))
    sums[1:, 1:] = values.cumsum(0, dtype=float).cumsum(1)
    y = np.arange((height - TILE) % STEP // 2, height - TILE + 1, STEP)[:, None]
    x = np.arange((width - TILE) % STEP // 2, width - TILE + 1, STEP)[None, :]
    total = sums[y + TILE, x + TILE] - sums[y, x + TILE] - sums[y + TILE, x] + sums[y, x]
    return total / TILE**2


def _follow(reference: np.ndarray, live: np.ndarray, places: np.ndarray, start: Pose) -> Pose:
    """Measure, move back, measure what is left: the second look removes the bias of large moves."""
    pose, best = start, start
    for _ in range(3):
        still = pose.shift == (0.0, 0.0) and pose.angle == 0.0
        back = live if still else moved_back(live, pose)
        seen = places if still else _within(back, places)
        if len(seen) < FEWEST:
            break
        middle = (np.array(reference.shape[::-1]) - TILE) / 2
        at = seen[:, ::-1] - middle
        moves = _moves(_cut(reference, seen), _cut(back, seen))
        shift, angle, agreeing = _consensus(at, moves)
        pose = Pose((pose.shift[0] + shift[0], pose.shift[1] + shift[1]), pose.angle + angle, agreeing, len(places))
        if agreeing >= best.agreeing:
            best = pose
        if Pose(shift, angle, agreeing, len(places)).edge(reference.shape[1], reference.shape[0]) < STILL_PX:
            break
    return best


def _within(picture: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The places that lie wholly in what a moved-back picture saw."""
    return places[[bool(tile.min() >= 0) for tile in _cut(picture, places)]]


def _cut(picture: np.ndarray, places: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(picture, (TILE, TILE))
    return windows[places[:, 0], places[:, 1]]


_HANN = np.hanning(TILE + 2)[1:-1]
_WINDOW = np.outer(_HANN, _HANN).astype(np.float32)


def _moves(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """How far the content of each tile (n, TILE, TILE) has moved, (n, 2) as (right, down), to a part of a pixel."""
    one, two = (np.asarray(fft.rfft2(_windowed(tiles))) for tiles in (before, after))
    spectrum = two * np.conj(one)
    spectrum /= np.sqrt(np.abs(spectrum)) + 1e-6  # half-whitened: sharp peaks, yet noise does not drown them
    found = np.asarray(fft.irfft2(spectrum, s=(TILE, TILE)))
    peak = found.reshape(len(found), -1).argmax(1)
    n, y, x = np.arange(len(found)), peak // TILE, peak % TILE
    down = y + _vertex(found[n, y - 1, x], found[n, y, x], found[n, (y + 1) % TILE, x])
    right = x + _vertex(found[n, y, x - 1], found[n, y, x], found[n, y, (x + 1) % TILE])
    moves = (np.column_stack([right, down]) + TILE / 2) % TILE - TILE / 2
    moves[after.std((1, 2)) < BLANK] = np.nan  # nothing to see there: it agrees with nothing
    return moves


def _windowed(tiles: np.ndarray) -> np.ndarray:
    means = (tiles * _WINDOW).sum((1, 2), keepdims=True) / _WINDOW.sum()
    return (tiles - means) * _WINDOW


def _vertex(before: np.ndarray, peak: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where the parabola through three samples has its top, from the middle one."""
    bend = before - 2 * peak + after
    return np.where(np.abs(bend) > 1e-12, 0.5 * (before - after) / np.where(bend == 0, 1, bend), 0.0)


def _across(points: np.ndarray) -> np.ndarray:
    """Points (n, 2) turned by a right angle, so that a small turn moves p by angle * _across(p)."""
    return np.column_stack([-points[:, 1], points[:, 0]])


def _consensus(at: np.ndarray, moves: np.ndarray) -> tuple[tuple[float, float], float, int]:
    """The shift, the angle and how many agree: every pair of places proposes a movement, the one that most places
    share is fitted to them. at, moves: (n, 2).
    """
    i, j = np.triu_indices(len(at), 1)
    apart = at[j] - at[i]
    far = (apart**2).sum(1) > NEAR_PX**2
    i, j, apart = i[far], j[far], apart[far]
    angles = ((moves[j] - moves[i]) * _across(apart)).sum(1) / (apart**2).sum(1)
    shifts = moves[i] - angles[:, None] * _across(at[i])
    small = np.abs(angles) < MOST_TURN
    angles = np.append(0.0, angles[small])
    shifts = np.vstack([_middle(moves), shifts[small]])
    left = moves[None] - shifts[:, None] - angles[:, None, None] * _across(at)[None]
    agree = (left**2).sum(2) < AGREE_PX**2
    chosen = int(agree.sum(1).argmax())
    shift, angle, inside = shifts[chosen], float(angles[chosen]), agree[chosen]
    for _ in range(2):
        if inside.sum() < FEWEST:
            break
        shift, angle = _fit(at[inside], moves[inside])
        inside = ((moves - shift - angle * _across(at)) ** 2).sum(1) < AGREE_PX**2
    return (float(shift[0]), float(shift[1])), angle, int(inside.sum())


def _middle(moves: np.ndarray) -> np.ndarray:
    seen = moves[np.isfinite(moves[:, 0])]
    return np.median(seen, axis=0) if len(seen) else np.zeros(2)


def _fit(at: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, float]:
    """Least squares of a shift and a small turn."""
    rows = np.zeros((2 * len(at), 3))
    rows[0::2, 0] = rows[1::2, 1] = 1.0
    rows[0::2, 2], rows[1::2, 2] = -at[:, 1], at[:, 0]
    found = np.linalg.lstsq(rows, moves.ravel(), rcond=None)[0]
    return np.array(found[:2]), float(found[2])


def _coarse(reference: np.ndarray, live: np.ndarray) -> tuple[float, float]:
    """The shift (right, down) of whole pictures to the nearest pixel, by phase correlation."""
    height, width = reference.shape
    window = np.outer(np.hanning(height), np.hanning(width)).astype(np.float32)
    one, two = ((picture - picture.mean()) * window for picture in (reference, live))
    spectrum = np.asarray(fft.rfft2(two)) * np.conj(np.asarray(fft.rfft2(one)))
    found = np.asarray(fft.irfft2(spectrum / (np.abs(spectrum) + 1e-3), s=reference.shape))
    y, x = np.unravel_index(int(found.argmax()), found.shape)
    return float((x + width // 2) % width - width // 2), float((y + height // 2) % height - height // 2)
