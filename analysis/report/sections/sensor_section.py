"""The section on what the cell's sensors measured: a figure for each column, a curve for each episode, a table by arm.

May not: test or rank anything: which of it an arm caused is not said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labctl.analysis.numerals import MISSING, count, number
from labctl.analysis.report.figures import Figure, Look, make, slugs, to_csv
from labctl.analysis.report.lab_facts import SensorColumn, SensorCurve
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = (
    "From go to the end of each episode. Of a long episode the least and the greatest of each stretch are drawn, so "
    "that no peak is lost; the table has the median over episodes of each one’s least, median and greatest of those "
    "points. No test: light that fades and a scale that drifts show here as an arm does."
)


def section(sensors: Sequence[SensorColumn] | None, styles: Mapping[str, Look]) -> Section | None:
    """None where the cell has no sensor, or none of them gave anything."""
    known = [one for one in sensors or () if any(curve["value"] for curve in one["curves"])]
    if not known:
        return None
    left_out = sum(not one["drawn"] for one in known)
    note = NOTE
    if left_out:
        note += f" {left_out} further column{'s' if left_out > 1 else ''} not drawn: the exports have them."
    # no name has what is between the two: "a b" with a column "c" is not "a" with a column "b c"
    named = {f"{one['sensor']}\0{one['column']}": one for one in known if one["drawn"]}
    figures = tuple(_figure(f"sensor-{name}", named[key], styles) for key, name in slugs(named).items())
    return Section("sensors", "Sensors", figures, (("", _table(known)),), note, wide=True)


def _title(one: SensorColumn) -> str:
    unit = "" if one["unit"] in ("", "1") else f", {one['unit']}"
    return f"{one['sensor']}: {one['column']}{unit}"


def _figure(name: str, one: SensorColumn, styles: Mapping[str, Look]) -> Figure:
    def draw(ax: Axes) -> None:
        named: set[str] = set()
        for curve in one["curves"]:
            look = styles.get(curve["arm"])
            if look is None or not curve["value"]:
                continue
            label = None if curve["arm"] in named else curve["arm"]
            named.add(curve["arm"])
            ax.plot(
                curve["t_s"], curve["value"], color=look.colour, linestyle=look.linestyle, linewidth=0.8, label=label,
                alpha=0.75,
            )  # fmt: skip
        ax.set(xlim=(0, None), xlabel="s since go", ylabel=_title(one).partition(": ")[2])
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize="small")

    rows = [
        (curve["arm"], curve["episode"], f"{t:.6g}", f"{value:.6g}")
        for curve in one["curves"]
        for t, value in zip(curve["t_s"], curve["value"], strict=True)
    ]
    text = to_csv(("arm", "episode", "t_s", "value"), rows)
    return make(name, _title(one), (6.4, 2.2), draw, text)


def _table(known: Sequence[SensorColumn]) -> Table:
    columns = (Column("Sensor", "text"), ARM, Column("Episodes"), Column("Least"), Column("Median"), Column("Greatest"))
    rows: list[tuple[str, ...]] = []
    for one in known:
        for arm in dict.fromkeys(curve["arm"] for curve in one["curves"]):
            own = [curve for curve in one["curves"] if curve["arm"] == arm]
            rows.append((_title(one), arm, count(len(own)), *_spread(own)))
    return Table(columns, tuple(rows))


def _spread(curves: Sequence[SensorCurve]) -> tuple[str, str, str]:
    """Medians over episodes of the least, the median and the greatest of each."""
    values = [np.array(curve["value"]) for curve in curves if curve["value"]]
    if not values:
        return MISSING, MISSING, MISSING
    least, middle, greatest = (float(np.median([of(one) for one in values])) for of in (np.min, np.median, np.max))
    return number(least, 3), number(middle, 3), number(greatest, 3)
