"""What differs between two pictures of a scene once camera and light are allowed for.

May not: decide what a difference means, or count a change of light or less than the tolerance as one.

Pictures are (height, width, 3) uint8 RGB; planes are channels first. What is found in a smaller picture is in that
picture's pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import ndimage

from labctl.scene.pose import Pose, moved_back

if TYPE_CHECKING:
    from PIL.Image import Image

POSE_WIDTH, CHANGE_WIDTH, LIGHT_WIDTH = 320, 640, 40  # pixels across that are enough for each of the three looks
DIFFERS = 14.0  # grey levels; noise raises it
DIFFERS_SIGMA = 5.0
BURNT = 250  # grey levels: a channel this bright says only that it is at least so bright
FAR = 60.0  # grey levels: what is burnt out in one picture alone and brighter by more has changed, however bright it is
STILL_PX = 0.2  # less than this at a picture's edge is not moved back
FOLLOW = 0.6  # of the points: so many at least are taken to follow the light
PIECE, LARGE = 0.01, 0.05  # of the picture: of each piece that does not follow the light, and of all of them
EDGE = 0.1  # logarithm of a gain, across an edge
FEWEST_LIT = 0.02  # of the picture, to tell its light from
DARKEST, BRIGHTEST = 0.25, 4.0  # of the reference's light; beyond, pictures are not compared


def factor(width: int, enough: int) -> int:
    """How many pixels across become one where about `enough` are enough."""
    return max(1, round(width / enough))


def _reduced(picture: np.ndarray, enough: int) -> Image:
    """A Pillow image, about `enough` wide where the picture is wider; every point is the mean of what it covers."""
    from PIL import Image

    return Image.fromarray(picture).reduce(factor(picture.shape[1], enough))


def grey(picture: np.ndarray, enough: int) -> np.ndarray:
    """A picture in grey levels (h, w) float32, about `enough` wide."""
    return np.asarray(_reduced(picture, enough).convert("L"), dtype=np.float32)


def sampled(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A mask (height, width) at the points of a smaller picture."""
    rows = (np.arange(shape[0]) + 0.5) * mask.shape[0] / shape[0]
    columns = (np.arange(shape[1]) + 0.5) * mask.shape[1] / shape[1]
    return mask[rows.astype(int)[:, None], columns.astype(int)[None, :]]


def _planes(picture: np.ndarray, enough: int, *, smooth: bool = False) -> np.ndarray:
    """The three channels (3, h, w) uint8 of a picture about `enough` wide."""
    from PIL import ImageFilter

    image = _reduced(picture, enough)
    if smooth:
        image = image.filter(ImageFilter.BoxBlur(1))
    return np.ascontiguousarray(np.moveaxis(np.asarray(image), -1, 0))


def placed_back(planes: np.ndarray, pose: Pose | None, scale: float) -> np.ndarray:
    """Planes (n, h, w), `scale` times as wide as what the pose was found in, where the reference has them; float32, -1
    beyond the edge.
    """
    if pose is None or pose.edge(planes.shape[2] / scale, planes.shape[1] / scale) < STILL_PX:
        return planes.astype(np.float32)
    at_scale = Pose((scale * pose.shift[0], scale * pose.shift[1]), pose.angle, pose.agreeing, pose.places)
    return np.stack([moved_back(plane.astype(np.float32), at_scale) for plane in planes])


@dataclass(frozen=True, slots=True)
class Light:
    """A smooth gain per channel: logarithms of it as quadratic surfaces over the picture, (6, 3)."""

    terms: np.ndarray

    def at(self, height: int, width: int) -> np.ndarray:
        """The gain (3, height, width) that gives the live picture the reference's light."""
        from PIL import Image

        gains = np.exp(_surface(LIGHT_WIDTH * 3 // 4, LIGHT_WIDTH) @ self.terms).astype(np.float32)
        planes = gains.T.reshape(3, LIGHT_WIDTH * 3 // 4, LIGHT_WIDTH)
        bilinear = Image.Resampling.BILINEAR
        return np.stack([np.asarray(Image.fromarray(plane).resize((width, height), bilinear)) for plane in planes])


def _surface(height: int, width: int) -> np.ndarray:
    v, u = ((2 * np.mgrid[:height, :width] + 1.0) / np.array([height, width])[:, None, None] - 1.0).reshape(2, -1)
    return np.column_stack([np.ones_like(u), u, v, u * u, u * v, v * v])


def light_between(reference: np.ndarray, live: np.ndarray, pose: Pose | None, usable: np.ndarray) -> Light | None:
    """The light of one picture against another, fitted to what most of them agrees on; None when it is too different
    to be matched.
    """
    before = _planes(reference, LIGHT_WIDTH).astype(np.float32)
    after = _planes(live, LIGHT_WIDTH)
    after = placed_back(after, pose, factor(live.shape[1], POSE_WIDTH) / factor(live.shape[1], LIGHT_WIDTH))
    lit = (after[0] >= 0) & (before.max(0) < BURNT) & (after.max(0) < BURNT) & sampled(usable, before.shape[1:])
    if lit.mean() < FEWEST_LIT:
        return None
    ratio = np.log((before[:, lit] + 1.0) / (after[:, lit] + 1.0)).T
    found = _light_terms(lit, ratio)
    gain = float(np.exp(np.median(ratio)))
    return Light(found) if DARKEST <= 1.0 / gain <= BRIGHTEST else None


def _light_terms(lit: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """The light's terms (6, 3), fitted to the logarithms of its gain (n, 3) where `lit`.

    A fit that is started from all points takes something large for light; one that is started from those that agree
    takes a lamp's pool of light, which no such surface follows, for a change. Light has no edge: the second is taken
    where what stands out of it is large and has one.
    """
    terms = _surface(*lit.shape)[lit.ravel()]
    usual, agreed = (_robust(terms, ratio, start) for start in (None, _of_most(terms, ratio)))
    return agreed if _has_an_edge(lit, ratio - terms @ agreed) else usual


def _of_most(terms: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What most points follow in all channels: from the medians on, each fit is to those nearest to the last one."""
    found, ridge = np.zeros((terms.shape[1], values.shape[1])), 1e-6 * np.eye(terms.shape[1])
    found[0] = np.median(values, axis=0)
    most = math.ceil(FOLLOW * len(values))
    for _ in range(8):
        near = np.argsort(np.abs(values - terms @ found).max(axis=1), kind="stable")[:most]
        found = np.linalg.solve(terms[near].T @ terms[near] + ridge, terms[near].T @ values[near])
    return found


def _robust(terms: np.ndarray, values: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    """A fit that what does not follow it (a thing put there or taken away) does not bend, unless it is large and the
    fit is started from all points (start None).
    """
    ridge = 1e-6 * np.eye(terms.shape[1])
    found = np.zeros((terms.shape[1], values.shape[1]))
    for channel, each in enumerate(values.T):
        weight = np.ones(len(each)) if start is None else _weight(each - terms @ start[:, channel])
        for _ in range(6):
            weighted = terms * (weight**2)[:, None]
            found[:, channel] = np.linalg.solve(weighted.T @ terms + ridge, weighted.T @ each)
            weight = _weight(each - terms @ found[:, channel])
    return found


def _weight(left: np.ndarray) -> np.ndarray:
    return 1.0 - np.clip(left / (4.0 * _spread(left)), -1.0, 1.0) ** 2


def _spread(left: np.ndarray) -> float:
    return 1.4826 * float(np.median(np.abs(left))) + 0.005


def _has_an_edge(lit: np.ndarray, left: np.ndarray) -> bool:
    """Whether what is left of a fit (n, 3), where `lit`, stands out in large pieces from what is around them."""
    off = np.zeros(lit.shape, bool)
    off[lit] = np.any([np.abs(each) > 4.0 * _spread(each) for each in left.T], axis=0)
    labels = np.zeros(off.shape, np.int32)
    ndimage.label(off, np.ones((3, 3)), output=labels)
    sizes = np.bincount(labels.ravel())
    large = np.flatnonzero(sizes >= PIECE * lit.size)
    off = np.array(np.isin(labels, large[large > 0]), bool)
    if off.sum() < LARGE * lit.sum():
        return False
    inner, outer = np.zeros_like(off), np.zeros_like(off)
    ndimage.binary_dilation(~off, iterations=2, output=inner)
    ndimage.binary_dilation(off, iterations=2, output=outer)
    inner, outer = inner & off, outer & ~off
    values = np.zeros((*lit.shape, left.shape[1]))
    values[lit] = np.abs(left)
    if not (outer & lit).any() or not (inner & lit).any():
        return False
    return bool((np.median(values[inner & lit], axis=0) - np.median(values[outer & lit], axis=0)).max() > EDGE)


def differences(
    reference: np.ndarray, live: np.ndarray, pose: Pose | None, light: Light, usable: np.ndarray, tolerance_px: float
) -> tuple[np.ndarray, np.ndarray]:
    """How much each point differs, (h, w), in units of what counts as changed; and which points were compared."""
    before, after = (_planes(picture, CHANGE_WIDTH, smooth=True) for picture in (reference, live))
    size = before.shape[1:]
    width = live.shape[1]
    back = placed_back(after, pose, factor(width, POSE_WIDTH) / factor(width, CHANGE_WIDTH))
    lit = np.clip(back * light.at(*size) + 0.5, 0, 255).astype(np.uint8)
    burnt = before >= BURNT, back >= BURNT
    darker = before.astype(np.int16) - lit  # than the reference
    far = ((burnt[0] & ~burnt[1] & (darker > FAR)) | (burnt[1] & ~burnt[0] & (-darker > FAR))).any(0)
    compared = (back[0] >= 0) & (far | ~(burnt[0] | burnt[1]).any(0)) & sampled(usable, size)
    compared = _extreme(np.minimum, compared[None], 2)[0]
    plain = np.abs(darker).max(0)
    spread = 1.4826 * float(np.median(plain[compared])) if compared.any() else 0.0
    counts = max(DIFFERS, DIFFERS_SIGMA * spread)
    differs = np.where(compared, plain / counts, 0.0)
    if differs.max(initial=0.0) >= 1.0:  # else nothing can lie beyond the tolerance either
        reach = max(1, round(tolerance_px / factor(width, CHANGE_WIDTH)))
        beyond = np.maximum(_beyond(before, lit, reach), _beyond(lit, before, reach)).max(0)
        differs = np.where(compared, beyond / counts, 0.0)
    return differs.astype(np.float32), compared


def _beyond(one: np.ndarray, other: np.ndarray, reach: int) -> np.ndarray:
    """How far `other` lies outside all that `one` shows within `reach` pixels: nothing, for what is off by less."""
    low, high = _extreme(np.minimum, one, reach), _extreme(np.maximum, one, reach)
    return np.maximum(low, other) - other + (np.maximum(high, other) - high)


def _extreme(which: np.ufunc, planes: np.ndarray, reach: int) -> np.ndarray:
    """The least or greatest value within a square of 2 reach + 1 pixels, (n, h, w); one axis after the other."""
    found = planes
    for axis in (1, 2):
        widths = [(0, 0)] * 3
        widths[axis] = (reach, reach)
        padded, n = np.pad(found, widths, mode="edge"), found.shape[axis]
        found = padded[(slice(None),) * axis + (slice(0, n),)].copy()
        for start in range(1, 2 * reach + 1):
            which(found, padded[(slice(None),) * axis + (slice(start, start + n),)], out=found)
    return found
