"""Success curves on matplotlib axes, for notebooks; the report draws its own, with numbers at risk.

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


def success_curves(cells: Sequence[Cell], tau: float, title: str, ax: Axes | None) -> Axes:
    """F(t) up to tau, one line an arm: the mean over its cells, weighed equally."""
    if ax is None:
        with wanted_for("a plot"):
            from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    for arm in dict.fromkeys(cell.arm for cell in cells):
        own = [cell.curve for cell in cells if cell.arm == arm]
        t = np.unique(np.concatenate([[0.0], *([step for step in curve.t if step <= tau] for curve in own), [tau]]))
        ax.step(t, [100 * np.mean([curve.at(at) for curve in own]) for at in t], where="post", label=arm)
    ax.set(xlim=(0, tau), ylim=(0, 100), title=title, xlabel="t, s")
    ax.set_ylabel("operations done within t, %\n(Kaplan-Meier)")
    ax.legend(frameon=False)
    return ax
