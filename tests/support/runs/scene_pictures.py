"""Pictures of staged scenes for tests: the simulated camera's own drawing, with items, camera and light put where a
claim wants them.

May not: touch a campaign, or be random (noise comes from a seed).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from labctl.clock import SECOND
from labctl.devices import load
from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3
from labctl.testing.given import FIXTURE, SIMULATED

ROOT = Path(__file__).parents[3]
WIDTH, HEIGHT = 640, 480
MARGIN = 48  # drawn around the picture, so that a moved camera sees what was beside it
OBJECTS = {entry.name: entry for entry in FIXTURE.object}


class Stage:
    """A cell with items of one kind in the right tote, seen by one camera."""

    def __init__(self, view: str = "over_shoulder", thing: str = "towels") -> None:
        size = {"width": WIDTH + 2 * MARGIN, "height": HEIGHT + 2 * MARGIN, "rate_hz": 10.0}
        self._camera = load("sim_camera", {"view": view, **size}, **SIMULATED)
        self._camera.connect(0)
        self._thing = thing
        self._drawn = 0

    def look(
        self,
        items: np.ndarray,
        *,
        shift_px: tuple[float, float] = (0.0, 0.0),
        rotation_deg: float = 0.0,
        light: float = 1.0,
        slope: float = 0.0,
        noise: float = 2.0,
        seed: int = 0,
    ) -> np.ndarray:
        """A picture (480, 640, 3) uint8.

        items (n, 4): x, y, z (m, base frame), yaw (rad). shift_px, rotation_deg: how far the camera's picture has
        moved, right and down, and counter-clockwise. light: a factor on all of it; slope: how much brighter its right
        edge is than its left. noise: standard deviation in grey levels.
        """
        self._drawn += 1
        self._camera.sense(self._observation(items))
        image = Image.fromarray(self._camera.grab(self._drawn * SECOND).image)
        turned = image.rotate(rotation_deg, Image.Resampling.BICUBIC, translate=shift_px)
        found = np.asarray(turned, dtype=float)[MARGIN:-MARGIN, MARGIN:-MARGIN]
        found = found * light * np.linspace(1 - slope / 2, 1 + slope / 2, WIDTH)[None, :, None]
        found = found + np.random.default_rng(seed).normal(0.0, noise, found.shape)
        return np.clip(np.round(found), 0, 255).astype(np.uint8)

    def _observation(self, items: np.ndarray) -> dict[str, Any]:
        rows = np.zeros((len(items), 8))
        rows[:, :4], rows[:, 4] = items, 1.0
        thing = OBJECTS[self._thing]
        return {
            "q": FR3.home,
            "tcp": kinematics.poses(FR3.chain, FR3.home[None])[0],
            "gripper": np.array([0.08]),
            "items": rows,
            "object": np.array([*thing.item_size_m, thing.grasp_width_m]),
        }


def arranged(thing: str = "towels", n: int = 4, *, seed: int = 1) -> np.ndarray:
    """n items (n, 4) in the right tote, as the simulated cell would put them."""
    rng = np.random.default_rng(seed)
    centre, size = np.array(FIXTURE.tote[1].centre_m), np.array(FIXTURE.tote[1].size_m)
    side = math.ceil(math.sqrt(n))
    cells = rng.permutation(side * side)[:n]
    place = np.column_stack([cells % side, cells // side]) + rng.uniform(0.3, 0.7, (n, 2))
    found = np.zeros((n, 4))
    found[:, :2] = centre[:2] + (size[:2] - 0.09) * (place / side - 0.5)
    found[:, 2] = centre[2] + OBJECTS[thing].item_size_m[2] / 2
    found[:, 3] = rng.uniform(-1.5, 1.5, n)
    return found
