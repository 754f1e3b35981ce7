"""What moves on the screen: joints as small curves, cameras as half-block pictures.

May not: show a latency or a rate, or redraw faster than asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from labctl.axes import told_in
from labctl.clock import SECOND
from labctl.ui.console.picture import Picture

KEPT = 120  # points of a curve
BARS = "▁▂▃▄▅▆▇█"
NAME, VALUE = 9, 13  # columns beside a curve
DRAW_NS = SECOND // 5
PICTURE_NS = 2 * SECOND // 5
OLD_S = 2.0
GHOST_NS = 3 * SECOND // 2  # a ghost older than this gives way to the live picture


def is_shown(widget: Widget) -> bool:
    """Is it part of the screen, with all that it lies in? What is not is not drawn anew: Textual would then measure the
    whole screen again at a bad moment, and lines of before stay where they were.
    """
    return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))


class Joints(Widget):
    """The joints in rad and the gripper's opening in mm, as the robot measures them: a row with a curve for each. Of a
    robot that names its axes, each by its name in its unit; a base's speeds are not shown (`axes.told_in`).
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"joints--name", "joints--curve"}

    def __init__(self) -> None:
        super().__init__()
        self._drawn_ns = 0
        self._rows: list[deque[float]] = []
        self._axes: Sequence[Sequence[str]] | None = None

    def put(
        self,
        arrays: Mapping[str, np.ndarray],
        now_ns: int,
        axes: Sequence[Sequence[str]] | None = None,
        *,
        draw: bool = True,
    ) -> None:
        """Take an observation: q (dof,), gripper (h,), by `axes` (names and units), else rad and one opening in m; show
        it, if it is time and `draw`.
        """
        hand = np.ravel(arrays["gripper"]).tolist()
        values = [*np.asarray(arrays["q"]).tolist(), *(hand if axes else [1000 * hand[0]])]
        if axes:
            told = [told_in(unit) for _, unit in axes]
            values, axes = list(compress(values, told)), list(compress(axes, told))
        self._axes = axes
        if len(values) != len(self._rows):
            self._rows = [deque(maxlen=KEPT) for _ in values]
            self.refresh(layout=True)
        for row, value in zip(self._rows, values, strict=True):
            row.append(value)
        if draw and now_ns - self._drawn_ns >= DRAW_NS and is_shown(self):
            self._drawn_ns = now_ns
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if y >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        last, value = y + 1 == len(self._rows), self._rows[y][-1]
        name, unit = ("gripper", "mm") if last else (f"joint {y + 1}", "rad")
        if self._axes:
            name, unit = self._axes[y]
            name = name.rpartition(".")[2].replace("_joint", " ")[-7:]
        parts = [
            (f"{name:>7}  ", self.get_component_rich_style("joints--name")),
            (sparks(self._rows[y], width - NAME - VALUE), self.get_component_rich_style("joints--curve")),
            (f"{value:+9.1f} mm " if unit == "mm" else f"{value:+9.3f} {unit:<3}", self.rich_style),
        ]
        return Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(width, self.rich_style)


def sparks(values: Sequence[float], width: int) -> str:
    """The latest values as a row of bars from the lowest to the highest; an older history is drawn closer together. A
    value that is no number, which a driver may say before it has read one, is a blank.
    """
    if width <= 0:
        return ""
    kept = np.asarray(values, float)
    known = kept[np.isfinite(kept)]
    if not len(known):
        return " " * width
    shown = kept[np.linspace(0, len(kept) - 1, width).round().astype(int)]
    low, span = known.min(), max(float(np.ptp(known)), 1e-9)
    levels = np.where(np.isfinite(shown), (shown - low) / span * (len(BARS) - 1), -1).round().astype(int)
    return "".join(BARS[level] if level >= 0 else " " for level in levels)


class Cameras(Horizontal):
    """The latest small picture of every camera, and how old it is."""

    def __init__(self) -> None:
        super().__init__()
        self._tiles: dict[str, tuple[Static, Picture]] = {}
        self._seen_ns: dict[str, int] = {}
        self._drawn_ns: dict[str, int] = {}
        self._ghosts: dict[str, tuple[int, float | None]] = {}

    def put(self, camera: str, image: np.ndarray, now_ns: int) -> None:
        """Take a picture (height, width, 3) uint8 RGB."""
        self._seen_ns[camera] = now_ns
        if camera not in self._tiles:
            self._tiles[camera] = (Static(camera, classes="camera-name"), Picture(classes="camera"))
            self.mount(Vertical(*self._tiles[camera], name=camera))
            self.call_after_refresh(self.sort_children, key=lambda tile: tile.name or "")
        elif self._ghosted(camera, now_ns):
            return
        elif now_ns - self._drawn_ns.get(camera, 0) >= PICTURE_NS and is_shown(self):
            self._drawn_ns[camera] = now_ns
            self._tiles[camera][1].put(image)

    def ghost(self, camera: str, image: np.ndarray, score: float | None, now_ns: int) -> None:
        """Take a picture of the staged scene over its reference; it stands in for the live one while these come."""
        if camera in self._tiles:
            self._ghosts[camera] = (now_ns, score)
            self._seen_ns[camera] = now_ns
            if is_shown(self):
                self._tiles[camera][1].put(image)

    def _ghosted(self, camera: str, now_ns: int) -> bool:
        return camera in self._ghosts and now_ns - self._ghosts[camera][0] < GHOST_NS

    def ages(self, now_ns: int) -> None:
        """Say of each camera how old its picture is once that matters."""
        for camera, (label, _) in self._tiles.items():
            age_s = (now_ns - self._seen_ns[camera]) / SECOND
            text = camera if age_s < OLD_S else f"{camera}: no picture for {age_s:.0f} s"
            if self._ghosted(camera, now_ns):
                score = self._ghosts[camera][1]
                text += " over its reference" + (f" · match {score:.0f}" if score is not None else "")
            if label.content != text and is_shown(self):
                label.update(text)
