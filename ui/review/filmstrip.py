"""A row of pictures around a moment of an episode, as a strip of film: which is how a terminal shows a video.

May not: read a video (who opens the screen gives the pictures), or keep the screen waiting for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image as Pictures
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import Static

from labctl.errors import LabctlError
from labctl.ui.console.picture import Picture

# (episode, how many cameras further, times in s since go, width in pixels) -> (camera, [(its time, picture)]); ("", [])
# where nothing was filmed. Called in a thread; may raise LabctlError.
Look = Callable[[str, int, Sequence[float], int], tuple[str, list[tuple[float, np.ndarray]]]]
APART_S = 0.5
NARROWEST = 24  # cells of one picture
MOST = 7
SHARE = 0.4  # of the screen's rows, at most
LOW = 30  # rows of a screen that has none for the strip's own keys


class Filmstrip(Vertical):
    """The pictures before, at and after a moment. `show` asks for them; they are drawn when they are there."""

    def __init__(self, look: Look | None) -> None:
        super().__init__(id="filmstrip")
        self._look = look
        self._wanted: tuple[str, int, float] | None = None
        self._camera = 0

    def compose(self) -> ComposeResult:
        yield Picture(classes="strip")
        yield Static("", id="strip-times", markup=False)

    @property
    def at_s(self) -> float | None:
        """The moment in the middle; None before one was asked for."""
        return self._wanted[2] if self._wanted else None

    def show(self, episode: str, at_s: float) -> None:
        """The pictures around a moment, s since go."""
        wanted = (episode, self._camera, at_s)
        if self._look is not None and wanted != self._wanted:
            self._wanted = wanted
            self._fetch(wanted)

    def shift(self, by: int) -> None:
        """So many pictures on, or back."""
        if self._wanted is not None:
            self.show(self._wanted[0], self._wanted[2] + by * APART_S)

    def turn(self) -> None:
        """The next camera."""
        self._camera += 1
        if self._wanted is not None:
            self.show(self._wanted[0], self._wanted[2])

    def on_resize(self, event: Resize) -> None:
        if self._wanted is not None:
            self._fetch(self._wanted)

    @property
    def _number(self) -> int:
        n = min(MOST, max(3, self.size.width // NARROWEST))
        return n if n % 2 else n - 1

    @work(thread=True, exclusive=True)
    def _fetch(self, wanted: tuple[str, int, float]) -> None:
        assert self._look is not None
        episode, camera, middle = wanted
        half = self._number // 2
        times = [middle + APART_S * n for n in range(-half, half + 1)]
        try:
            strip = self._look(episode, camera, times, 320)
            text = ""
        except LabctlError as error:
            strip, text = ("", []), str(error)
        if self.is_attached:
            self.app.call_from_thread(self._draw, wanted, strip, text)

    def _draw(
        self, wanted: tuple[str, int, float], filmstrip: tuple[str, list[tuple[float, np.ndarray]]], text: str
    ) -> None:
        if wanted != self._wanted or not self.is_attached:
            return
        camera, pictures = filmstrip
        times = self.query_one("#strip-times", Static)
        width = self.size.width
        if not pictures or width < 3 * len(pictures):
            self.query_one(Picture).put(np.zeros((2, max(2, width), 3), np.uint8))
            times.update(text or "no camera filmed this episode")
            return
        each = width // len(pictures)
        self.query_one(Picture).put(
            strip([picture for _, picture in pictures], each, round(SHARE * self.app.size.height))
        )
        middle = len(pictures) // 2
        marks = (f"▲ {at:.2f} s" if n == middle else f"{at:.2f}" for n, (at, _) in enumerate(pictures))
        below = f"\n{camera} · C the other camera · ← → half a second"
        times.update("".join(f"{mark:^{each}}" for mark in marks) + ("" if self.app.size.height < LOW else below))


def strip(pictures: Sequence[np.ndarray], each: int, rows: int) -> np.ndarray:
    """Pictures (h, w, 3) uint8 side by side, each so many cells wide with a dark cell between them, at most so many
    rows of cells high; (2 rows, n x each, 3). A narrower picture keeps its shape.
    """
    high, wide, _ = pictures[0].shape
    across = each - 1
    lines = max(1, min(rows, round(across * high / wide / 2)))
    across = min(across, round(2 * lines * wide / high))
    whole = np.zeros((2 * lines, each * len(pictures), 3), np.uint8)
    for number, picture in enumerate(pictures):
        small = Pictures.fromarray(np.ascontiguousarray(picture)).resize((across, 2 * lines), Pictures.Resampling.BOX)
        left = number * each + (each - across) // 2
        whole[:, left : left + across] = np.asarray(small)
    return whole
