"""How well a staged scene matches its reference: what the camera did, what in the scene changed, one score of 0 to 100.

May not: open a file, know a trial, or take a change of light for a change of the scene. The only module that imports
scikit-image (extra `scene`).

The score starts at 100 and loses: ten points for every doubling of the changed area, from 0.01 % of the picture on;
twenty points for each percent of the picture's width that the camera moved; a point for each hundredth of structural
similarity below 0.90. A view that is not recognised has 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import ndimage

from labctl.core.scene_words import LIKE
from labctl.extras import wanted_for
from labctl.messages.body_parts import MatchBody, MoveBody
from labctl.scene.change import POSE_WIDTH, differences, factor, grey, light_between, placed_back, sampled
from labctl.scene.pose import Pose, camera_pose

TOLERANCE_PX = 2.0  # how far a thing may be off in the picture before it counts as changed
SMALLEST = 4e-5  # of the picture; smaller regions are not counted
REGIONS = 5
SSIM_WINDOW = 7
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Region:
    """A changed region: its box (left, top, right, bottom) in pixels of the picture, and its share of the picture."""

    box: tuple[int, int, int, int]
    share: float


@dataclass(frozen=True, slots=True)
class Move:
    """What a camera did, in pixels of the picture.

    shift_px: how far the picture moved to the right and down; rotation_deg: how far it turned, counter-clockwise;
    moved_px: the farthest any point of it moved by both. All three are None when the reference has too little
    structure to tell, or when the view was not recognised: then `note` says why.
    """

    shift_px: tuple[float, float] | None = None
    rotation_deg: float | None = None
    moved_px: float | None = None
    note: str = ""

    def body(self) -> MoveBody:
        """Plain JSON values, rounded to what is meant by them."""
        return {
            "shift_px": None if self.shift_px is None else [round(part, 2) + 0.0 for part in self.shift_px],
            "rotation_deg": _rounded(self.rotation_deg, 2),
            "moved_px": _rounded(self.moved_px, 2),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Match:
    """What a comparison found. score: see the module. ssim: structural similarity after moving back and matching the
    light. changed: share of the compared picture that differs. regions: the largest of it first.
    """

    score: float
    move: Move
    ssim: float
    changed: float
    regions: tuple[Region, ...] = ()

    def body(self) -> MatchBody:
        """Plain JSON values, rounded to what is meant by them."""
        return {
            "score": round(self.score, 1),
            **self.move.body(),
            "ssim": round(self.ssim, 3),
            "changed": round(self.changed, 5),
            "regions": [{"box": list(region.box), "share": round(region.share, 5)} for region in self.regions],
        }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits) + 0.0  # no minus zero


def camera_move(reference: np.ndarray, live: np.ndarray, *, ignore: Sequence[Box] = ()) -> Move:
    """What the camera did between two pictures (height, width, 3) uint8 RGB of one size, whatever lies in the scene.

    Needs no scikit-image. Raises ValueError for two sizes.
    """
    _same_size(reference, live)
    before, after = (grey(picture, POSE_WIDTH) for picture in (reference, live))
    pose = camera_pose(before, after, sampled(_usable(reference.shape[:2], ignore), before.shape))
    if pose is not None and not pose.recognised:
        return Move(note=_not_found(pose))
    return _move(pose, factor(reference.shape[1], POSE_WIDTH), before.shape)


def _move(pose: Pose | None, step: float, shape: tuple[int, ...]) -> Move:
    if pose is None:
        return Move()
    shift = (step * pose.shift[0], step * pose.shift[1])
    return Move(shift, -math.degrees(pose.angle), step * pose.edge(shape[1], shape[0]))


def _not_found(pose: Pose) -> str:
    return f"{pose.agreeing} of {pose.places} places of the reference were found"


def _same_size(reference: np.ndarray, live: np.ndarray) -> None:
    if reference.shape != live.shape:
        raise ValueError(f"two sizes: {reference.shape} and {live.shape}")


def compare(
    reference: np.ndarray, live: np.ndarray, *, ignore: Sequence[Box] = (), tolerance_px: float = TOLERANCE_PX
) -> Match:
    """Compare two pictures (height, width, 3) uint8 RGB of one size.

    ignore: boxes (left, top, right, bottom) as fractions of the picture that are left out. tolerance_px: how far a
    thing may be off before it counts as changed. Raises MissingExtra without scikit-image, ValueError for two sizes.
    """
    return difference(reference, live, ignore=ignore, tolerance_px=tolerance_px)[0]


def difference(
    reference: np.ndarray, live: np.ndarray, *, ignore: Sequence[Box] = (), tolerance_px: float = TOLERANCE_PX
) -> tuple[Match, np.ndarray]:
    """As `compare`; also how much each point differs, (h, w) float32 of 0 to 1, at most 640 wide: 1 counts as changed
    for sure, 0 where it was not compared.
    """
    _same_size(reference, live)
    similarity = _structural_similarity()
    height, width = reference.shape[:2]
    usable = _usable((height, width), ignore)
    before, after = (grey(picture, POSE_WIDTH) for picture in (reference, live))
    step = factor(width, POSE_WIDTH)
    seen = sampled(usable, before.shape)
    pose = camera_pose(before, after, seen)
    if pose is not None and not pose.recognised:
        return _unrecognised(_not_found(pose), reference)
    light = light_between(reference, live, pose, usable)
    if light is None:
        return _unrecognised("it is far darker or brighter than its reference", reference)
    back = placed_back(after[None], pose, 1.0)[0]
    seen &= back >= 0
    lit = np.where(seen, back * light.at(*before.shape)[1], before)
    ssim = _likeness(similarity, before, lit, seen)
    differs, compared = differences(reference, live, pose, light, usable, tolerance_px)
    changed, regions = _regions(differs >= 1.0, compared, (height, width))
    move = _move(pose, step, before.shape)
    score = _score(changed, (move.moved_px or 0.0) / width, ssim)
    return Match(score, move, ssim, changed, regions), np.clip(differs, 0.0, 1.0)


class _Similarity(Protocol):
    def __call__(
        self, before: np.ndarray, live: np.ndarray, /, *, win_size: int, data_range: float, full: bool
    ) -> tuple[np.ndarray, ...]: ...


def _structural_similarity() -> _Similarity:
    with wanted_for("comparing a scene with its reference"):
        from skimage.metrics import structural_similarity
    return structural_similarity


def _likeness(similarity: _Similarity, before: np.ndarray, lit: np.ndarray, seen: np.ndarray) -> float:
    """Mean structural similarity where both were seen; 1 for pictures smaller than its window."""
    if min(before.shape) < SSIM_WINDOW or not seen.any():
        return 1.0
    return float(similarity(before, lit, win_size=SSIM_WINDOW, data_range=255.0, full=True)[1][seen].mean())


def _score(changed: float, moved: float, ssim: float) -> float:
    """See the module. changed: share of the picture; moved: share of its width."""
    lost = 10.0 * math.log2(1.0 + changed / 1e-4) + 2000.0 * moved + 100.0 * max(0.0, LIKE - ssim)
    return max(0.0, 100.0 - lost)


def _unrecognised(why: str, picture: np.ndarray) -> tuple[Match, np.ndarray]:
    return Match(0.0, Move(note=why), 0.0, 1.0), np.ones(picture.shape[:2], np.float32)


def _usable(size: tuple[int, ...], ignore: Sequence[Box]) -> np.ndarray:
    height, width = size
    found = np.ones(size, dtype=bool)
    for left, top, right, bottom in ignore:
        rows = slice(math.floor(top * height), math.ceil(bottom * height))
        found[rows, math.floor(left * width) : math.ceil(right * width)] = False
    return found


def _regions(changed: np.ndarray, compared: np.ndarray, size: tuple[int, int]) -> tuple[float, tuple[Region, ...]]:
    """The share of the compared picture that changed, and its largest regions. What lies close together is one."""
    together = np.empty(changed.shape, np.int32)
    ndimage.label(ndimage.binary_dilation(changed, iterations=3), output=together)
    labels = np.where(changed, together, 0)
    areas = np.bincount(labels.ravel())
    if len(areas) < 2:
        return 0.0, ()
    areas[0] = 0
    whole = max(1, int(compared.sum()))
    kept = np.flatnonzero(areas >= max(3, SMALLEST * changed.size))
    boxes = ndimage.find_objects(labels)
    scale = size[1] / changed.shape[1]
    found: list[Region] = []
    for label in sorted(kept.tolist(), key=lambda label: (-areas[label], label))[:REGIONS]:
        rows, columns = boxes[label - 1]
        box = (columns.start, rows.start, columns.stop, rows.stop)
        left, top, right, bottom = (round(scale * edge) for edge in box)
        found.append(Region((left, top, right, bottom), float(areas[label]) / whole))
    return float(areas[kept].sum()) / whole, tuple(found)
