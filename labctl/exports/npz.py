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
from labctl.streams import STATE


def write_episode(recordings: Recordings, chosen: Chosen, path: Path) -> dict[str, int]:
    """As `write_states`, for `episode_files`."""
    write_states(recordings.of(chosen), path)
    return {}


def write_states(recording: Recording, path: Path) -> None:
    """Write an episode's states: t_ns (n,) int64, values (n, m), columns (m,), unit; of a second robot "right.t_ns", ….

    Raises StateError when it has no recorded states.
    """
    if not recording.has(STATE):
        raise StateError(f"episode {recording.chosen.episode} has no recorded {STATE}")
    found: dict[str, np.ndarray] = {}
    for stream in recording.robots:
        own = recording.spec(stream)
        t_ns, values = recording.read(stream)
        of = "" if stream == STATE else f"{stream.partition('/')[0]}."
        arrays = {"t_ns": t_ns, "values": values, "columns": np.array(own.columns), "unit": np.array(own.unit)}
        found |= {f"{of}{name}": array for name, array in arrays.items()}
    with path.open("wb") as file:
        save: Callable[..., None] = np.savez_compressed
        save(file, **found)
