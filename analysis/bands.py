"""Pointwise 95 % bands for the success curves: whole episodes resampled within each cell, percentiles at each time.

May not: draw a band around a curve it cannot reproduce from the rows; such a cell gets none, and the note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from labctl.analysis.cells import cells_of
from labctl.analysis.resample import multiplicities, stream_key
from labctl.analysis.survival import Spells, survival, walk
from labctl.analysis.table import NS, table_from_rows

Band = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times in s, lower and upper F as fractions, all of shape (k,)."""

REPLICATES = 999
_SAME_CURVE = 1e-4


def curve_bands(
    result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[tuple[str, str], Band], str]:
    """Bands by (arm, object), and one sentence naming the method and what has no band.

    Episode-clustered percentile bootstrap (999 replicates, the result's seed), pointwise: it covers each time alone,
    not the whole curve at once. A cell of fewer than two episodes has none.
    Raises `TableError` on a row that breaks a rule of the operations table.
    """
    if not rows:
        return {}, "No bands: the rows behind the curves were not given."
    cells = cells_of(table_from_rows(rows, extra=True))
    wanted = [(cell, (cell["arm"], cell["object"])) for cell in result.get("cells") or [] if cell.get("curve")]
    found: dict[tuple[str, str], Band] = {}
    for cell, key in wanted:
        if key in cells and cells[key].episodes > 1:
            band = _band(cells[key].spells, cell["curve"], result, key)
            if band is not None:
                found[key] = band
    note = (
        f"Shaded: pointwise 95 % bands, percentile bootstrap of whole episodes ({REPLICATES} replicates); "
        "they cover each time alone, not a whole curve."
    )
    without = [f"{arm} on {obj}" for _, (arm, obj) in wanted if (arm, obj) not in found]
    if without and not found:
        return found, "No bands: the rows given do not reproduce the curves, or no cell has two episodes."
    return found, note + (f" No band for {', '.join(without)}." if without else "")


def _band(spells: Spells, curve: Mapping[str, Any], result: Mapping[str, Any], key: tuple[str, str]) -> Band | None:
    grid = spells.event_times(round(float(result["tau"]) * NS))
    steps = walk(spells, grid)
    estimate = 1.0 - survival(steps, np.ones((1, spells.episodes)))[0]
    at = np.searchsorted(grid, np.round(np.asarray(curve["t"], float) * NS).astype(np.int64), side="right")
    if np.abs(np.r_[0.0, estimate][at] - np.asarray(curve["F"], float)).max(initial=0.0) > _SAME_CURVE:
        return None
    seed = stream_key(int(result.get("seed") or 0), "curve band", *key)
    weights = multiplicities(seed, range(REPLICATES), spells.episodes, spells.episodes)
    low, high = np.quantile(1.0 - survival(steps, weights), (0.025, 0.975), axis=0)
    times = np.r_[0.0, grid / NS, float(result["tau"])]
    return times, np.r_[0.0, low, low[-1:]], np.r_[0.0, high, high[-1:]]
