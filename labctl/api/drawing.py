"""Success curves, intervals and power on matplotlib axes, for notebooks; the report draws its own.

May not: estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labctl.extras import wanted_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from labctl.api.operations_result import Cell
    from labctl.api.planning import PowerAt
    from labctl.api.values import Interval


def success_curves(cells: Sequence[Cell], tau: float, title: str, ax: Axes | None) -> Axes:
    """F(t) up to tau, one line an arm: the mean over its cells, weighed equally."""
    ax = ax or _own_axes()
    for arm in dict.fromkeys(cell.arm for cell in cells):
        own = [cell.curve for cell in cells if cell.arm == arm]
        t = np.unique(np.concatenate([[0.0], *([step for step in curve.t if step <= tau] for curve in own), [tau]]))
        ax.step(t, [100 * np.mean([curve.at(at) for curve in own]) for at in t], where="post", label=arm)
    ax.set(xlim=(0, tau), ylim=(0, 100), title=title, xlabel="t, s")
    ax.set_ylabel("operations done within t, %\n(Kaplan-Meier)")
    ax.legend(frameon=False)
    return ax


def intervals(
    rows: Sequence[tuple[str, float | None, Interval | None]],
    xlabel: str,
    ax: Axes | None,
    nothing: float | None = None,
) -> Axes:
    """A line for each row, the first above: its value as a dot, its interval as a bar; what has no value is left
    blank. nothing: where a difference would be none.
    """
    ax = ax or _own_axes()
    for place, (_, value, interval) in enumerate(rows):
        if interval is not None:
            ax.plot(interval, (place, place), color="C0")
        if value is not None:
            ax.plot(value, place, "o", color="C0")
    if nothing is not None:
        ax.axvline(nothing, color="grey", linewidth=1, linestyle=":")
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=xlabel)
    return ax


def power_curves(rows: Sequence[PowerAt], target: float, title: str, ax: Axes | None) -> Axes:
    """Power by episodes, one line a pair of arms with its Monte-Carlo error, and the target."""
    ax = ax or _own_axes()
    for pair in dict.fromkeys((row.a, row.b) for row in rows):
        own = sorted((row for row in rows if (row.a, row.b) == pair), key=lambda row: row.episodes)
        shares, errors = [100 * row.power for row in own], [100 * row.error for row in own]
        ax.errorbar([row.episodes for row in own], shares, yerr=errors, marker="o", label=" / ".join(pair))
    ax.axhline(100 * target, color="grey", linewidth=1, linestyle=":")
    ax.set(ylim=(0, 100), title=title, xlabel="episodes per arm and object", ylabel="power, %")
    ax.legend(frameon=False)
    return ax


def _own_axes() -> Axes:
    with wanted_for("a plot"):
        from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]
