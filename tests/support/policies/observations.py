"""What policies of the simulated FR3 are built with in tests, and what they see."""

from __future__ import annotations

import numpy as np

from labctl.devices import Observation, Picture
from labctl.testing.given import Given
from support.robots.cells import FIXTURE, cell_named

GIVEN: Given = {"cell": cell_named("sim_fr3"), "fixture": FIXTURE}
Q = np.linspace(-0.3, 0.3, 7)
ARRAYS = {"q": Q, "dq": np.zeros(7), "tcp": np.array([0.4, 0, 0.3, 1, 0, 0, 0.0]), "gripper": np.array([0.08])}
SEEN = Observation(5, ARRAYS, "Move.", {"wrist": (Picture(np.full((48, 64, 3), 9, np.uint8), 5),)})
