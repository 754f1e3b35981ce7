"""What encoding a camera's video costs on this machine, and which setting is the best that can be afforded.

May not: choose for anyone: a cell file says how it encodes, this says what that takes and what else would do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labctl.clock import SECOND, MonotonicClock, cpu_ns
from labctl.config.cell_schema import Video
from labctl.store.video import DepthWriter, VideoWriter

# Two cameras may take half a core: the robot, the recorder and the run process want the rest of two.
MOST_CORES = 0.25
FRAMES, WARM = 60, 10
SCENES = 12  # different pictures, shown in turn
# From the slowest, which makes the smallest files, to the fastest.
PRESETS: Mapping[str, Sequence[str]] = {
    "libx264": ("medium", "fast", "faster", "veryfast", "superfast", "ultrafast"),
    "libx265": ("medium", "fast", "faster", "veryfast", "superfast", "ultrafast"),
    "libsvtav1": ("6", "8", "10", "12"),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one camera at its rate: cores of this machine, frames per second at most, megabytes a minute."""

    cores: float
    most_hz: float
    mb_min: float

    def affordable(self, rate_hz: float) -> bool:
        """Cheap enough, and twice as fast as it has to be: an encoder shares its machine."""
        return self.cores <= MOST_CORES and self.most_hz >= 2 * rate_hz

    def __str__(self) -> str:
        return f"{self.cores:.2f} cores, {self.most_hz:.0f} frames/s at most, {self.mb_min:.1f} MB/min"


Measure = Callable[[Video, int, int, float], Cost]
MeasureDepth = Callable[[int, int, float], Cost]


def measure_cost(video: Video, width: int, height: int, rate_hz: float) -> Cost:
    """Encode some seconds of a made-up scene: a textured table, things that move, and a sensor's noise.

    Raises InputError for settings no encoder takes, StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="labctl-encode-") as folder:
        path = Path(folder) / "v.mp4"
        writer = VideoWriter(path, width, height, video, rate_hz=rate_hz)
        return _price(writer, scene(width, height), path, rate_hz)


def try_encoder(video: Video, width: int, height: int, rate_hz: float) -> None:
    """Encode one picture. Raises InputError for settings no encoder takes, StorageError."""
    with (
        tempfile.TemporaryDirectory(prefix="labctl-encode-") as folder,
        closing(VideoWriter(Path(folder) / "v.mp4", width, height, video, rate_hz=rate_hz)) as writer,
    ):
        writer.write(np.zeros((height, width, 3), np.uint8), 0)


def measure_depth(width: int, height: int, rate_hz: float) -> Cost:
    """Write some seconds of a made-up scene's depth, bit for bit as depth is written, with a sensor's noise."""
    with tempfile.TemporaryDirectory(prefix="labctl-encode-") as folder:
        path = Path(folder) / "v.mkv"
        pictures = [(4 * picture.astype(np.uint16).sum(axis=2)).astype(np.uint16) for picture in scene(width, height)]
        writer = DepthWriter(path, width, height, rate_hz=rate_hz)
        return _price(writer, pictures, path, rate_hz)


def _price(writer: VideoWriter | DepthWriter, pictures: Sequence[np.ndarray], path: Path, rate_hz: float) -> Cost:
    clock = MonotonicClock()
    with closing(writer):
        for number in range(WARM):
            writer.write(pictures[number % SCENES], round(number / rate_hz * 1e6))
        before, began_ns, size = cpu_ns(), clock.now_ns(), path.stat().st_size
        for number in range(WARM, WARM + FRAMES):
            writer.write(pictures[number % SCENES], round(number / rate_hz * 1e6))
        took, wall_ns = cpu_ns() - before, max(1, clock.now_ns() - began_ns)
    per_second = rate_hz / FRAMES
    grown = path.stat().st_size - size
    return Cost(took / SECOND * per_second, FRAMES * SECOND / wall_ns, grown * per_second * 60 / 1e6)


def best_affordable(
    video: Video, width: int, height: int, rate_hz: float, measure: Measure
) -> tuple[Video, Cost] | None:
    """The slowest preset of a codec that this machine affords for one camera, or None when it affords none.

    Tried from the fastest on, since a preset that is too slow takes the longest to find out.
    """
    best = None
    for preset in reversed(PRESETS.get(video.codec, ())):
        wanted = video.model_copy(update={"preset": preset})
        cost = measure(wanted, width, height, rate_hz)
        if not cost.affordable(rate_hz):
            break
        best = (wanted, cost)
    return best


def scene(width: int, height: int) -> list[np.ndarray]:
    """Pictures (height, width, 3) uint8 to encode, the same on every machine."""
    draw = np.random.default_rng(5)
    coarse = draw.uniform(60, 180, (height // 16 + 2, width // 16 + 2, 3))
    table = np.kron(coarse, np.ones((16, 16, 1)))[:height, :width] + draw.normal(0, 6, (height, width, 3))
    pictures = []
    for number in range(SCENES):
        picture = table + draw.normal(0, 3, table.shape)
        for thing in range(4):
            side = height // 6
            x = int((0.1 + 0.2 * thing + 0.01 * number * (thing + 1)) * (width - side)) % (width - side)
            y = int((0.15 + 0.18 * thing) * (height - side))
            picture[y : y + side, x : x + side] = (40 + 50 * thing, 200 - 40 * thing, 90 + 20 * thing)
        pictures.append(np.clip(picture, 0, 255).astype(np.uint8))
    return pictures
