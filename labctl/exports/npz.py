"""Exports recorded states as .npz files, one an episode: what numpy alone reads, and what the replay driver plays.

May not: read what a selection hides, or resample.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from labctl.errors import StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import Chosen
from labctl.streams import robot_states

STREAM = "arm/state"


def write_episode(recordings: Recordings, chosen: Chosen, path: Path) -> dict[str, int]:
    """As `write_states`, for `episode_files`."""
    write_states(recordings.of(chosen), path)
    return {}


def write_states(recording: Recording, path: Path) -> None:
    """Write an episode's states: t_ns (n,) int64, values (n, m), columns (m,), unit; of a second robot "right.t_ns", ….

    Raises StateError when it has no recorded states.
    """
    spec = next((spec for spec in recording.specs if spec.name == STREAM), None)
    if spec is None:
        raise StateError(f"episode {recording.chosen.episode} has no recorded {STREAM}")
    found: dict[str, np.ndarray] = {}
    columns = {one.name: one.columns for one in recording.specs}
    for stream in robot_states(columns):
        own = next(one for one in recording.specs if one.name == stream)
        t_ns, values = recording.read(stream)
        of = "" if stream == STREAM else f"{stream.partition('/')[0]}."
        arrays = {"t_ns": t_ns, "values": values, "columns": np.array(own.columns), "unit": np.array(own.unit)}
        found |= {f"{of}{name}": array for name, array in arrays.items()}
    with path.open("wb") as file:
        save: Callable[..., None] = np.savez_compressed
        save(file, **found)
