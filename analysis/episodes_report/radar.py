"""A radar of arms over families, which only ever stands beside the table that it repeats.

May not: fill an area (which would mean something else with every order of the spokes), or leave out an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from labctl.analysis.episodes_report.drawing import SMALL, Line, name_lines
from labctl.analysis.report.figures import INK, MUTED, RULE, Figure, make, to_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPOKES = 3
"""Families below which there is no radar."""
RINGS = (0.25, 0.5, 0.75, 1.0)
APART = 0.035
"""Of a full score: how far the intervals of two arms stand beside each other on a spoke."""
FULL_TURN = 2 * math.pi


def radar(name: str, title: str, lines: Mapping[str, Line], spokes: Sequence[str], axis: str) -> Figure:
    """Values from 0 (the middle) to 1 along a spoke for each family, the first upwards and on clockwise, with intervals
    along the spokes. Every line has a value for every spoke.
    """
    angles = [math.pi / 2 - FULL_TURN * k / len(spokes) for k in range(len(spokes))]

    def at(angle: float, value: float, aside: float = 0.0) -> tuple[float, float]:
        """Where a value stands; aside: of a full score, to the right of the spoke as seen from the middle."""
        return (
            value * math.cos(angle) + aside * math.sin(angle),
            value * math.sin(angle) - aside * math.cos(angle),
        )

    def draw(ax: Axes) -> None:
        for ring in RINGS:
            round_ = [at(FULL_TURN * k / 120, ring) for k in range(121)]
            ax.plot([x for x, _ in round_], [y for _, y in round_], color=RULE, linewidth=0.7, zorder=0)
            ax.text(*at(math.pi / 2 - 0.5 * FULL_TURN / len(spokes), ring), f"{ring:g}", fontsize=6, color=MUTED,
                    ha="center", va="center")  # fmt: skip
        for angle, word in zip(angles, spokes, strict=True):
            x, y = at(angle, 1.0)
            ax.plot((0, x), (0, y), color=RULE, linewidth=0.7, zorder=0)
            side = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
            ax.text(1.1 * x, 1.1 * y, word, ha=side, va="center", fontsize=7.5, color=INK)
        for i, line in enumerate(lines.values()):
            aside = APART * (i - (len(lines) - 1) / 2)
            points = [at(angle, value or 0.0) for angle, value in zip(angles, line.values, strict=True)]
            closed = [*points, points[0]]
            ax.plot(
                [x for x, _ in closed], [y for _, y in closed], color=line.look.colour,
                linestyle=line.look.linestyle, linewidth=1.3, marker=line.look.mark or "o", markersize=3.5,
            )  # fmt: skip
            for angle, ends in zip(angles, line.intervals, strict=True):
                if ends is not None:
                    (x0, y0), (x1, y1) = (at(angle, end, aside) for end in ends)
                    ax.plot((x0, x1), (y0, y1), color=line.look.colour, linewidth=1.0)
        ax.set_aspect("equal")
        ax.set(xlim=(-1.5, 1.5), ylim=(-1.4, 1.25))
        ax.set_axis_off()
        ax.text(0, -1.32, axis, ha="center", va="center", fontsize=7, color=MUTED)
        name_lines(ax, {arm: line.look for arm, line in lines.items()})
        ax.set_title(title)

    rows = [
        (arm, spoke, value, *(ends or ("", "")))
        for arm, line in lines.items()
        for spoke, value, ends in zip(spokes, line.values, line.intervals, strict=True)
    ]
    return make(name, title, (SMALL, 3.3), draw, to_csv(("arm", "family", "value", "low", "high"), rows))
