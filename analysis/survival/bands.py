"""Simultaneous 95 % bands for success curves: constant width, whole episodes drawn anew within each cell.

May not: draw a band around a curve it cannot reproduce from the rows; such a cell gets none, and the note names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import Key
from labctl.analysis.survival.curves import Durations, Floats, curve
from labctl.analysis.survival.event_order import event_order
from labctl.analysis.survival.intervals import LEVEL
from labctl.analysis.survival.kernel import Redraw, Request, pair_values
from labctl.analysis.survival.resample import stream_key
from labctl.analysis.survival.result import AnalysisResult, CurveValues
from labctl.analysis.table import NS

Band = tuple[Floats, Floats, Floats]
"""Times in s, lower and upper F as fractions, all of shape (k,)."""

REPLICATES = 1999
_SAME_CURVE = 1e-4


@dataclass(frozen=True)
class CurveBand(Result):
    """A success curve and its band, step functions from the given times on, all (k,): seconds and fractions."""

    t: Floats
    f: Floats
    low: Floats
    high: Floats
    half_width: float


def simultaneous_band(durations: Durations, tau_ns: int, key: np.uint64, boot: int = REPLICATES) -> CurveBand | None:
    """F(t) with a band that covers the whole curve up to tau at once: F ± c, cut to [0, 1].

    c is the quantile of sup_t |F* - F| over draws of whole episodes, times sqrt(N / (N - 1)), because a draw from N
    episodes varies that much too little, and times t / normal quantile at N - 1, without which the band of a slow arm
    covers .87 at N = 10. Constant width: bands of equal precision cover .73 there, Greenwood's never recover (facts
    §4.7). None for fewer than two episodes.
    """
    if durations.episodes < 2:
        return None
    walk = event_order([durations], tau_ns)
    sup = np.sort(
        pair_values(walk, Redraw((key,), (durations.episodes,)), range(boot), Request(len(walk.group))).sup[:, 0]
    )
    rank = min(math.ceil((boot + 1) * LEVEL), boot)
    student = float(special.stdtrit(durations.episodes - 1, 0.5 + LEVEL / 2) / special.ndtri(0.5 + LEVEL / 2))
    half = float(sup[rank - 1]) * math.sqrt(durations.episodes / (durations.episodes - 1)) * student
    grid, surviving = curve(durations, tau_ns)
    t, f = np.r_[0.0, grid / NS, tau_ns / NS], 1.0 - np.r_[1.0, surviving, surviving[-1:] if len(grid) else 1.0]
    return CurveBand(t, f, np.maximum(f - half, 0.0), np.minimum(f + half, 1.0), half)


def curve_bands(result: AnalysisResult, cells: Mapping[Key, Cell]) -> tuple[dict[Key, Band], str]:
    """Bands by (arm, object), and one sentence naming the method and what has no band. cells: those of the table behind
    the result, none where it is not at hand.

    Simultaneous (`simultaneous_band`, the result's seed). A cell of fewer than two episodes has none.
    """
    if not cells:
        return {}, "No bands: the rows behind the curves were not given."
    wanted = [(cell, (cell["arm"], cell["object"])) for cell in result.get("cells") or [] if cell.get("curve")]
    found: dict[Key, Band] = {}
    for cell, key in wanted:
        if key in cells:
            band = _band(cells[key].durations, cell["curve"], result, key)
            if band is not None:
                found[key] = band
    note = (
        f"Shaded: simultaneous 95 % bands of constant width, whole episodes drawn anew ({REPLICATES} replicates); "
        "each covers its whole curve up to tau at once."
    )
    without = [f"{arm} on {obj}" for _, (arm, obj) in wanted if (arm, obj) not in found]
    if without and not found:
        return found, "No bands: the rows given do not reproduce the curves, or no cell has two episodes."
    return found, note + (f" No band for {', '.join(without)}." if without else "")


def _band(durations: Durations, shown: CurveValues, result: AnalysisResult, key: Key) -> Band | None:
    seed = stream_key(int(result.get("seed") or 0), "curve band", *key)
    band = simultaneous_band(durations, round(float(result["tau"]) * NS), seed)
    if band is None:
        return None
    at = np.searchsorted(band.t[:-1], np.asarray(shown["t"], float) + 0.5 / NS, side="right") - 1
    if np.abs(band.f[:-1][at] - np.asarray(shown["F"], float)).max(initial=0.0) > _SAME_CURVE:
        return None
    return band.t, band.low, band.high
