"""Depth seen from the colour sensor of a software RealSense: where each of its pixels must lie."""

from __future__ import annotations

import numpy as np

from labctl.devices import Frame
from support.cameras.software_realsense import BASELINE_M, FOCAL, depth_image


def expected_depth(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each depth pixel of a frame as the colour sensor sees it: its column, line, and depth, by the pin-hole model."""
    depth = depth_image(320, 240, number).astype(float)
    line, column = np.mgrid[:240, :320]
    x = (column - 159.5) / FOCAL["depth"] * depth / 1000 + BASELINE_M
    y = (line - 120.25) / FOCAL["depth"] * depth / 1000
    z = depth / 1000
    return FOCAL["color"] * x / z + 159.5, FOCAL["color"] * y / z + 120.25, depth


def check_alignment(frame: Frame) -> None:
    assert frame.depth is not None and (frame.depth.shape, frame.depth.dtype) == ((240, 320), np.uint16)
    column, line, depth = expected_depth(frame.number)
    inside = (column > 1) & (column < 318) & (line > 1) & (line < 238)
    seen = frame.depth[np.rint(line[inside]).astype(int), np.rint(column[inside]).astype(int)]
    assert inside.mean() > 0.85
    assert np.abs(seen - depth[inside]).max() <= 8  # mm; the slope is 2.5 mm a pixel, and pixels grow by a thirtieth
    assert np.abs(seen - depth[inside]).mean() < 2
