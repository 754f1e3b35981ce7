"""The simulated marker tracker: what it says of each item, its stream and its samples.

May not: see anything itself: `World.tracked` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.devices import Batch, StreamSpec

TRACKED = ("x", "y", "z", "yaw", "visible", "in_target", "lost", "held")  # the columns of `items`
IN_TARGET, HELD = TRACKED.index("in_target"), TRACKED.index("held")
STREAM = "tracker"


def tracker_spec(observe_hz: float) -> StreamSpec:
    """Its declared stream: a row for each item that it is asked about; anybody may see all of it."""
    columns = ("item", *TRACKED)
    return StreamSpec(STREAM, columns, "m rad", observe_hz, public_columns=columns)


def tracker_batch(seen: Sequence[tuple[int, np.ndarray]]) -> Batch:
    """Times in ns and items (n, 8) seen then, at least one of such pairs, as samples."""
    counts = [len(items) for _, items in seen]
    t_ns = np.repeat(np.array([t for t, _ in seen]), counts)
    item = np.concatenate([np.arange(count, dtype=float) for count in counts])
    return Batch(STREAM, t_ns, np.column_stack([item, np.concatenate([items for _, items in seen])]))
