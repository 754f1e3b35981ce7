"""Figures beside the headline ones: quantiles against quantiles, the sweep of allowed time, RMST over the campaign.

May not: compute what it draws, or look different from `figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from labctl.analysis.report.figures import MUTED, Figure, Look, make, slug, to_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def qq_figures(found: Mapping[str, Any], styles: Mapping[str, Look], reference: str) -> list[Figure]:
    """One figure per object: seconds by which the reference, and an arm, had done the same share."""
    made = []
    for thing in dict.fromkeys(cell["object"] for cell in found["cells"]):
        plots = {c["arm"]: c["qq"] for c in found["cells"] if c["object"] == thing and c.get("qq") and c["qq"]["q"]}
        if not plots:
            continue

        def draw(ax: Axes, thing: str = thing, plots: dict[str, Any] = plots) -> None:
            top = max(max(qq["arm_t"][-1], qq["reference_t"][-1]) for qq in plots.values()) * 1.06
            ax.plot((0, top), (0, top), color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
            for arm, qq in plots.items():
                look = styles[arm]
                ax.plot(qq["reference_t"], qq["arm_t"], color=look.colour, linestyle=look.linestyle, linewidth=1.7)
                ax.plot(qq["reference_t"][-1], qq["arm_t"][-1], "o", mfc="white", mec=look.colour, markersize=5)
            ax.set(xlim=(0, None), ylim=(0, top), xlabel=f"{reference}, s", ylabel="arm, s")
            ax.set_title(thing)

        rows = [
            (thing, arm, f"{q:.6g}", f"{x:.6g}", f"{y:.6g}")
            for arm, qq in plots.items()
            for q, x, y in zip(qq["q"], qq["reference_t"], qq["arm_t"], strict=True)
        ]
        text = to_csv(("object", "arm", "share", "reference_s", "arm_s"), rows)
        made.append(make(f"qq-{slug(thing)}", thing, (3.1, 3.1), draw, text))
    return made


def sweep_figure(found: Mapping[str, Any], styles: Mapping[str, Look]) -> Figure | None:
    """Items per hour against seconds between failures, as the time allowed for an operation grows."""
    lines = {}
    for arm in found["arms"]:
        sweep = arm.get("sweep")
        if sweep:
            values = [
                (t, _finite(u), _finite(m)) for t, u, m in zip(sweep["tau"], sweep["uph"], sweep["mtbf"], strict=True)
            ]
            points = [(t, u, m) for t, u, m in values if u is not None and m is not None]
            if points:
                lines[arm["arm"]] = points
    if not lines:
        return None

    def draw(ax: Axes) -> None:
        for arm, points in lines.items():
            look = styles[arm]
            _, uph, mtbf = (np.array(column) for column in zip(*points, strict=True))
            ax.plot(mtbf, uph, color=look.colour, linestyle=look.linestyle, linewidth=1.4, marker="o", markersize=3)
            ax.annotate(arm, (mtbf[-1], uph[-1]), (5, 0), textcoords="offset points", va="center", color=look.colour)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set(xlabel="seconds between failures (MTBF/A)", ylabel="items per hour, successes only")

    rows = [(arm, f"{t:g}", f"{u:.6g}", f"{m:.6g}") for arm, points in lines.items() for t, u, m in points]
    return make(
        "sweep", "Throughput against reliability", (7.0, 3.4), draw, to_csv(("arm", "tau_s", "uph", "mtbf_s"), rows)
    )


def trend_figure(trends: Sequence[Mapping[str, Any]], styles: Mapping[str, Look]) -> Figure | None:
    """RMST of every block in order, arm by arm."""
    if not trends:
        return None

    def draw(ax: Axes) -> None:
        for trend in trends:
            look = styles[trend["arm"]]
            x, y = np.array(trend["order"], float), np.array([_finite(v) for v in trend["rmst"]], float)
            ax.plot(
                x + 1,
                y,
                color=look.colour,
                linestyle="none",
                marker=look.mark or "o",
                markersize=3.5,
                label=trend["arm"],
            )
            if len(x) > 2 and trend["slope"] is not None:
                middle = float(np.nanmean(y))
                ends = np.array([x.min(), x.max()])
                level = middle + trend["slope"] * (ends - x.mean())
                ax.plot(ends + 1, level, color=look.colour, linestyle=look.linestyle, linewidth=1.2)
        ax.set(xlabel="block, in the order of the campaign", ylabel="RMST, s", ylim=(0, None))

    rows = [
        (trend["arm"], thing, block, str(order), f"{rmst:.6g}")
        for trend in trends
        for order, thing, block, rmst in zip(
            trend["order"], trend["object"], trend["block"], trend["rmst"], strict=True
        )
    ]
    return make(
        "trend", "RMST over the campaign", (7.4, 3.0), draw, to_csv(("arm", "object", "block", "order", "rmst_s"), rows)
    )


def _finite(value: float | str | None) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)
