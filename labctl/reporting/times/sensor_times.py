"""What the cell's sensors measured in every episode, from go to its end, in few enough points to draw: of each stretch
the least and the greatest, so that no peak is lost. Only after unblinding: how hard an arm pushes shows here.

May not: be asked before unblinding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from labctl.analysis.report.lab_facts import SensorColumn
from labctl.clock import SECOND
from labctl.core.record import Episode
from labctl.reporting.times.recorded import SENSOR, read_stream
from labctl.store.read_once import Samples

POINTS = 160  # of an episode's curve
MOST = 6  # columns of a sensor that are drawn: those of a tactile array are in the exports


def curves_of(store: Samples, went: Episode, arm: str) -> list[SensorColumn]:
    """One entry per column of each sensor, with the curve of this episode; none where it never got to go."""
    found: list[SensorColumn] = []
    if went.go_ns is None or went.end_ns is None:
        return found
    for spec in store.streams(went.id):
        if not spec.name.startswith(SENSOR):
            continue
        nothing = np.empty(0, np.int64), np.empty((0, len(spec.columns)))
        t_ns, values = read_stream(store, went.id, spec.name) or nothing
        inside = (t_ns >= went.go_ns) & (t_ns <= went.end_ns)
        seconds, rows = (t_ns[inside] - went.go_ns) / SECOND, values[inside]
        for i, (column, unit) in enumerate(zip(spec.columns, spec.units, strict=True)):
            t_s, shown = _thinned(seconds, rows[:, i].astype(float))
            found.append(
                {
                    "sensor": spec.name.removeprefix(SENSOR),
                    "column": column,
                    "unit": unit,
                    "drawn": i < MOST,
                    "curves": [{"arm": arm, "episode": went.id, "t_s": t_s, "value": shown}],
                }
            )
    return found


def sensor_columns(found: Iterable[Sequence[SensorColumn]]) -> list[SensorColumn]:
    """The `curves_of` episodes, in the order in which these ran: one entry per column of each sensor, with them all."""
    every: dict[tuple[str, str], SensorColumn] = {}
    for columns in found:
        for one in columns:
            first = every.setdefault((one["sensor"], one["column"]), {**one, "curves": []})
            first["curves"].extend(one["curves"])
    return list(every.values())


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
