"""Pictures as files and for looking at: PNG, photos of a campaign checked against their digest, ghosts.

May not: compare pictures, or say anything about a scene.

Pictures are (height, width, 3) uint8 RGB.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np

from labctl.errors import BrokenRecord, InputError
from labctl.messages.body_parts import Photo
from labctl.store.atomic_files import file_errors

COMPRESSION = 3  # of 9: twice as fast as 6, a few per cent larger


def encode_png(picture: np.ndarray) -> bytes:
    """A picture as PNG, without loss."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", compress_level=COMPRESSION)
    return buffer.getvalue()


def decode_png(content: bytes) -> np.ndarray:
    """The picture in a PNG file. Raises InputError when it is not one."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            return np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise InputError("is not a readable PNG picture; save it as PNG, without loss") from None


def load_photo(folder: Path, photo: Photo) -> np.ndarray:
    """A photo of a campaign: file (within the folder) and sha256.

    Raises BrokenRecord when it is gone or not the one that was journalled, StorageError when it cannot be read.
    """
    path = folder / photo["file"]
    if not path.is_file():
        raise BrokenRecord(f"photo {photo['file']} is gone; see: labctl verify {folder.name}")
    with file_errors(str(path)):
        content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != photo["sha256"]:
        raise BrokenRecord(
            f"photo {photo['file']} was changed after it was journalled; see: labctl verify {folder.name}"
        )
    return decode_png(content)


def small(picture: np.ndarray, width: int) -> np.ndarray:
    """A picture made smaller by leaving out pixels, at least `width` wide where it was."""
    stride = max(1, picture.shape[1] // width)
    return np.ascontiguousarray(picture[::stride, ::stride])


def ghost(live: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Both pictures over each other, half and half: what lies where it lay is sharp, what does not is there twice."""
    return ((live.astype(np.uint16) + reference) // 2).astype(np.uint8)
