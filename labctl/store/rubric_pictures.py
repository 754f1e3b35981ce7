"""The pictures of a rubric's anchors: read from beside the protocol, kept in the campaign's folder, named in its
journal.

May not: keep anything but the picture (what a camera wrote into the file, such as a place, is left out), or show one.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.core.event_bodies import CampaignOpened
from labctl.messages.body_parts import AnchorEntry, Photo, TaskEntry
from labctl.store.atomic_files import keep_file

if TYPE_CHECKING:  # whoever reads a campaign does not wait for the schemas, nor for numpy
    import numpy as np

    from labctl.store.lab_folder import Plan

FOLDER = "photos/rubric"
WIDEST = 1024  # pixels of what is kept, along the longer side


@dataclass(frozen=True, slots=True)
class AnchorPicture:
    """The picture of an anchor: the places of its task and of itself in the protocol; as PNG."""

    task: int
    anchor: int
    content: bytes

    @property
    def photo(self) -> Photo:
        """Its place in the campaign's folder, and its digest."""
        file = f"{FOLDER}/{self.task + 1:02d}-{self.anchor + 1:02d}.png"
        return {"file": file, "sha256": hashlib.sha256(self.content).hexdigest()}


def anchor_pictures(plan: Plan) -> list[AnchorPicture]:
    """The pictures that the rubrics of a protocol name, upright and no larger than WIDEST. Raises InputError with the
    protocol's line for a file that cannot be read or is no picture.
    """
    from labctl.store.pictures import encode_png

    found: list[AnchorPicture] = []
    for number, task in enumerate(plan.protocol.task):
        for place, anchor in enumerate(task.rubric):
            if anchor.picture is None:
                continue
            path = plan.path.parent / anchor.picture
            try:
                picture = _read(path.read_bytes())
            except OSError as error:
                wrong = f"cannot be read ({error.strerror or error}); put it there or take the entry out"
            except ValueError:
                wrong = "is no PNG or JPEG picture that can be read; save it as one of these"
            else:
                found.append(AnchorPicture(number, place, encode_png(picture)))
                continue
            at = ("task", number, "rubric", place, "picture")
            raise plan.protocol.refusal(at, f"picture {str(path)!r} {wrong}", str(plan.path)) from None
    return found


def _read(content: bytes) -> np.ndarray:
    """A picture, (height, width, 3) uint8 RGB, turned as its camera says. Raises ValueError where it is none."""
    import numpy as np
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=["PNG", "JPEG"]) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from None
    upright.thumbnail((WIDEST, WIDEST))
    return np.asarray(upright)


def with_pictures(tasks: Sequence[TaskEntry], pictures: Sequence[AnchorPicture]) -> list[TaskEntry]:
    """The tasks as a campaign's first entry has them, their anchors with the photos that are kept."""
    photos = {(one.task, one.anchor): one.photo for one in pictures}

    def pictured(number: int, place: int, anchor: AnchorEntry) -> AnchorEntry:
        photo = photos.get((number, place))
        return anchor if photo is None else {**anchor, "picture": photo}

    return [
        {**task, "rubric": [pictured(number, place, anchor) for place, anchor in enumerate(task["rubric"])]}
        for number, task in enumerate(tasks)
    ]


def keep_anchors(pictures: Sequence[AnchorPicture], folder: Path) -> None:
    """Put them into a campaign's folder. Raises StorageError."""
    for picture in pictures:
        keep_file(folder / picture.photo["file"], picture.content, folder)


def anchor_photos(opened: CampaignOpened) -> list[Photo]:
    """Those that a campaign's first entry names."""
    anchors = (anchor for task in opened.get("tasks", ()) for anchor in task["rubric"])
    return [anchor["picture"] for anchor in anchors if "picture" in anchor]
