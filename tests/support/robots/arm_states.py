"""What an episode's record says of the arm: its streams, and when it came to rest.

A robot that is watched from outside moves again as soon as its run goes on, which a busy test may not see in between.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from labctl.store.traces import TraceStore


def recorded(folder: Path, episode: str | None, stream: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times in ns, and the columns of a stream by name."""
    with closing(TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)) as store:
        columns = next(spec for spec in store.streams(episode or "") if spec.name == stream).columns
        t_ns, values = store.read(episode or "", stream)
    return t_ns, {name: values[:, k] for k, name in enumerate(columns)}


def rest_after_s(folder: Path, episode: str | None, from_ns: int) -> float:
    """For how long the joints still turned after a moment of the host's clock, in the robot's own time."""
    t_ns, state = recorded(folder, episode, "arm/state")
    q = np.column_stack([values for name, values in state.items() if name.startswith("q.")])
    turning = np.flatnonzero(np.abs(np.diff(q, axis=0)).max(axis=1) > 1e-5)
    assert len(turning) and t_ns[turning[-1]] < t_ns[-1], "the record ends with an arm at rest"
    return float(state["device_s"][turning[-1]] - state["device_s"][min(np.searchsorted(t_ns, from_ns), len(t_ns) - 1)])
