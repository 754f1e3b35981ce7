"""Drawing without a graphics library: a pin-hole camera, shaded boxes, tubes and flat faces on a Pillow image.

May not: know robots, totes or time, or keep state between pictures.

Lengths are metres in one common frame; pixels are those of the canvas, u to the right and v down. Camera axes are
right, down, forward, as in OpenCV's pin-hole model: u = cx + f X / Z, v = cy + f Y / Z.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[int, ...]  # red, green, blue
Corners = list[list[float]]  # points in camera axes

NEAR_M = 0.02
_LIGHT = np.array([0.25, 0.35, 0.9]) / np.linalg.norm([0.25, 0.35, 0.9])  # towards the light


class Canvas:
    """An image and the pen that draws on it. Colours are opaque: Pillow blends five times slower."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self.pen = ImageDraw.Draw(image)


@dataclass(frozen=True, slots=True)
class Pinhole:
    """A camera: where it is, its axes as rows (right, down, forward), focal length and centre in pixels."""

    position: np.ndarray
    axes: np.ndarray
    focal: float
    centre: tuple[float, float]

    @staticmethod
    def looking_at(
        position: Sequence[float] | np.ndarray,
        target: Sequence[float] | np.ndarray,
        up: Sequence[float] | np.ndarray,
        *,
        field_of_view_deg: float,
        width: int,
        height: int,
    ) -> Pinhole:
        """A camera at `position` with `target` in the middle of its picture; the field of view is horizontal."""
        eye = np.asarray(position, dtype=float)
        forward = np.asarray(target, dtype=float) - eye
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, np.asarray(up, dtype=float))
        right = right / np.linalg.norm(right)
        axes = np.stack([right, np.cross(forward, right), forward])
        focal = width / 2 / math.tan(math.radians(field_of_view_deg) / 2)
        return Pinhole(eye, axes, focal, (width / 2, height / 2))

    def to_camera(self, points: np.ndarray) -> np.ndarray:
        """Points (n, 3) in camera axes: right, down, forward."""
        return (points - self.position) @ self.axes.T


@dataclass(frozen=True, slots=True)
class Face:
    """A flat polygon: corners as indices into a list of points, and its colour."""

    corners: tuple[int, ...]
    fill: Colour


@dataclass(frozen=True, slots=True)
class Stroke:
    """A round-ended bar between points, thick in metres."""

    corners: tuple[int, ...]
    fill: Colour
    width_m: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A thing to draw: points (n, 3) in its own frame and its parts, farthest first."""

    points: np.ndarray
    parts: tuple[Face | Stroke, ...]


def shaded(colour: Colour, normal: np.ndarray) -> Colour:
    """A colour under a lamp above: full where the face looks at it, down to 45 % where it looks away."""
    lit = 0.72 + 0.28 * float(normal @ _LIGHT)
    return tuple(min(255, int(c * lit)) for c in colour)


def posed(points: np.ndarray, at: np.ndarray, yaw: float) -> np.ndarray:
    """Points (n, 3) turned by yaw about z, then moved."""
    c, s = math.cos(yaw), math.sin(yaw)
    x, y = points[:, 0], points[:, 1]
    return np.stack([at[0] + c * x - s * y, at[1] + s * x + c * y, at[2] + points[:, 2]], axis=1)


def draw_parts(canvas: Canvas, camera: Pinhole, points: np.ndarray, parts: Iterable[Face | Stroke]) -> None:
    """Draw parts in their order. Faces are cut at the near plane; strokes that reach behind it are left out."""
    draw_seen(canvas, camera, camera.to_camera(points).tolist(), parts)


def draw_seen(canvas: Canvas, camera: Pinhole, seen: Corners, parts: Iterable[Face | Stroke]) -> None:
    """As `draw_parts`, of points already in camera axes, so that many things share one transformation."""
    f, (cx, cy) = camera.focal, camera.centre
    pen = canvas.pen
    for part in parts:
        corners = [seen[i] for i in part.corners]
        nearest = min([z for _, _, z in corners])
        if isinstance(part, Face):
            if nearest <= NEAR_M:
                corners = _in_front(corners)
            if len(corners) > 2:
                pen.polygon([(cx + f * x / z, cy + f * y / z) for x, y, z in corners], fill=part.fill)
        elif nearest > NEAR_M:
            width = max(1, round(f * part.width_m / nearest))
            pixels = [(cx + f * x / z, cy + f * y / z) for x, y, z in corners]
            pen.line(pixels, fill=part.fill, width=width, joint="curve" if len(pixels) > 2 else None)


def _in_front(corners: Corners) -> Corners:
    """The part of a polygon beyond the near plane (Sutherland–Hodgman against one plane)."""
    kept: Corners = []
    for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
        if a[2] > NEAR_M:
            kept.append(a)
        if (a[2] > NEAR_M) != (b[2] > NEAR_M):
            k = (NEAR_M - a[2]) / (b[2] - a[2])
            kept.append([a[i] + k * (b[i] - a[i]) for i in range(3)])
    return kept


_BOX = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
_BOX_NORMALS = np.array([(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)], dtype=float)


def draw_box(
    canvas: Canvas, camera: Pinhole, centre: np.ndarray, turn: np.ndarray, size: Sequence[float], fill: Colour
) -> None:
    """A solid box: turn (3, 3) has its axes as columns. Draws the faces that look at the camera, each in its shade."""
    extent = np.asarray(size, dtype=float)
    facing = (_BOX_NORMALS @ (turn.T @ (camera.position - centre)) > np.abs(_BOX_NORMALS) @ extent / 2).tolist()
    normals = _BOX_NORMALS @ turn.T
    parts = [Face(_BOX_FACES[k], shaded(fill, normals[k])) for k in range(6) if facing[k]]
    draw_parts(canvas, camera, (_BOX * extent) @ turn.T + centre, parts)


def draw_tube(
    canvas: Canvas, camera: Pinhole, points: np.ndarray, radii: Sequence[float], fills: Sequence[Colour]
) -> None:
    """A bent, tapered tube through points (n, 3) with a radius (m) at each; fills from its dark edge to its highlight.

    The inner layers are narrower and shifted to the upper left, which reads as a round body under a lamp.
    """
    seen = camera.to_camera(points).tolist()
    if min(z for _, _, z in seen) <= NEAR_M:
        return
    f, (cx, cy) = camera.focal, camera.centre
    bodies = [(cx + f * x / z, cy + f * y / z, f * r / z) for (x, y, z), r in zip(seen, radii, strict=True)]
    for layer, fill in enumerate(fills):
        shrink, shift = 1.0 - 0.34 * layer, 0.2 * layer
        discs = [(u - shift * r, v - shift * r, shrink * r) for u, v, r in bodies]
        for u, v, r in discs:
            canvas.pen.ellipse((u - r, v - r, u + r, v + r), fill=fill)
        for (u0, v0, r0), (u1, v1, r1) in pairwise(discs):
            length = math.hypot(u1 - u0, v1 - v0)
            if length > 1.0:
                nu, nv = (v0 - v1) / length, (u1 - u0) / length
                start = (u0 + nu * r0, v0 + nv * r0, u1 + nu * r1, v1 + nv * r1)
                end = (u1 - nu * r1, v1 - nv * r1, u0 - nu * r0, v0 - nv * r0)
                canvas.pen.polygon(start + end, fill=fill)


def draw_joints(canvas: Canvas, camera: Pinhole, points: np.ndarray, radius: float, fills: Sequence[Colour]) -> None:
    """Round caps (radius in m) at points (n, 3) of a tube, from the dark edge to the highlight."""
    f, (cx, cy) = camera.focal, camera.centre
    for x, y, z in camera.to_camera(points).tolist():
        for layer, fill in enumerate(fills if z > NEAR_M else ()):
            r = f * radius / z * (1.0 - 0.3 * layer)
            u, v = cx + f * x / z - 0.25 * layer * r, cy + f * y / z - 0.25 * layer * r
            canvas.pen.ellipse((u - r, v - r, u + r, v + r), fill=fill)


def ellipse_points(centre: Sequence[float], radius_x: float, radius_y: float, n: int = 12) -> np.ndarray:
    """n points (n, 3) of a level ellipse."""
    angle = np.arange(n) * (2 * math.pi / n)
    x, y, z = centre
    return np.stack([x + radius_x * np.cos(angle), y + radius_y * np.sin(angle), np.full(n, z)], axis=1)


def vignette(width: int, height: int, *, edge: float = 0.72) -> np.ndarray:
    """Brightness (height, width) of a lens and lamp: 1 up and left of the middle, down to `edge` in the corners."""
    v, u = np.mgrid[0:height, 0:width]
    r = np.hypot((u - 0.45 * width) / width, (v - 0.40 * height) / height) / 0.80
    return 1.0 - (1.0 - edge) * np.clip(r, 0.0, 1.0) ** 2
