"""Exports recorded states as .npz files, one an episode: what numpy alone reads, and what the replay driver plays.

May not: write a stream that depends on the arm of the experiment, or leave a half-written file.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labctl.durable import replace_file
from labctl.errors import StateError
from labctl.traces import TraceStore

STREAM = "arm/state"


def write_states(store: TraceStore, episodes: Sequence[str], folder: Path) -> list[Path]:
    """Write `EPISODE.npz` for each episode: t_ns (n,) int64, values (n, m), columns (m,), unit.

    Raises StateError when an episode has no recorded states.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for episode in episodes:
        spec = next((spec for spec in store.streams(episode) if spec.name == STREAM and not spec.arm_dependent), None)
        if spec is None:
            raise StateError(f"episode {episode} has no recorded {STREAM}")
        t_ns, values = store.read(episode, STREAM)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, t_ns=t_ns, values=values, columns=np.array(spec.columns), unit=np.array(spec.unit))
        path = folder / f"{episode}.npz"
        replace_file(path, buffer.getvalue())
        written.append(path)
    return written
