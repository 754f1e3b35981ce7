"""Exports recorded states as .npz files, one an episode: what numpy alone reads, and what the replay driver plays.

May not: read what a selection hides, or resample.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labctl.errors import StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import Chosen

STREAM = "arm/state"


def write_episode(recordings: Recordings, chosen: Chosen, path: Path) -> dict[str, int]:
    """As `write_states`, for `episode_files`."""
    write_states(recordings.of(chosen), path)
    return {}


def write_states(recording: Recording, path: Path) -> None:
    """Write an episode's states: t_ns (n,) int64, values (n, m), columns (m,), unit.

    Raises StateError when it has no recorded states.
    """
    spec = next((spec for spec in recording.specs if spec.name == STREAM), None)
    if spec is None:
        raise StateError(f"episode {recording.chosen.episode} has no recorded {STREAM}")
    t_ns, values = recording.read(STREAM)
    with path.open("wb") as file:
        np.savez_compressed(file, t_ns=t_ns, values=values, columns=np.array(spec.columns), unit=np.array(spec.unit))
