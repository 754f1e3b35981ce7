"""One picture to look at a committed scene by: reference, photo, ghost and difference side by side, a row per camera.

May not: write into a campaign, or name an arm: a photo is older than its reveal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labctl.config.cell_schema import CameraTable
from labctl.core.record import Scene
from labctl.core.record_fold import record_of
from labctl.core.scene_words import change, movement, verdict
from labctl.errors import BrokenRecord, InputError, MissingExtra
from labctl.messages.body_parts import MatchEntry
from labctl.plain import Json
from labctl.scene.matching import difference
from labctl.store.pictures import encode_png, ghost, load_photo
from labctl.store.scene_references import References, rules
from labctl.store.verified import in_passing
from labctl.times import local

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

COLUMN, GAP, LINE, HEAD = 400, 8, 16, 26  # pixels
COLUMNS = ("reference", "photo", "ghost: both over each other", "difference, and where")
_PAPER, _INK, _FAINT, _MARK = (250, 250, 248), (30, 32, 36), (120, 124, 130), (226, 60, 40)


@dataclass(frozen=True, slots=True)
class Row:
    """One camera of a committed scene. match: as journalled; reference: None for a first photo."""

    camera: CameraTable
    photo: np.ndarray
    reference: np.ndarray | None
    counts: bool
    match: MatchEntry


@dataclass(frozen=True, slots=True)
class Sheet:
    """A committed scene: which trial, which of its commits, and a row per camera."""

    trial: str
    condition: str
    commit: int
    wall: str
    limit_px: float
    rows: tuple[Row, ...]

    def facts(self) -> dict[str, Json]:
        """Plain JSON values."""
        cameras = {row.camera.name: {"verdict": self.says(row), **row.match} for row in self.rows}
        return {"trial": self.trial, "condition": self.condition, "wall": self.wall, "cameras": cameras}

    def says(self, row: Row) -> str:
        """The verdict of one row in two words."""
        scene, pose = row.match.get("scene"), row.match.get("pose")
        if scene is None:
            return "no score" if row.reference is not None else "first of its condition"
        return verdict({**scene, **pose} if pose else scene, self.limit_px)


def scene_of(folder: Path, trial: str | None) -> Sheet:
    """The last committed scene of a trial, or of the campaign.

    Raises InputError when there is none, BrokenRecord for a photo that is gone or was changed.
    """
    with in_passing(folder) as campaign:
        events, cell, opened = campaign.events(), campaign.cell, campaign.opened
        trials = campaign.state.trials
        commits = [scene for scene in record_of(events, campaign.state).scenes if scene.photos]
    if trial is not None and trial not in trials:
        raise InputError(f"no trial {trial!r} in {folder.name}; `labctl episodes {folder.name}` lists them")
    found = [scene for scene in commits if trial in (None, scene.trial)]
    if not found:
        known = ", ".join(dict.fromkeys(scene.trial for scene in commits)) or "none yet"
        raise InputError(f"no committed photo of {trial or folder.name}; trials with photos: {known}")
    scene = found[-1]
    references = References.before(events, scene.seq)
    cameras = {camera.name: camera for camera in cell.camera}
    rows = [_row(folder, references, scene, cameras[name]) for name in scene.photos]
    number = sum(other.trial == scene.trial for other in commits)
    limit_px = rules(opened)["max_camera_shift_px"]
    return Sheet(scene.trial, trials[scene.trial].condition, number, scene.at.wall, limit_px, tuple(rows))


def _row(folder: Path, references: References, scene: Scene, camera: CameraTable) -> Row:
    held = references.held(scene.trial, camera.name)
    reference = load_photo(folder, held.scene) if held.scene is not None else None
    match: MatchEntry = scene.matches.get(camera.name) or {}
    compared_with = match.get("reference")
    if compared_with is not None and held.scene is not None and compared_with != held.scene["sha256"]:
        raise BrokenRecord(
            f"entry {scene.seq} was compared with {compared_with[:12]}, which is not the reference of its trial"
        )
    return Row(camera, load_photo(folder, scene.photos[camera.name]), reference, held.counts, match)


def sheet(scene: Sheet) -> bytes:
    """The picture as PNG."""
    from PIL import Image, ImageDraw

    heights = [round(COLUMN * row.photo.shape[0] / row.photo.shape[1]) for row in scene.rows]
    width = 4 * COLUMN + 5 * GAP
    height = HEAD + sum(heights) + len(heights) * (2 * LINE + 2 * GAP) + LINE + GAP
    image = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(image)
    small, large = _font(12), _font(15)
    pen.text((GAP, 5), f"{scene.trial}   {scene.condition}   {local(scene.wall, seconds=True)}", _INK, large)
    for column, name in enumerate(COLUMNS):
        pen.text((GAP + column * (COLUMN + GAP), HEAD), name, _FAINT, small)
    top = HEAD + LINE
    for row, tall in zip(scene.rows, heights, strict=True):
        for column, picture in enumerate(_pictures(row)):
            if picture is not None:
                shown = Image.fromarray(picture).resize((COLUMN, tall), Image.Resampling.LANCZOS)
                image.paste(shown, (GAP + column * (COLUMN + GAP), top))
        _mark(pen, row, (GAP + 3 * (COLUMN + GAP), top), COLUMN / row.photo.shape[1])
        for line, text in enumerate(words(scene, row)):
            pen.text((GAP, top + tall + 2 + line * LINE), text, _INK, small)
        top += tall + 2 * LINE + 2 * GAP
    return encode_png(np.asarray(image))


def words(scene: Sheet, row: Row) -> tuple[str, str]:
    """Two lines about a row: the score and verdict, and what the camera and the scene did."""
    match, pose = row.match.get("scene"), row.match.get("pose")
    name, says = row.camera.name, scene.says(row)
    if match is None:
        moved = f"camera {movement(pose)}" if pose else "nothing to compare with: this photo is the reference now"
        return f"{name}: {says}", str(row.match.get("problem") or moved)
    role = "its reference" if row.counts else "an earlier block's scene, for information"
    scene_change = change(match, (row.photo.shape[1], row.photo.shape[0]))
    likeness = f"structural similarity {match['ssim']:.3f}"
    return (
        f"{name}: {match['score']:g} of 100 against {role}: {says}",
        f"{scene_change}; camera {movement(match)}; {likeness}",
    )


def _pictures(row: Row) -> tuple[np.ndarray | None, ...]:
    if row.reference is None:
        return None, row.photo, None, None
    return row.reference, row.photo, ghost(row.photo, row.reference), _difference(row, row.reference)


def _difference(row: Row, reference: np.ndarray) -> np.ndarray:
    """The photo in grey with what changed in red; without scikit-image the plain difference."""
    grey = (row.photo.astype(np.float32).mean(-1) * 0.6 + 80)[..., None].repeat(3, axis=-1)
    ignore, tolerance = row.camera.ignore, row.camera.tolerance_px
    try:
        differs = difference(reference, row.photo, ignore=ignore, tolerance_px=tolerance)[1]
    except MissingExtra:
        return np.abs(reference.astype(np.int16) - row.photo).astype(np.uint8)
    from PIL import Image

    size = (grey.shape[1], grey.shape[0])
    share = np.asarray(Image.fromarray(differs).resize(size, Image.Resampling.BILINEAR))[..., None]
    share = np.clip(2.0 * share - 1.0, 0.0, 1.0)  # what is far from counting is not coloured
    return np.clip(grey * (1 - share) + np.array(_MARK) * share, 0, 255).astype(np.uint8)


def _mark(pen: ImageDraw, row: Row, corner: tuple[int, int], scale: float) -> None:
    for region in (row.match.get("scene") or {}).get("regions", ()):
        left, top, right, bottom = (scale * edge for edge in region["box"])
        box = (corner[0] + left - 3, corner[1] + top - 3, corner[0] + right + 3, corner[1] + bottom + 3)
        pen.rectangle(box, outline=_MARK, width=2)


def _font(size: int) -> FreeTypeFont | ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)
