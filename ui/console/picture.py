"""A camera's picture in half blocks, two pixels to a cell, drawn line by line so that a replaced one costs little.

Drawn through a general renderable, two live cameras kept the screen from answering for a fifth of a second
(docs/decisions/0016-pictures-of-our-own-in-the-console.md).

May not: show the picture to anything but eyes: colours are rounded to 32 steps a channel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image as Pictures
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from labctl.messages.body_parts import Photo

Photos = Callable[[Photo], np.ndarray]
"""The picture, (height, width, 3) uint8 RGB, of a photo that a campaign keeps; may raise LabctlError."""
STEP = 8  # of 256
UPPER = "▀"  # its colour is the upper pixel's, its background the lower one's


@lru_cache(maxsize=65_536)
def _style(upper: int, lower: int) -> Style:
    """Of one cell; each colour is 0xRRGGBB."""
    front, back = ((rgb >> 16, rgb >> 8 & 255, rgb & 255) for rgb in (upper, lower))
    return Style(color=Color.from_rgb(*front), bgcolor=Color.from_rgb(*back))


class Picture(Widget):
    """As wide as it may be, as high as its picture then is; cells are taken to be twice as high as wide."""

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._image: np.ndarray | None = None
        self._cells = np.empty((0, 0, 2), np.int64)

    def put(self, image: np.ndarray) -> None:
        """Show a picture (height, width, 3) uint8 RGB: rows of cells that look the same stay as they are, and one of
        another shape is laid out anew.
        """
        fits = self._image is not None and self._image.shape == image.shape
        self._image, before = image, self._cells
        size = self.content_size
        self._cells = cells(image, size.width, size.height) if size.area else np.empty((0, 0, 2), np.int64)
        if not fits or before.shape != self._cells.shape:
            self.refresh(layout=not fits)
            return
        rows = np.flatnonzero((before != self._cells).any(axis=(1, 2)))
        self.refresh(*(Region(0, int(row), size.width, 1) for row in rows), repaint=len(rows) > 0)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 0 if self._image is None else max(1, round(width * self._image.shape[0] / self._image.shape[1] / 2))

    def render_line(self, y: int) -> Strip:
        """One row of cells, equal neighbours in one segment."""
        size = self.content_size
        if self._image is None or not size.area:
            return Strip.blank(size.width, self.rich_style)
        if self._cells.shape[:2] != (size.height, size.width):
            self._cells = cells(self._image, size.width, size.height)
        if y >= size.height:
            return Strip.blank(size.width, self.rich_style)
        row = self._cells[y]
        starts = np.flatnonzero(np.concatenate([[True], (row[1:] != row[:-1]).any(axis=1)]))
        lengths = np.diff(np.append(starts, len(row))).tolist()
        pairs = row[starts].tolist()
        return Strip(
            [Segment(UPPER * n, _style(*pair)) for n, pair in zip(lengths, pairs, strict=True)], cell_length=len(row)
        )


def cells(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """The colours (0xRRGGBB) of each cell's upper and lower pixel, (height, width, 2), of a picture (h, w, 3) uint8."""
    small = Pictures.fromarray(np.ascontiguousarray(image)).resize((width, 2 * height), Pictures.Resampling.BOX)
    rgb = np.asarray(small).astype(np.int64) // STEP * STEP + STEP // 2
    packed = (rgb[..., 0] << 16) + (rgb[..., 1] << 8) + rgb[..., 2]
    return np.stack([packed[0::2], packed[1::2]], axis=-1)
