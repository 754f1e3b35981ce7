"""The edits of pictures that a condition declares: the same for every arm, drawn from the seed of a block alone.

May not: know an arm, read a clock, or edit what a person sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from labctl.messages.edits import LATENCY, EditEntry

GREY = 128
FULL = 255.0
Image = np.ndarray  # (height, width, 3) uint8 RGB


class EditedPictures:
    """Edits a camera's pictures one after the other, in the order of an episode.

    What is drawn (where a patch lies, which frames are dropped) depends on the seed, the camera and the edit alone, and
    on the place of a picture among those before it: the same pictures give the same edited ones.
    """

    def __init__(self, camera: str, edits: Sequence[EditEntry], seed: int) -> None:
        own = enumerate(edits_of(camera, edits))
        self._steps = [(entry, _generator(seed, camera, place)) for place, entry in own]
        self._patches: dict[int, tuple[slice, slice]] = {}

    def of(self, image: Image) -> Image | None:
        """The picture as a policy gets it, the one handed in left as it is; None where it is dropped."""
        dropped = False
        for place, (entry, drawn) in enumerate(self._steps):
            if entry["edit"] == "drop":
                dropped |= bool(drawn.random() < entry["amount"])
            elif entry["edit"] == "occlude":
                image = image.copy()
                image[self._patch(place, entry["amount"], image, drawn)] = GREY
            else:
                image = EDITS[entry["edit"]](image, entry["amount"])
        return None if dropped else image

    def _patch(self, place: int, share: float, image: Image, drawn: np.random.Generator) -> tuple[slice, slice]:
        """Where the patch of an edit lies, all episode long: of the picture's form, anywhere within it."""
        if place not in self._patches:
            sizes = [max(1, round(length * share**0.5)) for length in image.shape[:2]]
            starts = [int(drawn.integers(0, whole - size + 1)) for whole, size in zip(image.shape, sizes, strict=False)]
            rows, columns = (slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
            self._patches[place] = (rows, columns)
        return self._patches[place]


def edits_of(camera: str, edits: Sequence[EditEntry]) -> list[EditEntry]:
    """Those that are of this camera's pictures."""
    return [one for one in edits if one["edit"] != LATENCY and (not one["cameras"] or camera in one["cameras"])]


def _generator(seed: int, camera: str, place: int) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}:{camera}:{place}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def _recolour(image: Image, hue_deg: float) -> Image:
    from PIL import Image as Pillow

    hue, saturation, value = Pillow.fromarray(image).convert("HSV").split()
    turned = (np.asarray(hue).astype(np.int64) + round(hue_deg / 360 * 256)) % 256
    bands = (Pillow.fromarray(turned.astype(np.uint8)), saturation, value)
    return np.asarray(Pillow.merge("HSV", bands).convert("RGB"))


def _blur(image: Image, sigma_px: float) -> Image:
    from PIL import Image as Pillow
    from PIL import ImageFilter

    return np.asarray(Pillow.fromarray(image).filter(ImageFilter.GaussianBlur(sigma_px)))


def _levels(image: Image, made: Callable[[np.ndarray], np.ndarray]) -> Image:
    """With each of the 256 levels replaced."""
    table = np.clip(np.rint(made(np.arange(256, dtype=np.float64))), 0, FULL).astype(np.uint8)
    return table[image]


EDITS: Mapping[str, Callable[[Image, float], Image]] = {
    "recolour": _recolour,
    "blur": _blur,
    "brightness": lambda image, add: _levels(image, lambda level: level + add * FULL),
    "contrast": lambda image, factor: _levels(image, lambda level: GREY + factor * (level - GREY)),
}
