"""What policies of the simulated FR3 are built with in tests, and what they see."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from labctl.devices import Observation, Picture

ROOT = Path(__file__).parents[3]
GIVEN: dict[str, Any] = {
    "cell": tomllib.loads((ROOT / "hw_configs" / "sim_fr3.toml").read_text()),
    "fixture": tomllib.loads((ROOT / "fixtures" / "two_totes.toml").read_text()),
}
Q = np.linspace(-0.3, 0.3, 7)
ARRAYS = {"q": Q, "dq": np.zeros(7), "tcp": np.array([0.4, 0, 0.3, 1, 0, 0, 0.0]), "gripper": np.array([0.08])}
SEEN = Observation(5, ARRAYS, "Move.", {"wrist": (Picture(np.full((48, 64, 3), 9, np.uint8), 5),)})
