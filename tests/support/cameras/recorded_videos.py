"""Recorded videos for tests: marked pictures at given times, encoded as a campaign's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labctl.store.video import VideoWriter
from support.cameras import barcode


def write_video(path: Path, pts_us: Sequence[int], *, width: int = 320, height: int = 240) -> Path:
    """An mp4 whose picture i is marked with i and its time in ns, at pts_us[i]."""
    writer = VideoWriter(path, width, height, rate_hz=30.0)
    for i, at_us in enumerate(pts_us):
        writer.write(barcode.paint(width, height, i, at_us * 1000), at_us)
    writer.close()
    return path
