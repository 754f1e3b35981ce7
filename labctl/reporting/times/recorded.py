"""What a part of a report reads of an episode's recording: a stream's samples, as far as they are there and whole.

May not: tell apart why something cannot be read; `labctl verify` does, and without it there is no report.
"""

from __future__ import annotations

import numpy as np

from labctl.errors import LabctlError
from labctl.store.read_once import Samples

POLICY = "policy"  # the stream of questions to a policy
SENSOR = "sensor/"  # with the sensor's name behind it


def samples_of(store: Samples, episode: str, stream: str) -> tuple[np.ndarray, np.ndarray] | None:
    """t_ns (n,) and values (n, columns); None where the stream was not recorded, or holds a damaged chunk."""
    if all(spec.name != stream for spec in store.streams(episode)):
        return None
    try:
        return store.read(episode, stream)
    except LabctlError:
        return None
