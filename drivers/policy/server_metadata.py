"""What a policy's server tells beside its actions: how long it took, the size of its model, the memory it holds. Pure.

May not: believe or need any of it (it is the server's own account, for the report), or fail because of what it holds.

No dialect has a place for resources, so a number counts wherever it stands at the top of the server's metadata or of an
answer, or one table below, by its name: a word of NAMES, then a unit ("gpu_memory_mb", "model_size_gib"), or a count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

MODEL_TIMES = (("policy_timing", "infer_ms"), ("server_timing", "infer_ms"))  # openpi: of the model, of the whole call
CALL_TIMES = MODEL_TIMES[::-1]
MOST = 1e15  # beyond it a number is nonsense, and may not fit where it is recorded
UNITS_MB = {"bytes": 1e-6, "kb": 1e-3, "mb": 1.0, "gb": 1e3, "kib": 0.001024, "mib": 1.048576, "gib": 1073.741824}
# What is kept -> the names it goes by, before the unit.
SIZES = {
    "gpu_memory_mb": ("gpu_memory", "gpu_memory_used", "gpu_memory_allocated", "peak_gpu_memory", "vram", "vram_used"),
    "memory_mb": ("memory", "memory_used", "host_memory", "ram", "rss"),
    "model_mb": ("model", "model_size", "weights_size"),
}
COUNTS = {"parameters": ("parameters", "num_parameters", "n_parameters", "num_params", "n_params", "model_parameters")}
NAMES: Mapping[str, tuple[str, float]] = {
    **{
        f"{name}_{unit}": (kept, mb) for kept, names in SIZES.items() for name in names for unit, mb in UNITS_MB.items()
    },
    **{name: (kept, 1.0) for kept, names in COUNTS.items() for name in names},
}


def seconds_reported(answer: Mapping[str, Any], names: Sequence[tuple[str, str]]) -> float:
    """The first of some timings (table, key; in ms) that an answer reports, in seconds; NaN when it reports none."""
    for table, key in names:
        values = answer.get(table)
        found = _number(values.get(key)) if isinstance(values, Mapping) else None
        if found is not None:
            return found / 1000.0
    return math.nan


def resources_reported(table: Mapping[str, Any]) -> dict[str, float]:
    """{gpu_memory_mb, memory_mb, model_mb: MB of 10^6 bytes, parameters}: what of it a server's metadata or answer
    holds; of two numbers for one thing the greater.
    """
    found: dict[str, float] = {}
    for name, value in _entries(table):
        known, number = NAMES.get(name.lower()), _number(value)
        if known is not None and number is not None:
            kept, scale = known
            found[kept] = max(found.get(kept, 0.0), number * scale)
    return found


def greatest(*values: Mapping[str, float]) -> dict[str, float]:
    """Several tellings as one: of each thing the greatest number."""
    names = dict.fromkeys(name for one in values for name in one)
    return {name: max(one[name] for one in values if name in one) for name in names}


def _entries(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        yield str(key), value
        if isinstance(value, Mapping):
            yield from ((str(inner), entry) for inner, entry in value.items())


def _number(value: Any) -> float | None:
    """A number that is not below zero and below MOST, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    found = float(value)
    return found if 0 <= found < MOST else None
