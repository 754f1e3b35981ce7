"""What the cell's sensors measured in every episode, from go to its end, in few enough points to draw: of each stretch
the least and the greatest, so that no peak is lost. Only after unblinding: how hard an arm pushes shows here.

May not: be asked before unblinding.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from labctl.analysis.report.lab_facts import SensorColumn
from labctl.clock import SECOND
from labctl.core.record import Episode
from labctl.reporting.times.recorded import SENSOR, samples_of
from labctl.store.read_once import Samples

POINTS = 160  # of an episode's curve
MOST = 6  # columns of a sensor that are drawn: those of a tactile array are in the exports


def sensor_columns(store: Samples, episodes: Mapping[str, str], records: Mapping[str, Episode]) -> list[SensorColumn]:
    """One entry per column of each sensor, with a curve per episode, in the order in which they ran. episodes: episode
    -> arm.
    """
    found: dict[tuple[str, str], SensorColumn] = {}
    for episode, went in records.items():
        if episode not in episodes or went.go_ns is None or went.end_ns is None:
            continue
        for spec in store.streams(episode):
            if not spec.name.startswith(SENSOR):
                continue
            nothing = np.empty(0, np.int64), np.empty((0, len(spec.columns)))
            t_ns, values = samples_of(store, episode, spec.name) or nothing
            inside = (t_ns >= went.go_ns) & (t_ns <= went.end_ns)
            seconds, rows = (t_ns[inside] - went.go_ns) / SECOND, values[inside]
            for i, (column, unit) in enumerate(zip(spec.columns, spec.units, strict=True)):
                name = spec.name.removeprefix(SENSOR)
                first: SensorColumn = {
                    "sensor": name,
                    "column": column,
                    "unit": unit,
                    "drawn": i < MOST,
                    "curves": [],
                }
                entry = found.setdefault((name, column), first)
                t_s, shown = _thinned(seconds, rows[:, i].astype(float))
                entry["curves"].append({"arm": episodes[episode], "episode": episode, "t_s": t_s, "value": shown})
    return list(found.values())


def _thinned(t_s: np.ndarray, values: np.ndarray) -> tuple[list[float], list[float]]:
    """At most POINTS of a curve; what is no number is left out."""
    kept = np.isfinite(values)
    t_s, values = t_s[kept], values[kept]
    if len(values) > POINTS:
        edges = np.linspace(0, len(values), POINTS // 2 + 1).astype(int)
        stretches = [slice(*ends) for ends in pairwise(edges)]
        at = [(part.start + values[part].argmin(), part.start + values[part].argmax()) for part in stretches]
        chosen = np.unique(np.ravel(at))
        t_s, values = t_s[chosen], values[chosen]
    return np.round(t_s, 3).tolist(), [float(f"{value:.6g}") for value in values.tolist()]
