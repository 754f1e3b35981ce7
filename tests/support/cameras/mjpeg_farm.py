"""Network cameras in a process of their own, whose pictures are made before and sent in turn: a source that costs
little, so that what a machine does with its frames can be measured.

May not: be asked for a picture's time; a picture says its number only, modulo `PICTURES`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labctl.checks.encoding_cost import SCENES, scene
from support.cameras import barcode
from support.cameras.mjpeg import MjpegServer, jpeg

PICTURES = 20 * SCENES
MAIN = "from support.cameras.mjpeg_farm import main; main()"


@dataclass(frozen=True, slots=True)
class Farm:
    """The process and the addresses of its cameras."""

    pid: int
    urls: list[str]


class CannedServer(MjpegServer):
    """See the module."""

    def __init__(self, width: int, height: int, rate_hz: float) -> None:
        places = scene(width, height)
        self._pictures = []
        for number in range(PICTURES):
            picture = places[number % SCENES].copy()
            marked = barcode.paint(width, height, number, 0)
            picture[: height // 2, :height] = marked[: height // 2, :height]
            self._pictures.append(jpeg(picture))
        super().__init__(width, height, rate_hz)

    def _picture(self, number: int) -> bytes:
        return self._pictures[number % PICTURES]


@contextmanager
def farm(count: int, width: int, height: int, rate_hz: float) -> Iterator[Farm]:
    """So many cameras alike; they end with the context."""
    words = [sys.executable, "-c", MAIN, *(str(value) for value in (count, width, height, rate_hz))]
    tests = Path(__file__).parents[2]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tests)
    try:
        assert child.stdout is not None
        yield Farm(child.pid, child.stdout.readline().split())
    finally:
        child.terminate()
        child.communicate()


def main() -> None:
    """Serve until the parent lets go of standard input."""
    count, width, height = (int(word) for word in sys.argv[1:4])
    servers = [CannedServer(width, height, float(sys.argv[4])) for _ in range(count)]
    sys.stdout.write(" ".join(server.url for server in servers) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
