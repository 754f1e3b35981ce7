"""What stands in a simulated picture: the table, open totes, and items by kind, as faces and strokes for `draw`.

May not: know a robot, a camera driver or time.

Everything is in the robot's base frame, z up, the table's top at z = 0; an item's own frame has x along its length and
its middle at the origin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.drivers.sim.draw import Colour, Face, Shape, Stroke, ellipse_points, shaded

WALL_M = 0.010
TOTE: Colour = (142, 152, 165)
FLOOR: Colour = (92, 100, 112)
SHADE = 0.62  # of the light is left in a shadow
_TABLE: Colour = (182, 153, 120)
_FOOT: Colour = (70, 74, 82)
_RIM: Colour = (198, 206, 216)
_CORNERS = ((-1, -1), (1, -1), (1, 1), (-1, 1))
_INWARD = ((0, 1, 0), (-1, 0, 0), (0, -1, 0), (1, 0, 0))


@dataclass(frozen=True, slots=True)
class Tote:
    """An open box: centre (3,) of its floor and inner size (length x, width y, height z), axis-aligned."""

    centre: np.ndarray
    size: np.ndarray

    def holds(self, point: Sequence[float] | np.ndarray) -> bool:
        """Whether a point (x, y, …) is over the tote's floor."""
        x, y = point[0] - self.centre[0], point[1] - self.centre[1]
        return bool(abs(x) <= self.size[0] / 2 and abs(y) <= self.size[1] / 2)

    def corners(self) -> np.ndarray:
        """Sixteen corners (16, 3): inner bottom, inner top, outer top, outer bottom, each four counter-clockwise."""
        half, outer = self.size[:2] / 2, self.size[:2] / 2 + WALL_M
        z0, z1 = self.centre[2] + 0.002, self.centre[2] + self.size[2]
        rings = [(half, z0), (half, z1), (outer, z1), (outer, self.centre[2])]
        return np.array(
            [(self.centre[0] + i * e[0], self.centre[1] + j * e[1], z) for e, z in rings for i, j in _CORNERS]
        )


class Room:
    """Everything that never moves: `points` (n, 3) and faces over them, in the order that a viewpoint needs."""

    def __init__(self, totes: Sequence[Tote]) -> None:
        self._totes = tuple(totes)
        self._starts: list[int] = []
        self._table: list[Face] = []
        blocks: list[np.ndarray] = []
        count = 0

        def add(points: np.ndarray, fill: Colour | None = None) -> int:
            nonlocal count
            if fill is not None:
                self._table.append(Face(tuple(range(count, count + len(points))), fill))
            blocks.append(points)
            count += len(points)
            return count - len(points)

        for k in range(8):
            y0, y1 = 0.2 * k - 0.8, 0.2 * k - 0.6
            tone = (1.0, 0.955, 0.985, 0.94)[k % 4]
            add(np.array([(-0.45, y0, 0), (1.05, y0, 0), (1.05, y1, 0), (-0.45, y1, 0)]), dimmed(_TABLE, tone))
        add(ellipse_points((0.03, -0.03, 0), 0.15, 0.14, 20), dimmed(_TABLE, 0.7))
        add(ellipse_points((0, 0, 0), 0.11, 0.11, 20), _FOOT)
        for tote in self._totes:
            add(tote.corners()[12:] * (1, 1, 0) + (0.035, -0.03, 0), dimmed(_TABLE, 0.72))
            self._starts.append(add(tote.corners()))
        self.points = np.concatenate(blocks)

    def layers(self, eye: np.ndarray) -> tuple[list[Face], list[Face]]:
        """The faces seen from `eye`: those behind whatever lies in the totes and those before it, farthest first."""
        behind, before = list(self._table), []
        totes = sorted(
            zip(self._totes, self._starts, strict=True), key=lambda entry: -float(np.linalg.norm(entry[0].centre - eye))
        )
        for tote, start in totes:
            back, front = _tote_faces(tote, start, eye.tolist())
            behind += back
            before += front
        return behind, before


def _tote_faces(tote: Tote, start: int, eye: Sequence[float]) -> tuple[list[Face], list[Face]]:
    ring = [(start + i, start + (i + 1) % 4) for i in range(4)]
    behind = [Face((start, start + 1, start + 2, start + 3), FLOOR)]
    before: list[Face] = []
    for k, (inward, axis) in enumerate(zip(_INWARD, (1, 0, 1, 0), strict=True)):
        i, n = ring[k]
        distance = inward[axis] * (eye[axis] - float(tote.centre[axis])) + float(tote.size[axis]) / 2
        rim = Face((i + 4, n + 4, n + 8, i + 8), _RIM)
        if distance > 0:
            behind += [Face((i, n, n + 4, i + 4), _INNER[k]), rim]
        else:
            before.append(rim)
        if distance < -WALL_M:
            before.append(Face((i + 12, n + 12, n + 8, i + 8), _OUTER[k]))
    return behind, before


def dimmed(colour: Colour, share: float) -> Colour:
    """A colour with a share of its light."""
    return tuple(int(c * share) for c in colour)


_INNER = [dimmed(shaded(TOTE, np.array(n, dtype=float)), 0.78) for n in _INWARD]
_OUTER = [dimmed(shaded(TOTE, -np.array(n, dtype=float)), 0.95) for n in _INWARD]


def item_shape(kind: str, size: Sequence[float]) -> Shape:
    """How an item of a kind looks: known words in its name pick a form; anything else is a plain block of its size."""
    length, width, height = (float(s) for s in size)
    for word, form in (("spoon", _spoon), ("towel", _towel), ("scissor", _scissors), ("batter", _battery)):
        if word in kind.lower():
            return form(length, width, height)
    return _block(length, width, height)


def _spoon(length: float, width: float, height: float) -> Shape:
    wood, light, hollow = (214, 172, 112), (236, 204, 152), (176, 132, 78)
    bowl_x = length / 2 - 0.9 * width
    bowl = ellipse_points((bowl_x, 0, 0), 0.9 * width, width / 2)
    inner = ellipse_points((bowl_x, 0, 0), 0.6 * width, 0.3 * width)
    bar = np.array([(-length / 2, 0, 0), (bowl_x - 0.7 * width, 0, 0)])
    raised = bar + np.array([0, 0, height / 3])
    rim, dent = tuple(range(4, 16)), tuple(range(16, 28))
    parts = (
        Stroke((0, 1), wood, 0.42 * width),
        Stroke((2, 3), light, 0.16 * width),
        Face(rim, wood),
        Face(dent, hollow),
    )
    return Shape(np.concatenate([bar, raised, bowl, inner]), parts)


def _block(length: float, width: float, height: float, colour: Colour = (205, 120, 70)) -> Shape:
    x, y, z = length / 2, width / 2, height / 2
    low = [(i * x, j * y, -z) for i, j in _CORNERS]
    top = [(i * x, j * y, z) for i, j in _CORNERS]
    sides = [Face((k, (k + 1) % 4, 4 + (k + 1) % 4, 4 + k), dimmed(colour, 0.62)) for k in range(4)]
    return Shape(np.array(low + top), (*sides, Face((4, 5, 6, 7), colour)))


def _towel(length: float, width: float, height: float) -> Shape:
    block = _block(length, width, height, (72, 124, 214))
    x, y, z = length / 2, width / 2, height / 2 + 0.001
    marks = [(0.62 * x, -y, z), (0.62 * x, y, z), (0.80 * x, -y, z), (0.80 * x, y, z), (-x, 0, z), (0.5 * x, 0, z)]
    folds = (
        Stroke((8, 9), (226, 236, 250), 0.006),
        Stroke((10, 11), (226, 236, 250), 0.006),
        Stroke((12, 13), (52, 96, 176), 0.003),
    )
    return Shape(np.concatenate([block.points, marks]), (*block.parts, *folds))


def _scissors(length: float, width: float, height: float) -> Shape:
    red, steel, shine = (206, 44, 48), (150, 156, 166), (212, 218, 226)
    pivot, ring = -0.02 * length, 0.30 * width
    x0, x1, y = -length / 2 + 1.2 * ring, length / 2, 0.14 * width
    blades = [(pivot - 0.1 * length, y, 0), (x1, -y, 0), (pivot - 0.1 * length, -y, 0), (x1, y, 0), (pivot, 0, height)]
    loops = [ellipse_points((x0, side * (ring + 0.12 * width), 0), 1.2 * ring, ring) for side in (-1, 1)]
    points = np.concatenate([np.array(blades), *loops])
    first, second = tuple(range(5, 17)), tuple(range(17, 29))
    parts = (
        Stroke((0, 1), steel, 0.16 * width),
        Stroke((2, 3), shine, 0.16 * width),
        Stroke((0, 5), red, 0.2 * width),
        Stroke((2, 17), red, 0.2 * width),
        Stroke((*first, first[0]), red, 0.16 * width),
        Stroke((*second, second[0]), red, 0.16 * width),
        Stroke((4, 4), (70, 72, 78), 0.10 * width),
    )
    return Shape(points, parts)


def _battery(length: float, width: float, height: float) -> Shape:
    x, z = length / 2, height / 2
    axis = [(-x, 0, 0), (0.35 * x, 0, 0), (0.35 * x, 0, 0), (0.94 * x, 0, 0), (x, 0, 0), (1.08 * x, 0, 0)]
    shine = [(-0.95 * x, 0.2 * width, z), (0.9 * x, 0.2 * width, z)]
    parts = (
        Stroke((4, 5), (190, 194, 200), 0.4 * width),
        Stroke((2, 4), (40, 168, 84), width),
        Stroke((0, 1), (34, 36, 40), width),
        Stroke((6, 7), (150, 196, 168), 0.14 * width),
    )
    return Shape(np.array(axis + shine), parts)


def shadow(at: np.ndarray, yaw: float, size: Sequence[float], totes: Sequence[Tote]) -> Shape:
    """The dark patch that a thing of a size (m) throws on the tote or table below it."""
    below = next((tote for tote in totes if tote.holds(at)), None)
    height = 0.001 if below is None else float(below.centre[2]) + 0.003
    c, s = math.cos(yaw), math.sin(yaw)
    x, y = (_ROUND * (0.54 * size[0] + 0.004, 0.60 * size[1] + 0.004)).T
    drift = 0.010 + 0.25 * max(0.0, float(at[2]) - height - size[2])
    points = np.empty((len(_ROUND), 3))
    points[:, 0], points[:, 1], points[:, 2] = at[0] + drift + c * x - s * y, at[1] - drift + s * x + c * y, height
    return Shape(points, (_DARK_FLOOR if below is not None else _DARK_TABLE,))


_ROUND = ellipse_points((0, 0, 0), 1.0, 1.0, 10)[:, :2]
_DARK_FLOOR = Face(tuple(range(10)), dimmed(FLOOR, SHADE))
_DARK_TABLE = Face(tuple(range(10)), dimmed(_TABLE, SHADE))
